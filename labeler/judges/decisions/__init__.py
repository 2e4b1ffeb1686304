"""Judges that decide: a model answers questions about keyed sentences with probabilities.

One request a record. ``questions`` asks, ``forms`` knows the two APIs, ``judge`` sends and splits,
``verdicts`` turns probabilities into an ordinary label.
"""
