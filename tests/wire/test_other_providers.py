"""Judges of other providers against servers that speak as these do."""

from __future__ import annotations

import pytest

import labeler
from labeler.labels.record import LabelRecord
from labeler.store.memory import MemoryStore
from wire.provider import Provider
from wire.runs import KEY, rows


@pytest.mark.parametrize(("judge", "mode"), [("mistral:m", "tools"), ("ollama:m", "strict")])
def test_a_preset_asks_as_its_provider_expects(
    judge: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cap by its old name, no fields of OpenAI's alone, and the provider's name in the key."""
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    with Provider(modes=[mode]) as provider:
        (outcome,) = labeler.label(
            rows(1),
            judge=judge,
            base_url=provider.url,
            max_output_tokens=900,
            store=MemoryStore(),
        )
    (call,) = provider.calls
    assert isinstance(outcome, LabelRecord)
    assert (outcome.signature.judge, outcome.signature.model) == (judge[:-2], "m")
    assert (call.mode, call.body["max_tokens"]) == (mode, 900)
    assert not {"prompt_cache_key", "max_completion_tokens"} & call.body.keys()
