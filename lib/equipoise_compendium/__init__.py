"""Reports of a compendium: published values, comparison, ledger, and the notebook build."""
