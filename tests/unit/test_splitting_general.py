# ruff: noqa: RUF001  # letters, stops and quotation marks of many scripts are the point
from __future__ import annotations

import pytest

from labeler.sentences.splitting import Splitter
from labeler.sentences.splitting.general import GENERAL, LONGEST
from labeler.sentences.splitting.general2 import GENERAL_2
from labeler.sentences.splitting.spans import flatten

# Known weak spots, none of which loses text:
# - an unbalanced straight quote (an inch mark) keeps the sentences up to the next one together;
# - several sentences inside quotes or parentheses stay together, and a sentence that is a
#   parenthesis as a whole may stay with the next;
# - a heading without a mark runs into the line below it;
# - Thai has no sentence ends to be seen; table rows need their outer pipes;
# - a name such as torch.Tensor reads like two sentences with a space missing;
# - an abbreviation before a word that often begins sentences ("Dr. Who") ends one.

# In the tables, ¦ stands where a sentence is to end; it is not in the text.
CUT = "¦"

PROSE = {
    "one word": "Yes",
    "stops": "It is. ¦Is it? ¦It is!",
    "several stops": "What?! ¦No way!! ¦Right.",
    "lower case": "i am here. ¦you are there. ¦ok",
    "ellipsis": "Wait... what? ¦Hmm… ok.",
    "decimals": "Pi is 3.14. ¦It costs $3.50. ¦Bye.",
    "versions": "Use version 2.0.1 now. ¦Then 3.11.",
    "titles": "Mr. and Mrs. Smith met Gov. Brown. ¦They left.",
    "latin": "See e.g. this, i.e. that. ¦Done.",
    "initials": "J. K. Rowling wrote. ¦We read.",
    "countries": "The U.S. market fell. ¦It rose.",
    "companies": "Apple Inc. announced it. ¦Good.",
    "degrees": "She has a Ph.D. in law. ¦He does not.",
    "numbered things": "No. 5 is alive. ¦See p. 55.",
    "figures": "See Fig. 3 and Eq. 4. ¦Done.",
    "volumes": "It is in Vol. 2, approx. 5 km off.",
    "court cases": "Smith v. Jones was cited. ¦So it was.",
    "years": "It happened in 1999. ¦Then it stopped.",
    "quotations": '"Go now." ¦She left. ¦"Hi." he said.',
    "curly quotes": "It is “the end.” ¦Next. ¦So it’s.",
    "quoted sentences": "He said: “Go. Now. Please.” and left.",
    "guillemets": "«Oui!» ¦Fin.",
    "opening quote": "It ends here. ¦“Our study shows.",
    "opening apostrophe": "Use ‘n Go here. ¦Then stop. ¦It’s off.",
    "parenthesis": "It ends (see below). ¦Next one.",
    "citations": "It works [12]. ¦More did (Smith et al., 2020). ¦End.",
    "citations behind the stop": "More.[13] ¦Last one.[1, 2][3] ¦End.",
    "address": "Visit https://a.example/x.html?q=1. ¦Then mail a.b@c.example. ¦Done.",
    "sites": "Open www.example.com/Foo.Bar now. ¦Or Example.Com instead.",
    "emoji": "Great! 😀 ¦Love it 👍🏽. ¦So do we ❤️ 😀! ¦Bye.",
    "touching emoji": "Great!🎉🎉 ¦Next.",
    "emoji alone": "😀",
    "zero width": "Hello\u200b world.\u200b ¦Next.\u200b¦Last one.\ufeff",
    "NUL": "It is.\0¦So it is. ¦Yes\0No.",
    "hard and wide spaces": "It is.\u00a0¦So it is.\u3000¦Bye.",
    "accents": "Cafe\u0301. ¦Ou\u0300 est-il? ¦La\u0300.",
    "JSON": '{"a": "b. C", "d": [1, 2]}',
}
MISSING_SPACE = {
    "words": "It fell.¦The next rose.",
    "year": "It began in 1999.¦The next year it stopped.",
    "question": "Is it?¦Yes, it is.",
    "quote": "It was “good.”¦But not cheap.",
    "contraction": "He left.¦It's over.",
    "identifier": "Call np.Array now.",
    "call": "Then numpy.Array(1) works.",
    "chain": "System.Out.println works.",
    "code": "Use `torch.Tensor` here.",
    "file": "Edit config.Yaml and README.Md first.",
    "domain": "Booking.Com is a site.",
    "path": "See docs/intro.The file is there.",
    "short word": "St.Patrick was there.",
    "capitals": "The Microsoft.NET framework runs.",
    "decimal": "It is 3.Five of them.",
}
LINES = {
    "line breaks inside a sentence": "This is\none\r\nsentence. ¦This\u2028is\vanother.",
    "blank line": "No stop here\n\n¦Next paragraph\r\n \t\r\n¦Last",
    "paragraph separator alone": "No stop\u2029still the same",
    "bullets": "Intro:\n¦- one\n¦* two. ¦Three.\n¦• four\n¦– five\n¦+ six",
    "wrapped bullet": "- one thing\n  that goes on\n¦- another",
    "nested bullets": "1. Contrast:\n   ¦- Open it. ¦Press OK.\n\n¦2. Sharpness:",
    "bare bullets": "•\nText of it\n¦•\nMore",
    "emoji bullets": "✅ Done\n¦✅ Next. ¦Good\n¦1️⃣ First\n¦2️⃣ Second",
    "numbers": "1. First. ¦Second.\n¦2. Third\n¦10) Tenth",
    "clauses": "1.1 Scope of work\n¦1.1.2 More. ¦And more\n¦(a) alpha\n¦b) beta\n¦(iv) four",
    "choices": "Which one?\n¦A. Paris\n¦B. London",
    "numbers in a line": "Do so. ¦1. First open it. ¦2. Then close it.",
    "number at a line's start": "It grew by\n2.3 million. ¦It did so in\n1985. ¦Good.",
    "heading": "# A title\n¦Text goes on\nhere. ¦Done.",
    "bold heading": "**A title**\n¦Text. ¦**Note:** more.",
    "underlined heading": "A title\n=====\n¦Text.\n\n¦Another\n---\n¦More.",
    "rule": "Above.\n\n---\n\n¦Below.",
    "rule at the start": "---\n\nBelow. ¦Done.",
    "table": "| a | b. C |\n|:--|--:|\n¦| 1. x. Y | 2 |\n¦After. ¦Done.",
    "fence": "Run:\n¦```py\nx = 1. \n\n# y. Z\n```\n¦After. ¦Done.",
    "two fences": "~~~\na. B\n~~~\n¦~~~\nc. D\n~~~",
    "fence inside a line": "```x = 1``` is code. ¦So is it.\n¦```y = 2``` is not. ¦Done.",
    "half a fence": "x = 1\n```\n¦After. ¦Done.",
    "fields": "Title: A thing\n¦Passage: it is so. ¦Done.",
    "block quotation": "> It is\n> so. ¦> Done.",
    "lone emoji line": "Thanks.\n\n👍",
}
LANGUAGES = {
    "Chinese": "你好。¦今天天气很好！¦真的吗？¦是的。",
    "Chinese, ASCII stops": "真的吗?¦是的!¦好。",
    "Korean": "안녕하세요. ¦반갑습니다. ¦정말요?",
    "Hindi": "मैं घर गया। ¦क्या तुम ठीक हो? ¦हाँ!",
    "Arabic": "ما اسمك؟ ¦اسمي علي. ¦شكرا!",
    "Urdu": "یہ ایک ہے۔ ¦یہ دوسرا ہے۔",
    "Armenian": "Ես գնում եմ։ ¦Դու գալիս ես։",
    "Thai": "สวัสดีครับ วันนี้อากาศดี",
    "Russian": "Это г. Москва. ¦И т. д. и т. п. Всё. ¦Проф. Иванов пришёл.",
    "Greek": "Τι κάνεις; ¦Είμαι καλά. ¦Ο κ. Παπάς ήρθε.",
    "Spanish": "Él vino. ¦¿Qué? ¦¡Sí! ¦Vale.",
    "Greek letters in English": "Let α be small. ¦Then β; so it is.",
}
# A letter is an initial and a quotation goes on in version 2.
OTHERWISE_IN_2 = {
    "beyond the basic plane": "𝒳 is a set. ¦So is 𝒴. ¦Done.",
    "Japanese": "これはペンです。¦本当?¦はい!¦「そうか。」¦と言った。",
}
TABLE = PROSE | MISSING_SPACE | LINES | LANGUAGES
CASES = [
    *(pytest.param(GENERAL, marked, id=name) for name, marked in (TABLE | OTHERWISE_IN_2).items()),
    *(pytest.param(GENERAL_2, marked, id=f"{name}, version 2") for name, marked in TABLE.items()),
]


