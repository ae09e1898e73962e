"""Reports: printed values, comparison, ledger, and the build that makes them from notebooks."""
