"""How many tokens a text makes: a fair guess, a true bound, and nothing fetched."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.judges import tokens
from labeler.judges.tokens import (
    MESSAGE_FRAME,
    REPLY_FRAME,
    TokenCounter,
    counter_for,
    request_tokens_at_least,
)
from labeler.labels.schemas import load_schema

GUESS = TokenCounter()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (" \n\t", 0),
        ("a" * 100, 21),
        ("A" * 100, 37),
        ("7" * 100, 54),
        ("-" * 100, 78),
        ("é" * 10, 17),
        ("я" * 10, 4),
        ("ह" * 100, 45),
        ("“" * 100, 175),
        ("水" * 100, 67),
        ("😀" * 10, 25),
        ("Ab 1.", 2),
    ],
)
def test_each_kind_of_character_has_its_weight(text: str, expected: int) -> None:
    """The last: .37 + .21 + 0 + .54 + .78 is 1.9."""
    assert GUESS.count(text) == expected


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("The tower was finished in 1987 and is 112 metres high.", 15),
        ('0a "The tower was finished in 1987."', 12),
        ("def area(width, height):\n    return width * height\n", 12),
        ("水塔建成于1987年高112米。", 12),
    ],
)
def test_the_guess_is_near_what_a_tokenizer_counts(text: str, true: int) -> None:
    """Within a third, even of texts this short; the true counts are those of o200k_base."""
    assert true * 2 / 3 <= GUESS.count(text) <= true * 4 / 3


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer_tokens(text: str, more: str) -> None:
    """Neither by the guess nor by the bound."""
    assert GUESS.count(text) <= GUESS.count(text + more)
    assert GUESS.at_most(text) <= GUESS.at_most(text + more)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_the_bound_is_the_bytes_of_the_text(text: str) -> None:
    """No token of a byte-level vocabulary is shorter."""
    assert GUESS.at_most(text) == len(text.encode())


@pytest.mark.parametrize(
    ("text", "fewest", "true"),
    [
        ("A lamp  is   red.\n\n" * 10, 40, 70),
        ("一帆风顺。万事如意。恭喜发财。" * 8, 24, 72),
        ("ภาษาไทยไม่มีช่องว่าง" * 5, 25, 25),
        ("def f(x):\n\n\n        return x\n" * 8, 32, 72),
        ("| - | - |\n" * 20, 100, 100),
        ("-" * 400, 1, 6),
    ],
)
def test_the_lower_bound_holds_for_any_tokenizer(text: str, fewest: int, true: int) -> None:
    """The true counts are the fewest of those of gpt-4o, Gemma 3, Qwen 3 and DeepSeek V3."""
    assert request_tokens_at_least([text]) == fewest <= true


def test_text_that_is_no_utf8_is_counted_all_the_same() -> None:
    """A lone surrogate becomes one byte when it is sent."""
    assert GUESS.at_most("\ud800") == 1
    assert GUESS.count("\ud800") == 1


def test_a_run_of_punctuation_in_compact_json_is_one_token() -> None:
    """Here four runs, of .78 each, round 30 letters at .21."""
    assert GUESS.count_json(f'{{"{"a" * 10}":"{"b" * 10}","{"c" * 10}":{{}}}}') == round(9.42)


def test_the_guess_at_a_schema_is_near_what_a_tokenizer_counts() -> None:
    """The published schema has 347 tokens of o200k_base."""
    assert 330 < GUESS.count_json(load_schema().compact) < 380


def test_a_request_is_its_messages_their_frames_and_the_schema() -> None:
    """100 letters are 21 tokens; the schema's 50 digits 27, and 1.56 its two runs: 29."""
    texts = ["a" * 100, "b" * 100]
    schema = '["' + "7" * 50 + '"]'
    frames = 2 * MESSAGE_FRAME + REPLY_FRAME
    assert GUESS.request(texts, schema) == 21 + 21 + 29 + frames
    assert GUESS.request_at_most(texts, schema) == 100 + 100 + 54 + frames


class Words:
    """Stands for a ``tiktoken.Encoding``: a token is a word."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode_ordinary(self, text: str) -> list[int]:
        """One number a word."""
        return [len(word) for word in text.split()]


def encoding_name_for_model(model: str) -> str:
    """Knows one model, as tiktoken knows many."""
    return {"known": "cl100k_base", "harmonious": "o200k_harmony", "old": "gpt2"}[model]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where tiktoken, which is stood in for, keeps its files: both are there."""
    package, model = ModuleType("tiktoken"), ModuleType("tiktoken.model")
    package.get_encoding = Words  # type: ignore[attr-defined]  # modules have no types
    model.encoding_name_for_model = encoding_name_for_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", package)
    monkeypatch.setitem(sys.modules, "tiktoken.model", model)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tokens, "_FILES", {name: sha256(name) for name in tokens._FILES})
    for name in tokens._FILES:
        file_of(name, tmp_path).write_text(name)
    return tmp_path


def sha256(text: str) -> str:
    """Of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_of(name: str, folder: Path) -> Path:
    """Where tiktoken keeps an encoding: under the digest of its address."""
    address = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    return folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()


@pytest.mark.usefixtures("cache")
def test_a_tokenizer_counts_where_its_file_is_at_hand() -> None:
    """Its count is a bound too, where tiktoken knows the model."""
    counter = counter_for("known")
    assert counter.name == "tiktoken cl100k_base"
    assert counter.count("<|endoftext|> three words") == 3
    assert counter.at_most("<|endoftext|> three words") == 3


@pytest.mark.usefixtures("cache")
def test_a_model_that_tiktoken_does_not_know_has_a_looser_bound() -> None:
    """The encoding is marked as assumed."""
    counter = counter_for("brand-new")
    assert counter.name == "tiktoken o200k_base (assumed)"
    assert counter.count("three words here") == 3
    assert counter.at_most("three words here") == len("three words here")


@pytest.mark.usefixtures("cache")
def test_encodings_that_share_a_file_need_only_that() -> None:
    """One is the other with more control tokens."""
    assert counter_for("harmonious").name == "tiktoken o200k_harmony"


def test_a_missing_file_is_not_fetched(cache: Path) -> None:
    """The guess stands in for it."""
    file_of("cl100k_base", cache).unlink()
    assert counter_for("known") == GUESS


def test_a_damaged_file_is_not_replaced(cache: Path) -> None:
    """Tiktoken would delete it and fetch another."""
    file_of("cl100k_base", cache).write_text("damaged")
    assert counter_for("known") == GUESS
    assert file_of("cl100k_base", cache).read_text() == "damaged"


@pytest.mark.usefixtures("cache")
def test_an_encoding_whose_digest_is_not_known_is_left_alone() -> None:
    """Its file cannot be verified."""
    assert counter_for("old") == GUESS


def test_a_cache_that_is_turned_off_is_not_read(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty name, tiktoken fetches every time, whatever the current folder holds."""
    monkeypatch.chdir(cache)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert counter_for("known") == GUESS


def test_the_older_name_of_the_cache_counts_too(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in tiktoken: after the newer one."""
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    assert counter_for("known").name == "tiktoken cl100k_base"


def test_without_tiktoken_the_guess_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an optional part."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert counter_for("known") == GUESS
