"""Equipoise: measures of bias and robustness in search and conversational systems, computed again."""
