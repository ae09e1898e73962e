"""Orders of a scripted conversation: which are valid, and what they do to systems' scores."""
