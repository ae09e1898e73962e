"""Lexical and contextualised retrieval by example (thesis, chapter 2)."""
