"""What one chapter or paper alone needs; no study imports another."""
