"""Editions: stored labels cost nothing in their own, and no run mixes two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import iter_scores, stored_outcomes
from labeler.errors import UsageError
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.labeling.editions import EDITIONS, splitter_of
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.store.memory import MemoryStore
from labeler.store.merge import import_labels
from wire.provider import Provider
from wire.runs import judge_of

GOLDEN = Path(__file__).parents[1] / "golden" / "edition-1"
"""Rows, and every record of a store that the package made of them before it had editions."""
*ROWS, LONG = map(json.loads, (GOLDEN / "rows.jsonl").read_text().splitlines())


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider that answers everything."""
    with Provider() as provider:
        yield provider


def old_store(folder: Path | None = None) -> Any:
    """The store of edition 1, in memory or in a folder."""
    outcomes = stored_outcomes(GOLDEN / "records.jsonl")
    if folder is not None:
        import_labels(outcomes, folder)
        return folder
    store = MemoryStore()
    for record in outcomes:
        store.put(record)  # type: ignore[arg-type]  # the file has no failure
    return store


# Edition 1 is what it was


@pytest.mark.parametrize("named", [{"edition": 1}, {"prompt": "v1"}, {"splitter": "general"}])
@pytest.mark.parametrize(
    "asked",
    [{}, {"profile": "auto"}, {"repeat": 2}, {"rows": [LONG], "max_input_tokens": 1250}],
    ids=["trace", "auto", "votes", "windows"],
)
def test_labels_of_edition_1_cost_nothing_in_it(
    provider: Provider, asked: dict[str, Any], named: dict[str, Any]
) -> None:
    """Whichever way it is named, all requests are those of the store."""
    given = {"rows": ROWS, **asked, **named}
    rows, store = given.pop("rows"), old_store()
    before = len(store)
    found = labeler.label(rows, judge=judge_of(provider), store=store, **given)
    assert not found.failures
    assert (len(provider.calls), len(store)) == (0, before)


def test_scores_and_free_labels_of_edition_1_are_found_in_it(provider: Provider) -> None:
    """The splitter is part of their keys."""
    store = old_store()
    before = len(store)
    asked = {"criteria": "rubric_faithfulness", "store": store, "edition": 1}
    scores = list(iter_scores(ROWS[:2], judge=judge_of(provider), **asked))
    assert [score.kind for score in scores] == ["score", "score"]
    labeler.label(ROWS, judge="embedded", store=store, edition=1)
    assert (len(provider.calls), len(store)) == (0, before)


# What a run names


@pytest.mark.parametrize("profile", ["trace", "claims", "reference", "auto"])
def test_a_prompt_may_be_named_by_its_version(profile: str) -> None:
    """Every profile has its own prompt of the version, and the version's schema."""
    tasks = label_tasks(EmbeddedJudge(), LabelOptions(profile=profile, prompt="v1"))
    asked = [(tasks.prompt, tasks.schema), tasks.where_referenced or (tasks.prompt, tasks.schema)]
    own = ["claims", "reference"] if profile == "auto" else [profile, profile]
    assert [(prompt.name, schema.name) for prompt, schema in asked] == [
        (f"{name}/v1", f"label-{name}/v1") for name in own
    ]


@pytest.mark.parametrize("edition", EDITIONS)
def test_an_edition_is_a_splitter_and_prompts(edition: int) -> None:
    """Naming it is naming both."""
    tasks = label_tasks(EmbeddedJudge(), LabelOptions(edition=edition))
    named = EDITIONS[edition]
    assert tasks == label_tasks(
        tasks.judge, LabelOptions(splitter=named.splitter, prompt=named.prompts)
    )


def test_an_unknown_edition_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(UsageError, match=r"unknown edition 9; have: 1"):
        splitter_of(LabelOptions(edition=9))
