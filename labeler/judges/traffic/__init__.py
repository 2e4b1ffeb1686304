"""Rates, budget and concurrency of a run's requests."""
