"""Lexical evidence: how much of a text's wording stands in other sentences. Pure, no model.

``words`` cuts text into comparable words, ``scoring`` weighs what two texts share, ``explain``
puts the outcome into sentences. Nothing here reads a file, a clock or a random number.
"""
