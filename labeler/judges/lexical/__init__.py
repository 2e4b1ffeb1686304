"""Lexical evidence: how much of a text's wording stands in other sentences. Pure, no model.

:mod:`labeler.wording` reads the sentences, ``index`` holds those of the documents, ``support`` and
``ranking`` score, ``scoring`` does a whole record, and ``explain`` puts the outcome into sentences.
``clauses`` cuts a sentence where it may say several things, and ``verdicts`` holds each against the
sentences of a text. Nothing here reads a file, a clock or a random number.
"""
