"""Reads sentences as words: what they claim, with which numbers, names and negations. Pure.

``words`` cuts text into comparable words, ``claims`` reads a response sentence. The embedded judge
and the audit hold sentences against each other by them.
"""
