"""Tokens and what they cost: by hand, as in the table, and never above the worst case."""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from types import ModuleType

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.judges import tokens
from labeler.judges.pricing import Price, Rates, find_price, given_price
from labeler.judges.tokens import (
    MESSAGE_FRAME,
    REPLY_FRAME,
    TokenCounter,
    counter_for,
    request_tokens_at_least,
)
from labeler.labels.record import Usage
from labeler.labels.signature import load_schema

WRITES_COST_MORE = given_price("2,10,0.2,2.5")
"""Cached input costs a tenth, a cache write a quarter more."""


def rates(uncached: str, output: str, cached: str, written: str) -> Rates:
    """Rates of the first tier."""
    return Rates(Decimal(uncached), Decimal(output), Decimal(cached), Decimal(written))


def usage(prompt: int, output: int = 0, *, cached: int = 0, written: int = 0) -> Usage:
    """One request's tokens."""
    cache = {"cached_tokens": cached, "cache_write_tokens": written}
    return Usage(prompt_tokens=prompt, completion_tokens=output, **cache)


TIERED = Price(
    (rates("1", "4", "0.1", "1"), rates("2", "6", "0.2", "2")._replace(above=1000)), "a test"
)


@pytest.mark.parametrize(
    ("price", "used", "cost"),
    [
        # 1,000 plain, 2,000 cached, 4,000 written and 500 answered: 2,000 + 400 + 10,000 + 5,000.
        (WRITES_COST_MORE, usage(7000, 500, cached=2000, written=4000), "0.0174"),
        # A cache that never matches costs a quarter more.
        (WRITES_COST_MORE, usage(4500), "0.009"),
        (WRITES_COST_MORE, usage(4500, written=4500), "0.01125"),
        # A batch costs half where no table says otherwise; asked twice, it is not halved twice.
        (WRITES_COST_MORE.batched(), usage(7000, 500, cached=2000, written=4000), "0.0087"),
        (WRITES_COST_MORE.batched().batched(), usage(4500), "0.0045"),
        # A long prompt is dearer as a whole: one token above the limit, for every token.
        (TIERED, usage(1000, 100), "0.0014"),
        (TIERED, usage(1001, 100), "0.002602"),
        # More cached than sent is all cached; less than nothing is nothing.
        (WRITES_COST_MORE, usage(100, cached=900), "0.00002"),
        (WRITES_COST_MORE, usage(100, cached=90, written=900), "0.000043"),
        (WRITES_COST_MORE, usage(-5, -5, cached=-5, written=-5), "0"),
    ],
)
def test_each_kind_of_token_has_its_own_price(price: Price, used: Usage, cost: str) -> None:
    """Dollars, by hand."""
    assert price.cost(used) == Decimal(cost)


amounts = st.decimals(0, 1000, places=4)
counts = st.integers(0, 10**7)


@st.composite
def prices(draw: st.DrawFn) -> Price:
    """Prices of one to three tiers, which need not rise."""
    starts = [0, *sorted(draw(st.sets(st.integers(1, 10**7), max_size=2)))]
    drawn = st.builds(Rates, amounts, amounts, amounts, amounts)
    return Price(tuple(draw(drawn)._replace(above=start) for start in starts), "drawn")


@given(prices(), counts, counts, st.data())
def test_nothing_costs_more_than_the_worst(
    price: Price, prompt: int, output: int, data: st.DataObject
) -> None:
    """Within the bounds, with which it grows; a batch costs half of it."""
    sent = data.draw(st.integers(0, prompt))
    cached = data.draw(st.integers(0, sent))
    written = data.draw(st.integers(0, sent - cached))
    answered = data.draw(st.integers(0, output))
    cost = price.cost(usage(sent, answered, cached=cached, written=written))
    worst = price.worst(prompt, output)
    assert cost <= worst
    assert worst <= price.worst(prompt + data.draw(counts), output + data.draw(counts))
    assert price.batched().worst(prompt, output) * 2 == worst


BATCH = {"processing": "batch"}


def openai_models() -> list[str]:
    """Names of OpenAI's models in the table."""
    calculated = genai_prices.calc_price(genai_prices.Usage(), "gpt-4o", provider_id="openai")
    return [model.id for model in calculated.provider.models]


def theirs(model: str, used: Usage, context: dict[str, str], days: int) -> Decimal:
    """The table's own price, a number of days from now."""
    counts = genai_prices.Usage(
        input_tokens=used.prompt_tokens,
        cache_read_tokens=used.cached_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.completion_tokens,
    )
    return genai_prices.calc_price(
        counts,
        model,
        provider_id="openai",
        price_context=context,
        genai_request_timestamp=datetime.now(tz=UTC) + timedelta(days=days),
    ).total_price


def test_the_table_is_read_as_its_keepers_read_it() -> None:
    """OpenAI's models that are priced by token cost the same there and here, to the digit."""
    compared = 0
    requests = usage(900, 70, cached=512), usage(300_000, 9, cached=1024, written=7)
    for model, context, used in product(openai_models()[::3], ({}, BATCH), requests):
        price = find_price(model)
        if price is None or (context and price.batch_tiers is None):
            continue
        expected = theirs(model, used, context, days=0)
        if expected == theirs(model, used, context, days=1):  # no change of price is near
            compared += 1
            assert (price.batched() if context else price).cost(used) == expected
    assert compared > 60


AZURE, DEEPSEEK = "https://example.openai.azure.com/openai/v1", "https://api.deepseek.com/v1"


