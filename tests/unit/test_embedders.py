"""Embedders that need no server: by spelling, and by a table that lies in a package."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from labeler.errors import UsageError
from labeler.judges.openai.address import NO_KEY
from labeler.judges.options import JudgeOptions
from labeler.plugins.similarity.embedders import (
    Embedder,
    Vector,
    WordLlamaEmbedder,
    cosine,
    key_of_embedder,
    server_of_embedder,
)

ASKED = "How much does the lamp cost?"
REWORDED = "What is the price of the lamp?"
FAR = "Where do penguins breed?"


def vectors(embedder: Embedder, *texts: str) -> list[Vector]:
    """The vectors of texts; each has one."""
    found = asyncio.run(embedder.embed(texts))
    assert found.facts.attempts == 0
    assert all(isinstance(vector, tuple) for vector in found.vectors)
    return [vector for vector in found.vectors if isinstance(vector, tuple)]


def likeness(embedder: Embedder, text: str) -> float:
    """How like the question a text is."""
    one, other = vectors(embedder, ASKED, text)
    return cosine(one, other) or 0.0


HAS_WORDLLAMA = find_spec("wordllama") and find_spec("tokenizers") and find_spec("safetensors")


@pytest.mark.skipif(not HAS_WORDLLAMA, reason="the extra 'embeddings' is not installed")
def test_what_means_the_same_in_other_words_is_alike_by_the_table(tmp_path: Path) -> None:
    """The package is not imported, which would set up logging; one without its files is named."""
    embedder = WordLlamaEmbedder()
    assert "wordllama" not in sys.modules
    assert str(embedder.spec) == "wordllama/l2_supercat_256@4d243a4b2dae/256"
    assert likeness(embedder, REWORDED) > 0.7
    assert likeness(embedder, FAR) < 0.3
    assert not any(*vectors(embedder, ""))
    with pytest.raises(UsageError, match=r"\[embeddings\]"):
        WordLlamaEmbedder(tmp_path)


def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And with what works without it; so is one that reads the files of the table."""
    with monkeypatch.context() as absent:
        absent.setitem(sys.modules, "safetensors", None)
        with pytest.raises(UsageError, match=r"package safetensors, .*\[embeddings\]"):
            WordLlamaEmbedder(tmp_path)
    monkeypatch.setattr("labeler.plugins.similarity.embedders.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"wordllama, .*\[embeddings\].*openai:MODEL"):
        WordLlamaEmbedder()


@pytest.mark.parametrize(
    ("judge", "base_url", "url", "is_same"),
    [
        ("openai:m", None, None, True),
        ("openai:m", "https://a.test/v1", None, True),
        ("openai:m", "https://a.test/v1", "https://a.test/v2", True),
        ("openai:m", "https://a.test/v1", "https://b.test/v1", False),
        (object(), None, None, True),
        ("anthropic:m", None, None, False),
    ],
)
def test_credentials_of_the_judges_host_go_to_no_other(
    judge: object,
    base_url: str | None,
    url: str | None,
    is_same: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The embedder has an address of its own, or OpenAI's."""
    given = JudgeOptions(
        judge=judge,  # type: ignore[arg-type]  # a judge that a caller made, too
        base_url=base_url,
        header=["x-team=@TEAM"],
        api_key_command="print-key",
        ca_file="ca.pem",
    )
    found = server_of_embedder(given, url)
    kept = (["x-team=@TEAM"], "print-key") if is_same else (None, None)
    assert (found.header, found.api_key_command) == kept
    assert (found.base_url, found.ca_file) == (url or base_url, "ca.pem")
    keys = [key_of_embedder(found, given)]
    monkeypatch.setenv("EMBEDDER_API_KEY", "own")
    keys.append(key_of_embedder(found, given))
    assert keys == ([NO_KEY, "own"] if url == "https://b.test/v1" else [None, None])
