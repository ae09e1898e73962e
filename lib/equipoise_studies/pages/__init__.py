"""Pages of the site that the library fills: its measures, and scores to move."""
