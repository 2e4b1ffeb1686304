"""Lexical evidence: how much of a text's wording stands in other sentences. Pure, no model.

``words`` cuts text into comparable words, ``claims`` reads a response sentence, ``index`` holds
the document sentences, ``support`` and ``ranking`` score, ``scoring`` does a whole record, and
``explain`` puts the outcome into sentences. ``clauses`` cuts a sentence where it may say several
things, and ``verdicts`` holds each against the sentences of a text. Nothing here reads a file, a
clock or a random number.
"""
