"""The order of a scripted conversation: which orders are valid, and what they do to the scores of systems."""
