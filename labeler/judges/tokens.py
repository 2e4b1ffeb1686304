"""How many tokens a text makes: an exact tokenizer where one is at hand, else an approximation.

Nothing is downloaded. What a provider adds to a request (the frame of each message, its own form
of the answer's schema) is not published in full: :func:`request_tokens` is an estimate even where
the tokenizer is exact.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

MESSAGE_FRAME = 4
"""Tokens that chat models spend on each message besides its text."""
REPLY_FRAME = 3
"""Tokens that begin the answer, counted with the prompt."""

ANSWER_BASE = 300
ANSWER_PER_SENTENCE = 50
"""Tokens of an answer, at its base and for each response sentence.

Fitted on 504 of 1,007 labels that GPT-4 wrote for RAGBench, as our JSON in ``o200k_base``. On the
other 503 it explains 80 % of the variance; their sum it guesses 1 % too low (by subset: 15 % too
low to 8 % too high), a single answer within 0.74 and 1.44 of the truth in nine cases of ten. A
model that reasons before it answers, or explains more, writes more.
"""
CLAIMS_PER_SENTENCE = 2
"""Claims of a sentence, assumed: models differ in how finely they cut. Triples, the finest that are
in use, come to 4.6 a sentence in RAGChecker's two worked records."""
RESPONSE_CLAIM, COMPARISON, REFERENCE_CLAIM = 60, 9, 45
"""Tokens of a claim of the response, of its verdict by a reference answer on top, and of a claim of
the reference answer; each with 12 for the claim's own words. As our JSON, counted by the
approximation below: its frame has 49, 9 and 33."""
CLAIM_LISTS = 20
"""Tokens of the names of the two lists that claims add, and of the two of a reference answer."""

_FALLBACK = "o200k_base"
_FILES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""SHA-256 of the encodings' files."""
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
"""Names a file in tiktoken's cache; nothing is fetched from there."""
_FILE_OF = {"o200k_harmony": "o200k_base"}


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """How it counts, for people."""
        ...

    def count(self, text: str) -> int:
        """The tokens of a text, or a fair guess at them."""
        ...

    def count_json(self, text: str) -> int:
        """The same for compact JSON of names rather than sentences, such as a schema."""
        ...

    def at_most(self, text: str) -> int:
        """A number of tokens that the text cannot exceed."""
        ...


@dataclass(frozen=True)
class Approximation:
    """Weighs kinds of characters; fast, and without any model's vocabulary.

    The weights were fitted to ``o200k_base`` on every other one of 1,477 texts. On the others the
    guess, as a ratio to the true count, had this mean and these 5th and 95th percentiles; beside
    it what bytes divided by four give:

    ==================================== ===== =========== ======= ===========
    texts                                 mean   5 %, 95 % bytes/4   5 %, 95 %
    ==================================== ===== =========== ======= ===========
    prompts of 1,000 RAGBench rows        0.98  0.92, 1.02    1.14  1.06, 1.20
    Python files                          1.04  0.93, 1.17    1.19  0.93, 1.42
    tables of numbers and dates           1.00  1.00, 1.01    0.43  0.42, 0.43
    interface texts in 91 languages       0.95  0.69, 1.19    0.96  0.71, 1.41
    ==================================== ===== =========== ======= ===========

    By language: Chinese 0.85 (traditional) and 1.01, Japanese 1.05, Korean 1.01, Russian 1.27,
    Arabic 1.06, Hindi 1.03, German 1.03, French 1.07. The prompts for labels are guessed up to 3 %
    too high, the schemas that are sent 6 % too low to 12 % too high.
    """

    name: str = "approximation"

    def count(self, text: str) -> int:
        """A fair guess at the tokens of a text."""
        raw = text.encode("utf-8", "replace")
        rest = raw.translate(_KINDS, _LETTERS)
        weights = (weight * rest.count(kind) for kind, weight in _WEIGHTS.items())
        return round(sum(weights, _LETTER * (len(raw) - len(rest))))

    def count_json(self, text: str) -> int:
        """A fair guess at compact JSON, whose punctuation comes in runs of one token each."""
        return self.count(_joined(text))

    def at_most(self, text: str) -> int:
        """The bytes of a text: every token of a byte-level vocabulary takes at least one."""
        return len(text.encode("utf-8", "replace"))


@dataclass(frozen=True)
class Tokenizer:
    """Counts with tiktoken.

    Args:
        encoding: a ``tiktoken.Encoding``.
        guessed: whether tiktoken does not know the model, so that the encoding is a guess.
    """

    encoding: Any
    guessed: bool

    @property
    def name(self) -> str:
        """The encoding, and whether it is known to be the model's."""
        return f"tiktoken {self.encoding.name}" + (" (assumed)" if self.guessed else "")

    def count(self, text: str) -> int:
        """The tokens of a text; what looks like a control token is counted as the text it is."""
        return len(self.encoding.encode_ordinary(text))

    def count_json(self, text: str) -> int:
        """The same."""
        return self.count(text)

    def at_most(self, text: str) -> int:
        """The count where the encoding is the model's, else the bytes of the text."""
        return len(text.encode("utf-8", "replace")) if self.guessed else self.count(text)


