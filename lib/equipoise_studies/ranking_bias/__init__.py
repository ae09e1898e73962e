"""Term-exposure fairness of rankings, with counterfactual checks (thesis, chapter 4)."""
