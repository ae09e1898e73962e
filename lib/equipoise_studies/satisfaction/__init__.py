"""Satisfaction estimators under counterfactual dialogues (thesis, chapter 3)."""