def counter_for(model: str) -> TokenCounter:
    """The best counter at hand: tiktoken where it is installed and has its file, else a guess.

    Loading a tokenizer takes about a second and 100 MB, and counting with it 3 ms for 16 kB: where
    a guess does, take :class:`Approximation`, which needs 0.05 ms.
    """
    try:
        import tiktoken  # noqa: PLC0415 - an optional part
        from tiktoken.model import encoding_name_for_model  # noqa: PLC0415 - the same
    except ImportError:
        return Approximation()
    try:
        name, guessed = encoding_name_for_model(model), False
    except KeyError:
        name, guessed = _FALLBACK, True
    if not _at_hand(_FILE_OF.get(name, name)):
        return Approximation()
    return Tokenizer(tiktoken.get_encoding(name), guessed)


def answer_tokens(
    response_sentences: int, profile: str = "trace", reference_sentences: int = 0
) -> int:
    """Expected tokens of a label, without reasoning.

    The length of a ``trace`` label was measured, see :data:`ANSWER_BASE`; what richer profiles add
    is reckoned from :data:`CLAIMS_PER_SENTENCE`.

    Args:
        response_sentences: how many there are.
        profile: how much is asked.
        reference_sentences: how many there are; they count only where the profile asks about them.
    """
    expected = ANSWER_BASE + ANSWER_PER_SENTENCE * response_sentences
    claims = CLAIMS_PER_SENTENCE * response_sentences
    if profile in {"claims", "reference"}:
        expected += CLAIM_LISTS + RESPONSE_CLAIM * claims
    if profile == "reference":
        expected += CLAIM_LISTS + COMPARISON * claims
        expected += REFERENCE_CLAIM * CLAIMS_PER_SENTENCE * reference_sentences
    return expected


def compact(schema: Mapping[str, Any]) -> str:
    """The JSON text of a schema as it is sent."""
    return json.dumps(dict(schema), separators=(",", ":"), ensure_ascii=False)


def request_tokens(
    counter: TokenCounter, messages: Iterable[Mapping[str, str]], schema: str
) -> int:
    """Expected prompt tokens of a chat request: messages, their frames, and the answer's schema.

    Args:
        counter: how texts are counted.
        messages: chat messages with ``content``.
        schema: the schema as compact JSON, or nothing.
    """
    texts = sum(counter.count(message["content"]) + MESSAGE_FRAME for message in messages)
    return texts + counter.count_json(schema) + REPLY_FRAME


def request_tokens_at_most(
    counter: TokenCounter, messages: Iterable[Mapping[str, str]], schema: str
) -> int:
    """Prompt tokens that a chat request should not exceed; see :func:`request_tokens`.

    The texts' share is a bound, the frames' an estimate: providers do not publish it.
    """
    texts = sum(counter.at_most(message["content"]) + MESSAGE_FRAME for message in messages)
    return texts + counter.at_most(schema) + REPLY_FRAME


@lru_cache(maxsize=8)  # the same few schemas go with every request
def _joined(text: str) -> str:
    return _RUN.sub(",", text)


def _at_hand(encoding: str) -> bool:
    """Whether tiktoken has an encoding's file; it would fetch a missing or damaged one."""
    cache = os.environ.get(
        "TIKTOKEN_CACHE_DIR",
        os.environ.get("DATA_GYM_CACHE_DIR", f"{tempfile.gettempdir()}/data-gym-cache"),
    )
    if not cache or encoding not in _FILES:  # an empty name keeps tiktoken from looking
        return False
    address = _ADDRESS.format(encoding).encode()
    try:
        content = (
            Path(cache) / hashlib.sha1(address, usedforsecurity=False).hexdigest()
        ).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest() == _FILES[encoding]


_RUN = re.compile(r'[{}\[\]":,]+')
_LETTER = 0.21
"""Tokens for a small ASCII letter."""
_WEIGHTS = {
    b"U": 0.37,  # a capital ASCII letter
    b"0": 0.54,  # a digit
    b".": 0.78,  # any other printable ASCII character but the space
    b"l": 1.7,  # Latin with accents
    b"g": 0.40,  # Greek, Cyrillic, Hebrew, Arabic
    b"i": 0.45,  # scripts of India, Thai, Georgian
    b"p": 1.75,  # typographic punctuation
    b"c": 0.67,  # Chinese, Japanese, Korean
    b"e": 2.5,  # emoji and rare scripts
}
"""Tokens for a character, by kind; white space joins what follows it."""
_LETTERS = bytes(range(ord("a"), ord("z") + 1))
_STARTS = {
    0x00: b" ",
    ord("!"): b".",
    ord("0"): b"0",
    ord("9") + 1: b".",
    ord("A"): b"U",
    ord("Z") + 1: b".",
    0x7F: b" ",
    0xC2: b"l",
    0xCE: b"g",
    0xE0: b"i",
    0xE2: b"p",
    0xE3: b"c",
    0xF0: b"e",
}
"""Where in the order of bytes another kind begins; a space weighs nothing."""
_KINDS = b"".join(
    kind * (end - start)
    for (start, kind), end in zip(_STARTS.items(), [*list(_STARTS)[1:], 0x100], strict=True)
)
