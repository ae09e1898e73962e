"""GFRC, GFRC2 and GFR of conversations and pilot runs, and outcomes of the two-round protocol."""
