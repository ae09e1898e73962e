"""The studies: what one chapter or paper alone needs; none imports another."""
