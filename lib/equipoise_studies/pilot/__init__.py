"""The pilot study (gfrc, section 5): test collections, outcomes of the two-round protocol."""
