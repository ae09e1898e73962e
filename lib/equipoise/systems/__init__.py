"""Systems under evaluation."""
