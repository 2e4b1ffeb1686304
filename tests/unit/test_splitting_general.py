# ruff: noqa: RUF001  # letters, stops and quotation marks of many scripts are the point

from __future__ import annotations

import hashlib
from itertools import product

import pytest

from labeler.sentences.splitting import SPLITTERS
from labeler.sentences.splitting.general import GENERAL, LONGEST
from splitters import CUT, FILES, read_gold

# Known weak spots, none of which loses text:
# - an unknown abbreviation before a small letter or a number ends a sentence ("Xyz. 8");
# - a single letter or "Inc." before a capital ends none ("for X. Sales rose"), unless the next word
#   is one that begins sentences;
# - "!" before a small letter ends nothing, so lower-case chat may stay together.

# In the tables, ¦ stands where a sentence is to end; it is not in the text. More are in
# ``benchmarks/splitting``.
DIGEST = "d6d736db12ea31008a0e8f66a1067d3aa547ec97c651c2bce06331c2b18ca0bf"

PROSE = {
    "ellipsis": "Wait... what? ¦Hmm… ok. ¦So . . . it goes on. . . . ¦It ends.",
    "latin": "See e.g. this, i.e. that. ¦Done.",
    "initials": "J. K. Rowling wrote. ¦We read.",
    "numbered things": "No. 5 is alive. ¦See p. 55.",
    "quotations": '"Go now." ¦She left. ¦"Hi." he said.',
    "quoted sentences": "He said: “Go. Now. Please.” and left.",
    "guillemets": "«Oui!» ¦Fin.",
    "opening quote": "It ends here. ¦“Our study shows.",
    "citations behind the stop": "So.[13] ¦Last.[1, 2][3] ¦So. {1}{2} ¦It. [S1] ##0$$ %[1]% ¦End.",
    "emoji": "Great! 😀 ¦Love it 👍🏽. ¦So do we ❤️ 😀! ¦Bye.",
    "zero width": "Hello\u200b world.\u200b ¦Next.\u200b¦Last one.\ufeff",
    "NUL": "It is.\0¦So it is. ¦Yes\0No.",
}
MISSING_SPACE = {
    "words": "It fell.¦The next rose.",
    "year": "It began in 1999.¦The next year it stopped.",
    "call": "Then numpy.Array(1) works.",
    "path": "See docs/intro.The file is there.",
    "short word": "St.Patrick was there.",
    "decimal": "It is 3.Five of them.",
}
LINES = {
    "line breaks inside a sentence": "This is\none\r\nsentence. ¦This\u2028is\vanother.",
    "blank line": "No stop here\n\n¦Next paragraph\r\n \t\r\n¦Last",
    "bullets": "Intro:\n¦- one\n¦* two. ¦Three.\n¦• four\n¦– five\n¦+ six",
    "nested bullets": "1. Contrast:\n   ¦- Open it. ¦Press OK.\n\n¦2. Sharpness:",
    "emoji bullets": "✅ Done\n¦✅ Next. ¦Good\n¦1️⃣ First\n¦2️⃣ Second",
    "clauses": "1.1 Scope of work\n¦1.1.2 More. ¦And more\n¦(a) alpha\n¦b) beta\n¦(iv) four",
    "numbers in a line": "Do so. ¦1. First open it. ¦2. Then close it.",
    "number at a line's start": "It grew by\n2.3 million. ¦It did so in\n1985. ¦Good.",
    "underlined heading": "A title\n=====\n¦Text.\n\n¦Another\n---\n¦More.",
    "rule": "Above.\n\n---\n\n¦Below.",
    "table": "| a | b. C |\n|:--|--:|\n¦| 1. x. Y | 2 |\n¦After. ¦Done.",
    "fence": "Run:\n¦```py\nx = 1. \n\n# y. Z\n```\n¦After. ¦Done.",
    "fence inside a line": "```x = 1``` is code. ¦So is it.\n¦```y = 2``` is not. ¦Done.",
}
LANGUAGES = {
    "Chinese": "你好。¦今天天气很好！¦真的吗？¦是的。",
    "Hindi": "मैं घर गया। ¦क्या तुम ठीक हो? ¦हाँ!",
    "Arabic vowel marks": "طوله 90 مترًا. ¦بُني من البلوط. ¦كان كبيرًا جدًا. ¦كان قديمًا.",
    "Gujarati": "ઘર લાલ છે. ¦પાણી નથી.",
    "Thai": "สวัสดีครับ วันนี้อากาศดี ปี พ.ศ. 2560",
    "Russian": "Это г. Москва. ¦И т. д. и т. п. Всё. ¦Проф. Иванов пришёл.",
    "Czech and Swedish": "Např. dub. ¦Bl.a. Kungen kom. ¦Slut.",
    "Spanish": "Él vino. ¦¿Qué? ¦¡Sí! ¦Vale.",
}
SHAPES = {
    "exclamation in a name": "We play Bingo! every week. ¦Then 5! grows.",
    "superscript number": "It works.¹² ¦It does.<sup>3</sup> ¦Yes.",
    "bare number": "It works.12 ¦More agree.3,4 ¦See Fig.12 for it.",
    "number behind a space": "It works. 12 ¦However, few tried. ¦12 people did.",
    "number of an item": "It works. ¦2  The second thing. ¦3  A third.",
    "pairs of letters": "Los EE. UU. firmaron. ¦Los JJ. OO. van. ¦Ae. aegypti. ¦Vale.",
    "ordinal": "Am 7. Mai und im 2. Stock. ¦Es sind 7. ¦Der Rest fehlt.",
    "unit": "It is 5 m. ¦Ropes cost $30K. ¦See 39 L. Ed. for that.",
    "capitals are no title": "She has MS. ¦Tests showed it. ¦Ms. Tests agreed.",
    "Roman numeral": "Otto III. starb jung. ¦Kapitel IV. ¦Danach.",
    "attribution": "“Why?” Anna Berg asked. ¦“Go!” ¦Anna went. ¦“我来。”他说道。",
    "attribution of the next": "他说：“好。” ¦然后走了。¦“好。” ¦她说：“来吧。”",
    "dialogue with dashes": "— Где он? — спросил Пётр. ¦— Там.",
    "parenthesis": "It (see Sec. 3. It is long) ended. ¦(It did.) ¦Yes.",
    "bullets in a line": "Bring: ¦• a pen ¦• paper",
    "bold number": "**Step 1.** Open it. ¦**2.** Close it.\n¦## 3. Lock\n¦### 3.1. Key",
    "two numbers are no list": "It costs 1. ¦In winter it costs 2. ¦Then more.",
    "hard-wrapped": "The boat leaves the pier in the old harbor on\nMonday at noon. ¦Bye.",
    "TSV": "a\tb\n¦1\tIt is. So it is.\n¦2\tNo",
    "CSV": 'id,text\n¦1,"It is. So, it is."\n¦2,no',
    "pipes without a frame": "a | b\n--- | ---\n¦x. Y | 2",
    "log": "2026-01-02 10:00:01 Job 1. Failed.\n¦[WARN] Slow. Bye.\n¦10:00 | x. Y",
    "times alone": "1\n00:00:01,000 --> 00:00:02,000\n- Hello.\n\n¦2\n00:00:03,000 --> x",
    "schedule": "10:00 - 11:00\n¦- Coffee\n¦- Tea. ¦It is hot.",
    "labels": "name: x\n¦age: 3\n¦note: It is.",
    "fields": "Title: A thing\n¦Text: It is. ¦So it is.",
    "reference": "Doe, J. (2020). A title. Paris: Pub.\n¦[3] J. Doe. A title. 2021. Pub.",
    "medical reference": "Roe B, Doe A. A title. J Med. 2021;3(4):5-6.\n¦It is. ¦So.",
    "HTML entities": "Yes.&nbsp;¦&quot;No. It is.&quot; is so.",
    "HTML": "<p>It is <b>so.</b> ¦Yes.</p>¦<ul><li>One</li>¦<li>Two<br>¦Three</li></ul>",
    "Korean": '"어디 가요? 왜요?"라고 물었다. ¦그는 웃었다.',
    "Hindi": "डॉ. राव आए। ¦मूल्य रु. 50 है। ¦यह ई.पू. 300 में बना।",
    "streets, dates, doses": "Hauptstr. 12, am 24. 12. 2024. ¦Mon. to Fri. 2 tabs. p.o. ¦The rest.",
    "measures, times, pages": "A 5 in. x 3 in. bed at 8 p.m. ET. ¦Figure 3. A bed ..... 3",
    "times of day": "It opens at 8 a.m. ¦Dogs may by 5 p.m. Eastern. ¦It is 3 p.p. ¦Then more.",
    "words": "I met Jo. ¦Voy a ir. ¦Ich hab. ¦Han gik ud. ¦A 5 mW. ¦In the sun. ¦3 left.",
    "small letters": "i had 3 days. ¦then it came. ¦My dog is Bo. ¦he barks. ¦it is 2 in. wide.",
    "numbers": "What is pi? ¦3.14. ¦Euler knew. ¦Vitamin K. ¦A study of 2015;3 men took part.",
    "Hindi without spaces": "यह घर है.¦वह गया.¦फिर आया.",
    "before our time": "Nació en 52 a. C. en Roma. ¦El comp. es de 3 . 5 kg. ¦Seit 1980. ¦Gut.",
}