@pytest.mark.parametrize(("splitter", "marked"), CASES)
def test_sentences(splitter: Splitter, marked: str) -> None:
    """Sentences end where the table says, and each is its span of the source."""
    text = marked.replace(CUT, "")
    pieces = splitter.split(text)
    assert [piece.text for piece in pieces] == [part.strip() for part in marked.split(CUT)]
    assert [text[piece.start : piece.end] for piece in pieces] == [piece.text for piece in pieces]


@pytest.mark.parametrize("text", ["", " ", "\r\n\t\u2028\u3000\n"])
def test_a_blank_text_has_no_sentence(text: str) -> None:
    """White space is nothing to label."""
    assert GENERAL.split(text) == []


def test_the_engine_sees_plain_spaces_alone() -> None:
    """Whatever Python calls white space is a plain space to the engine, at the same offset."""
    white = "".join(char for code in range(0x110000) if (char := chr(code)).isspace())
    assert flatten(f"a{white}b") == f"a{' ' * len(white)}b"


def _bounded_texts(text: str) -> list[str]:
    pieces = [piece.text for piece in GENERAL.split(text)]
    assert len(pieces) > 1
    assert all(LONGEST // 2 <= len(piece) <= LONGEST for piece in pieces[:-1])
    return pieces


def test_a_long_quotation_is_cut_at_stops() -> None:
    """The engine keeps a quotation whole; too long a one is cut at what looks like an end."""
    pieces = _bounded_texts("“" + "He went on. And so did she. " * 100 + "So it was.”")
    assert all(piece.endswith((".", "”")) for piece in pieces)


def test_without_stops_commas_are_taken() -> None:
    """A list too long is cut at commas or semicolons."""
    assert all(p.endswith((",", ";")) for p in _bounded_texts("apples, red pears; " * 500))


def test_without_commas_spaces_are_taken() -> None:
    """Words too many are cut between words."""
    assert {w for p in _bounded_texts("word " * 2000) for w in p.split()} == {"word"}


def test_chinese_is_cut_without_spaces() -> None:
    """A comma needs no space after it where no script puts one."""
    assert all(piece.endswith("，") for piece in _bounded_texts("很好，" * 2000))


def test_a_cut_through_letters_spares_accents() -> None:
    """Where nothing else is left, a letter still keeps its accents, an emoji its parts."""
    pieces = _bounded_texts("a" + "e\u0301\u0302" * 2000)
    assert all(piece.startswith(("a", "e")) for piece in pieces)
    pieces = _bounded_texts("a" + "👍🏽\ufe0f" * 2000)
    assert all(piece.startswith(("a", "👍")) for piece in pieces)


def test_a_long_fence_is_cut_at_line_ends() -> None:
    """Code is not cut at its full stops."""
    line = "x = f(a, b). g  # so. It is\n"
    pieces = _bounded_texts("```\n" + line * 300 + "```")
    assert all(piece.splitlines()[-1] == line.strip() for piece in pieces[:-1])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([], id="nothing"),
        pytest.param(["One. ", "Three."], id="loses"),
        pytest.param(["One. ", "One. ", "Two."], id="doubles"),
        pytest.param(["Two.", "One. "], id="swaps"),
        pytest.param(["One. Two. Three."], id="invents"),
    ],
)
def test_an_engine_that_lies_is_not_heard(
    answer: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its sentences are not the text, the block stays whole."""
    monkeypatch.setattr("sentencex.segment", lambda _language, _text: answer)
    assert [piece.text for piece in GENERAL.split("One. Two.")] == ["One. Two."]


class _Panic(BaseException):
    """What a crash in the engine's Rust arrives as: no ``Exception``."""

    __module__ = "pyo3_runtime"


@pytest.mark.parametrize("error", [_Panic, ValueError, UnicodeError])
def test_an_engine_that_crashes_costs_only_the_cut(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block stays whole, and the next one is asked about again."""

    def segment(language: str, text: str) -> list[str]:
        if "Bad" in text:
            raise error
        return ["One. ", "Two."] if language == "en" else []

    monkeypatch.setattr("sentencex.segment", segment)
    assert [piece.text for piece in GENERAL.split("Bad. One.\n\nOne. Two.")] == [
        "Bad. One.",
        "One.",
        "Two.",
    ]


class _Signal(BaseException):
    """What a program may have a signal raise, wherever it is at the moment."""


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, _Signal])
def test_an_interruption_is_no_crash(
    interruption: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes through, whatever the program has signals raise: no row is cut by one."""

    def segment(_language: str, _text: str) -> list[str]:
        raise interruption

    monkeypatch.setattr("sentencex.segment", segment)
    with pytest.raises(interruption):
        GENERAL.split("One. Two.")
