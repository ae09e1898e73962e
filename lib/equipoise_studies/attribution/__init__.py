"""Attribution bias of retrieval-augmented language models (thesis, chapter 5)."""