@pytest.mark.parametrize("table", [PROSE, MISSING_SPACE, LINES, LANGUAGES, SHAPES])
def test_sentences(table: dict[str, str]) -> None:
    """Sentences end where the table says, and each is its span of the source."""
    for name, marked in table.items():
        text = marked.replace(CUT, "")
        pieces = GENERAL.split(text)
        assert [one.text for one in pieces] == [part.strip() for part in marked.split(CUT)], name
        assert [text[one.start : one.end] for one in pieces] == [one.text for one in pieces], name


def _bounded_texts(text: str) -> list[str]:
    pieces = [piece.text for piece in GENERAL.split(text)]
    assert len(pieces) > 1
    assert all(LONGEST // 2 <= len(piece) <= LONGEST for piece in pieces[:-1])
    return pieces


@pytest.mark.parametrize(
    ("unit", "ends"),
    [
        ("a line that is as wide as all others are\n", "are"),
        ("apples, red pears; ", ";"),
        ("apples, red pears and ", ","),
        ("word ", "word"),
        ("很好，", "，"),
        ("e\u0301\u0302", "e\u0301\u0302"),
        ("👍🏽\ufe0f", "👍🏽\ufe0f"),
    ],
)
def test_a_long_sentence_is_cut_at_its_best_place(unit: str, ends: str) -> None:
    """At a line break, semicolon, comma or space, else between whole letters and emoji."""
    assert all(piece.endswith(ends) for piece in _bounded_texts("a" + unit * 2_000)[:-1])


def test_long_code_and_long_lines_are_cut_at_their_parts() -> None:
    """Code at line ends, not at full stops; a line where its sentences are."""
    line = "x = f(a, b). g  # so. It is\n"
    pieces = _bounded_texts("```\n" + line * 300 + "```")
    assert all(piece.splitlines()[-1] == line.strip() for piece in pieces[:-1])
    sentences = [f"Sentence number {number} is here." for number in range(4_000)]
    assert [piece.text for piece in GENERAL.split(" ".join(sentences))] == sentences


def test_its_sentences_never_change() -> None:
    """They enter keys of stored labels: once released, a better splitter is another version."""
    texts = [gold.text for path in FILES for gold in read_gold(path)]
    pieces = repr([[tuple(piece) for piece in GENERAL.split(text)] for text in texts])
    assert hashlib.sha256(pieces.encode()).hexdigest() == DIGEST


# A pattern that looks back or ahead from each of these would take the square of the length.
UNITS = (
    *("U.S. ", "Mr. ", ".", ". ", " .", "? ", '"', "'", "“", "‘", "«", "「", "\"'`“‘«„「"),
    *("“Go. ", 'He said "Go." ', "(", "(Go. ", "()", "[", "Go.[1] ", "a", "A", "abc."),
    *("abc.Def ", " ", "\u3000", "\t", "\n", "\r\n", "\u2028", "Go on.\n", "go on\n"),
    *("- a\n", "-\n", "- ", "1. ", "1.1 ", "1.", "# ", "**", "**a\n", "Aa aa: ", "Aa "),
    *("```\n~~~\n", "```a\n", "~", "|", "| ", "|a|\n", "---\n", "- = ", ",", "😀", "Go! 😀 "),
    *("\u200d", "e\u0301", "\u0301", "\u200b", "\0", "\ud800", "。", "你好。", "г. ", "τι; "),
    *("<p>", "</b></p>", "<p ", "a,b,c\n", "a\tb\n", '"a",', "Anna: yes. ", "Anna: yes.\n"),
    *("[00:12] ", "text.12 ", ". 3 The ", "1. A 2. B ", "[1]", "Aa, B. ", ".¹"),
    *("https://a.example/b?c=d.E"),
)


def shape(unit: str, tail: str, length: int) -> str:
    """Repeat a unit up to a length."""
    return unit * (length // len(unit)) + tail


@pytest.mark.parametrize("name", ["general", "ragbench"])
def test_every_shape_is_read(name: str) -> None:
    """Nothing is lost, and no shape keeps a splitter busy for long, whatever it ends with."""
    for unit, tail in product(UNITS, ("", "x")):
        text = shape(unit, tail, 1_500)
        pieces = SPLITTERS[name].split(text)
        assert _visible("".join(piece.text for piece in pieces)) == _visible(text), unit


def _visible(text: str) -> str:
    """Leave out white space, which no splitter answers for."""
    return "".join(text.split())
