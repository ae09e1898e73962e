"""The pilot study (gfrc, section 5): its test collections, and the outcomes of the two-round protocol."""
