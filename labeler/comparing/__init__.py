"""Two sets of records side by side: comparison, difference, agreement, gates."""
