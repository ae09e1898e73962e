"""The two-round protocol of the pilot study: what its outcomes say beyond a run of one's own (gfrc, section 5)."""
