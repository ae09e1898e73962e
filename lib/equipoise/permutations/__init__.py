"""Permutations of scripted conversations: which are valid, and what they do to systems' scores."""
