"""The site: the reports as pages that a browser opens from disk."""