@pytest.mark.parametrize(
    ("model", "base_url", "named"),
    [
        ("gpt-5.6", None, ["openai gpt-5.6-sol", "verified 20", genai_prices.__version__]),
        ("gpt-4o", AZURE, ["azure"]),
    ],
)
def test_the_source_of_a_price_names_its_entry_and_provider(
    model: str, base_url: str | None, named: list[str]
) -> None:
    """An alias is another entry with its own date; the address decides before the name."""
    price = find_price(model, base_url)
    assert price is not None
    assert [text for text in named if text not in price.source] == []
    assert (price.batch_tiers is None) == (base_url is not None)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        *(("no-such-model", None), ("claude-3-opus", None)),
        ("gpt-4o", "http://127.0.0.1:8000/v1"),
        ("sonar-deep-research", "https://api.perplexity.ai"),
    ],
)
def test_what_the_table_cannot_price_by_token_has_no_price(
    model: str, base_url: str | None
) -> None:
    """Unknown models, models of another provider, private servers, and charges per request."""
    assert find_price(model, base_url) is None


def test_a_price_that_depends_on_the_hour_is_the_dearest() -> None:
    """A run may last through all of them."""
    price, now = find_price("deepseek-chat", DEEPSEEK), datetime.now(tz=UTC)
    used, asked = genai_prices.Usage(input_tokens=1000, output_tokens=1000), "deepseek-chat"
    by_the_hour = {
        genai_prices.calc_price(
            *(used, asked),
            provider_api_url=DEEPSEEK,
            genai_request_timestamp=now + timedelta(hours=hour),
        ).total_price
        for hour in range(24)
    }
    assert len(by_the_hour) > 1
    assert price is not None
    assert price.cost(usage(1000, 1000)) >= max(by_the_hour)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.25,2", ("0.25", "2", "0.25", "0.25")),
        ("0.25,2,0.025", ("0.25", "2", "0.025", "0.25")),
        (" 0.25, 2, 0.025, 0.3125 ", ("0.25", "2", "0.025", "0.3125")),
        ("0,0", ("0", "0", "0", "0")),
    ],
)
def test_a_price_can_be_stated(text: str, expected: tuple[str, str, str, str]) -> None:
    """It comes before the table. Omitted rates equal the rate of uncached input."""
    price = find_price("gpt-4o", given=text)
    assert price is not None
    assert price.tiers == (rates(*expected),)
    assert price.source.startswith("--price ")


GUESS = TokenCounter()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("", 0), (" \n\t", 0), ("a" * 100, 21), ("A" * 100, 37), ("7" * 100, 54)),
        *(("-" * 100, 78), ("é" * 10, 17), ("я" * 10, 4), ("ह" * 100, 45), ("“" * 100, 175)),
        *(("水" * 100, 67), ("😀" * 10, 25), ("Ab 1.", 2), ("\ud800", 1)),
    ],
)
def test_each_kind_of_character_has_its_weight(text: str, expected: int) -> None:
    """The last but one: .37 + .21 + 0 + .54 + .78 is 1.9. A lone surrogate is sent as one byte."""
    assert GUESS.count(text) == expected
    assert GUESS.at_most(text) == len(text.encode("utf-8", "replace"))


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


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text())
def test_a_longer_text_never_has_fewer_tokens(text: str, more: str) -> None:
    """By the guess and by the bound, bytes, as no token of a byte-level vocabulary is shorter."""
    assert GUESS.count(text) <= GUESS.count(text + more)
    assert GUESS.at_most(text) == len(text.encode()) <= GUESS.at_most(text + more)


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


def test_a_request_is_its_messages_their_frames_and_the_schema() -> None:
    """100 letters are 21 tokens; the schema's 50 digits 27, its two runs of marks 1.56: 29."""
    texts = ["a" * 100, "b" * 100]
    schema = '["' + "7" * 50 + '"]'
    frames = 2 * MESSAGE_FRAME + REPLY_FRAME
    assert GUESS.request(texts, schema) == 21 + 21 + 29 + frames
    assert GUESS.request_at_most(texts, schema) == 100 + 100 + 54 + frames
    # Four runs, of .78 each, round 30 letters at .21.
    assert GUESS.count_json(f'{{"{"a" * 10}":"{"b" * 10}","{"c" * 10}":{{}}}}') == round(9.42)
    # The published schema has 347 tokens of o200k_base.
    assert 330 < GUESS.count_json(load_schema().compact) < 380


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
@pytest.mark.parametrize(
    ("model", "name", "most"),
    [
        ("known", "tiktoken cl100k_base", 3),
        # A model that tiktoken does not know has a looser bound, and its encoding is assumed.
        ("brand-new", "tiktoken o200k_base (assumed)", 25),
        # Encodings that share a file need only that.
        ("harmonious", "tiktoken o200k_harmony", 3),
    ],
)
def test_a_tokenizer_counts_where_its_file_is_at_hand(model: str, name: str, most: int) -> None:
    """Its count is a bound too, where tiktoken knows the model."""
    counter = counter_for(model)
    text = "<|endoftext|> three words"
    assert (counter.name, counter.count(text), counter.at_most(text)) == (name, 3, most)


def test_where_a_tokenizer_cannot_be_trusted_the_guess_counts(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiktoken would fetch a missing file and replace a damaged one; both variables count."""
    monkeypatch.chdir(cache)  # whatever the current folder holds
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert counter_for("known") == GUESS
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    assert counter_for("known").name == "tiktoken cl100k_base"
    assert counter_for("old") == GUESS  # its digest is not known
    file_of("cl100k_base", cache).write_text("damaged")
    assert counter_for("known") == GUESS
    assert file_of("cl100k_base", cache).read_text() == "damaged"
    file_of("cl100k_base", cache).unlink()
    assert counter_for("known") == GUESS
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert counter_for("harmonious") == GUESS
