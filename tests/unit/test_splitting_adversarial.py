# ruff: noqa: RUF001  # quotation marks and stops of many scripts are the point
from __future__ import annotations

import pytest

from labeler.sentences.splitting import SPLITTERS
from labeler.sentences.splitting.general import GENERAL, LONGEST

# A pattern that looks back or ahead from each of these would take the square of the length.
UNITS = {
    "initials": "U.S. ",
    "titles": "Mr. ",
    "dots": ".",
    "dots and spaces": ". ",
    "spaces and dots": " .",
    "question marks": "? ",
    "straight quotes": '"',
    "apostrophes": "'",
    "opening quotes": "“",
    "opening single quotes": "‘",
    "guillemets": "«",
    "corner brackets": "「",
    "all quotes": "\"'`“‘«„「",
    "unclosed quotations": "“Go. ",
    "quotations": 'He said "Go." ',
    "parentheses": "(",
    "unclosed parentheses": "(Go. ",
    "pairs of parentheses": "()",
    "brackets": "[",
    "citations": "Go.[1] ",
    "letters": "a",
    "capitals": "A",
    "stops in a word": "abc.",
    "touching stops": "abc.Def ",
    "spaces": " ",
    "wide spaces": "\u3000",
    "tabs": "\t",
    "line feeds": "\n",
    "carriage returns": "\r\n",
    "line separators": "\u2028",
    "short lines": "Go on.\n",
    "two words a line": "go on\n",
    "bullets": "- a\n",
    "bare bullets": "-\n",
    "dashes": "- ",
    "numbers": "1. ",
    "clauses": "1.1 ",
    "number of a clause": "1.",
    "headings": "# ",
    "bold marks": "**",
    "unclosed bold lines": "**a\n",
    "fields": "Aa aa: ",
    "field words": "Aa ",
    "fences": "```\n~~~\n",
    "fences with a language": "```a\n",
    "tildes": "~",
    "pipes": "|",
    "pipes and spaces": "| ",
    "table rows": "|a|\n",
    "rules": "---\n",
    "almost a rule": "- = ",
    "commas": ",",
    "emoji": "😀",
    "emoji behind stops": "Go! 😀 ",
    "joiners": "\u200d",
    "accents": "e\u0301",
    "bare accents": "\u0301",
    "zero-width spaces": "\u200b",
    "NUL": "\0",
    "lone surrogates": "\ud800",
    "ideographic stops": "。",
    "short Chinese sentences": "你好。",
    "Cyrillic shortenings": "г. ",
    "Greek questions": "τι; ",
    "tags": "<p>",
    "closing tags": "</b></p>",
    "half a tag": "<p ",
    "rows": "a,b,c\n",
    "tabs and words": "a\tb\n",
    "quoted cells": '"a",',
    "speakers": "Anna: yes. ",
    "lines of speakers": "Anna: yes.\n",
    "clock times": "[00:12] ",
    "bare numbers behind stops": "text.12 ",
    "spaced numbers behind stops": ". 3 The ",
    "list numbers": "1. A 2. B ",
    "brackets and numbers": "[1]",
    "references": "Aa, B. ",
    "superscripts": ".¹",
    "addresses": "https://a.example/b?c=d.E",
}
# Most patterns fail only at the end of what they have matched.
TAILS = ("", "x")


def shape(unit: str, tail: str, length: int) -> str:
    """Repeat a unit up to a length."""
    return unit * (length // len(unit)) + tail


def visible(text: str) -> str:
    """Leave out white space, which no splitter answers for."""
    return "".join(text.split())


@pytest.mark.parametrize("unit", ["a", "a ", ".", "“", "“Go. ", " ", "\n", "U.S. ", "Go on now. "])
def test_general_reads_a_long_line(unit: str) -> None:
    """Nothing is lost, and no sentence is too long."""
    text = shape(unit, "", 60_000)
    pieces = GENERAL.split(text)
    assert visible("".join(piece.text for piece in pieces)) == visible(text)
    assert all(len(piece.text) <= LONGEST for piece in pieces)


@pytest.mark.parametrize("name", ["general", "ragbench"])
def test_every_shape_is_read(name: str) -> None:
    """Nothing is lost, and no shape keeps a splitter busy for long."""
    for title, unit in UNITS.items():
        for tail in TAILS:
            text = shape(unit, tail, 3_000)
            pieces = SPLITTERS[name].split(text)
            assert visible("".join(piece.text for piece in pieces)) == visible(text), title


def test_a_long_line_is_cut_where_its_sentences_are() -> None:
    """Its length leaves no trace in its sentences."""
    sentences = [f"Sentence number {number} is here." for number in range(4_000)]
    assert [piece.text for piece in GENERAL.split(" ".join(sentences))] == sentences
