# ruff: noqa: RUF001  # letters, stops and quotation marks of many scripts are the point
from __future__ import annotations

import hashlib

import pytest

from boundaries import CUT, FILES, Counts, Gold, count, read_gold, total
from labeler.sentences.splitting.general2 import GENERAL_2, LONGEST

DIGEST = "99abd8788a1573fc5cf78499b5d868f0e7f674080641ab3354af22a7ef8f8f93"

# Known weak spots, none of which loses text:
# - an unknown abbreviation before a small letter or a number ends a sentence ("Schillerstr. 8");
# - a single letter or "Inc." before a capital ends none ("for X. Sales rose"), unless the next word
#   is one that begins sentences;
# - "!" before a small letter ends nothing, so lower-case chat may stay together.

# ¦ stands where a sentence is to end; it is not in the text. More are in ``benchmarks/splitting``.
TABLE = {
    "exclamation in a name": "We play Bingo! every week. ¦Then 5! grows.",
    "ellipsis for words": "Rule 4 says that … Art. 5 Abs. 2 applies. ¦So be it.",
    "superscript number": "It works.¹² ¦It does.<sup>3</sup> ¦Yes.",
    "bare number": "It works.12 ¦More agree.3,4 ¦See Fig.12 for it.",
    "number behind a space": "It works. 12 ¦However, few tried. ¦12 people did.",
    "number of an item": "It works. ¦2  The second thing. ¦3  A third.",
    "pairs of letters": "Los EE. UU. firmaron. ¦Los JJ. OO. empiezan. ¦Vale.",
    "ordinal": "Am 7. Mai und im 2. Stock. ¦Es sind 7. ¦Der Rest fehlt.",
    "unit": "It is 5 m. ¦Ropes cost $30K. ¦See 39 L. Ed. for that.",
    "capitals are no title": "She has MS. ¦Tests showed it. ¦Ms. Tests agreed.",
    "Roman numeral": "Otto III. starb jung. ¦Kapitel IV. ¦Danach.",
    "mixed case": "It fell. ¦mRNA is short. ¦iPads are not.",
    "attribution": "“Why?” Anna Berg asked. ¦“Go!” ¦Anna went. ¦“我来。”他说道。",
    "attribution of the next": "他说：“好。” ¦然后走了。¦“好。” ¦她说：“来吧。”",
    "quotation alone": "“It fell. ¦It broke.” ¦She said: “It fell. It broke.”",
    "dialogue with dashes": "— Где он? — спросил Пётр. ¦— Там.",
    "parenthesis": "It (see Sec. 3. It is long) ended. ¦(It did.) ¦Yes.",
    "list in a line": "Do this: ¦1. Open ¦2. Wait ¦3. Close it",
    "bullets in a line": "Bring: ¦• a pen ¦• paper",
    "two numbers are no list": "It costs 1. ¦In winter it costs 2. ¦Then more.",
    "section number": "Section 2. Scope. ¦It applies. ¦Art. 3. – Il dure.",
    "heading above a line": "Opening hours\n¦Monday to Friday\n¦We are closed on\nSundays.",
    "hard-wrapped": "The boat leaves the pier in the old harbor on\nMonday at noon. ¦Bye.",
    "TSV": "a\tb\n¦1\tIt is. So it is.\n¦2\tNo",
    "CSV": 'id,text\n¦1,"It is. So, it is."\n¦2,no',
    "semicolons": "a;b;c\n¦1;2,5;3\n¦2;3,5;4",
    "pipes without a frame": "a | b\n--- | ---\n¦x. Y | 2",
    "columns of spaces": "Name    Age   City\n¦Ann     31    Bonn",
    "log": "2026-01-02 10:00:01 Job 1. Failed.\n¦[WARN] Slow. Bye.\n¦10:00 | x. Y",
    "times alone": "1\n00:00:01,000 --> 00:00:02,000\nHello.\n\n¦2\n00:00:03,000 --> x",
    "speakers": "Ann: Yes. It is.\n¦Bob: No.\n¦Ann: Oh.",
    "labels": "name: x\n¦age: 3\n¦note: It is.",
    "fields": "Title: A thing\n¦Text: It is. ¦So it is.",
    "reference": "Doe, J. (2020). A title. Paris: Pub.\n¦[3] J. Doe. A title. 2021. Pub.",
    "HTML": "<p>It is <b>so.</b> ¦Yes.</p>¦<ul><li>One</li>¦<li>Two<br>¦Three</li></ul>",
    "tags alone": "<div>\n<p>Text.</p>\n</div>",
    "generic types": "Use List<String> here. ¦It is a < b. ¦And c > d.",
    "Korean": '"어디 가세요?"라고 물었다. ¦그는 웃었다.',
    "Hindi": "डॉ. राव आए। ¦मूल्य रु. 50 है।",
}


@pytest.mark.parametrize("marked", TABLE.values(), ids=TABLE)
def test_sentences(marked: str) -> None:
    """Sentences end where the table says."""
    pieces = GENERAL_2.split(marked.replace(CUT, ""))
    assert [piece.text for piece in pieces] == [part.strip() for part in marked.split(CUT)]


@pytest.mark.parametrize("gold", read_gold(FILES[0]), ids=lambda gold: gold.name)
def test_the_texts_of_its_development_are_right(gold: Gold) -> None:
    """What was seen while the rules were made is cut as people cut it."""
    assert [piece.text for piece in GENERAL_2.split(gold.text)] == gold.sentences


def test_its_sentences_never_change() -> None:
    """They enter keys of stored labels: a better splitter is another version."""
    texts = [gold.text for path in FILES for gold in read_gold(path)]
    pieces = repr([[tuple(piece) for piece in GENERAL_2.split(text)] for text in texts])
    assert hashlib.sha256(pieces.encode()).hexdigest() == DIGEST


@pytest.mark.parametrize(
    ("unit", "ends"),
    [
        pytest.param("a line without a stop\n", "stop", id="lines"),
        pytest.param("apples, red pears; ", ";", id="semicolons"),
        pytest.param("apples, red pears and ", ",", id="commas"),
    ],
)
def test_a_long_sentence_is_cut_at_its_best_place(unit: str, ends: str) -> None:
    """Line breaks come before semicolons, and these before commas."""
    pieces = [piece.text for piece in GENERAL_2.split(unit * 300)]
    assert len(pieces) > 1
    assert all(LONGEST // 2 <= len(text) <= LONGEST for text in pieces[:-1])
    assert all(text.endswith(ends) for text in pieces[:-1])


def test_boundaries_are_counted() -> None:
    """The end of a text is no boundary, and white space does not count."""
    gold = Gold("a", "en", "prose", "A b. C.\nD. E.", ["A b.", "C.", "D. E."])
    assert count(gold, ["A b. ", "C. D.", "E."]) == Counts(1, 0, 1, 2, 2)
    assert count(gold, gold.sentences) == Counts(1, 1, 2, 2, 2)
    assert total([Counts(1, 0, 1, 2, 4), Counts(1, 1, 2, 2, 2)]).cells() == (
        "1 of 2 | 0.750 | 0.500 | 0.600"
    )
