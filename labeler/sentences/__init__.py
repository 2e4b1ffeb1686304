"""Examples, their sentences and the sentence keys."""
