"""Scores by rubrics and criteria of one's own, and their dependence on length."""
