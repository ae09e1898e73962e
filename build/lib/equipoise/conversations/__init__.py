"""Holding conversations with a chat system, and the records of them."""
