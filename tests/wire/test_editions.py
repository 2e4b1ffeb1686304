"""Editions: stored labels cost nothing in their own, and no run mixes two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeler
from command import Command
from labeler.api import iter_scores, stored_outcomes
from labeler.errors import UsageError
from labeler.integrations.batch.client import OpenAIBatches
from labeler.integrations.ray.run import Plan, plan
from labeler.integrations.ray.shards import FOLDER
from labeler.integrations.ray.worker import Work
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.pricing import given_price
from labeler.labeling.editions import EDITIONS, splitter_of
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.store.memory import MemoryStore
from labeler.store.merge import import_labels
from wire.provider import Provider
from wire.runs import KEY, Watch, judge_of, row_file

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
    labeler.label(ROWS, judge="embedded:lexical-1", store=store, edition=1)
    assert (len(provider.calls), len(store)) == (0, before)


# A run without an edition on a store of edition 1


def command_of(provider: Provider, *command: object) -> list[object]:
    """A command about the old rows and the provider, with a price."""
    rows = row_file(Path(), ROWS)
    server = ["--model", "m", "--base-url", provider.url, "--price", "1,2"]
    return [*command, rows, *server, "--store", "store"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["label"], []),
        (["label"], ["--profile", "auto"]),
        (["label"], ["--profile", "claims", "--trial", 7]),
        (["label"], ["--repeat", 2]),
        (["label"], ["--judges", "embedded,openai:m"]),
        (["label"], ["--canaries", 1]),
        (["label"], ["--map", "id=question"]),
        (["score"], ["--criteria", "rubric_faithfulness"]),
        (["similarity"], ["--embedder", "lexical"]),
        (["batch", "submit"], []),
    ],
    ids=lambda given: " ".join(map(str, given)),
)
def test_a_run_that_names_no_edition_stops_before_any_spend(
    provider: Provider,
    labeler_command: Command,
    monkeypatch: pytest.MonkeyPatch,
    command: list[object],
    options: list[object],
) -> None:
    """Whatever it asks for; both ways on are named, with their price where one is known."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    before = len(list(stored_outcomes(old_store(Path("store")))))
    code, out, err = labeler_command(*command_of(provider, *command), *options)
    assert (code, out, provider.requests) == (2, "", [])
    is_known = 7 not in options and command != ["similarity"]
    stored = "0 calls for what is stored" if is_known else "none is of these rows and options"
    assert f"Add --edition 1 to go on with them ({stored})" in err
    assert "or --edition 2 to label again (3 rows, " in err
    assert ("about $0.0" in err) == (command[0] not in {"score", "similarity"})
    assert len(list(stored_outcomes("store"))) == before


def test_a_run_on_ray_stops_before_ray_starts(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels of the whole store count, and those of a part that an earlier run bought."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.Table.from_pylist(ROWS), "rows.parquet")

    def planned(store: str, **options: Any) -> Plan:
        judge = judge_of(provider, price=given_price("1,2"))
        asked = Work(lambda: judge, f"{store}-labels", LabelOptions(store=store, **options))
        return plan(["rows.parquet"], asked)

    part = planned("empty", edition=1).parts[0].name
    old_store(Path("whole"))
    old_store(Path("parts") / FOLDER / part)
    both = r"Add --edition 1 .*\(0 calls .*, or --edition 2 to label again \(3 rows, about \$0\.0"
    for store in ("whole", "parts"):
        with pytest.raises(UsageError, match=both):
            planned(store)
    assert provider.requests == []


def test_each_edition_is_labeled_by_its_name_and_kept_apart(
    provider: Provider, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edition 2 is bought once; from then on the rows are those of the default."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    old_store(Path("store"))
    run = command_of(provider, "label")
    assert labeler_command(*run, "--edition", 2)[0] == 0
    assert len(provider.calls) == len(ROWS)
    for named in ([], ["--edition", 1], ["--edition", 2], ["--prompt", "v1"]):
        code, out, _ = labeler_command(*run, *named)
        made = {line["signature"]["prompt"]["name"] for line in map(json.loads, out.splitlines())}
        assert (code, made) == (0, {"trace/v1" if "1" in str(named) else "trace/v2"})
    assert len(provider.calls) == len(ROWS)
    rows = {str(row.signature) for row in labeler.summary(labeler.read_labels("store"))}
    assert {"trace/v1@" in each for each in rows} == {True, False}


def test_rows_that_one_edition_lacks_are_not_bought_unasked(provider: Provider) -> None:
    """Also if it has the first row; as soon as it has all, there is nothing to ask."""
    store, judge = old_store(), judge_of(provider)
    labeler.label(ROWS[:1], judge=judge, store=store, edition=2)
    with pytest.raises(UsageError, match=r"--edition 1 .* --edition 2 to label again"):
        labeler.label(ROWS, judge=judge, store=store)
    assert len(provider.calls) == 1
    labeler.label(ROWS[:1], judge=judge, store=store)
    assert len(provider.calls) == 1


def test_a_named_splitter_leaves_the_prompt_to_be_named(provider: Provider) -> None:
    """Labels of general/2 under the first prompts are found by what made them."""
    store = MemoryStore()
    made: dict[str, Any] = {"splitter": "general/2", "prompt": "v1"}
    asked: dict[str, Any] = {"judge": judge_of(provider), "store": store}
    labeler.label(ROWS, **asked, **made)
    with pytest.raises(UsageError, match=r"Add --prompt v1 .* or --prompt v2 to label again"):
        labeler.label(ROWS, **asked, splitter="general/2")
    labeler.label(ROWS, **asked, **made)
    assert len(provider.calls) == len(ROWS)


def test_rows_in_a_batch_of_edition_1_are_not_bought_again(
    provider: Provider, tmp_path: Path
) -> None:
    """A batch on its way is as good as stored."""
    judge = judge_of(provider, price=given_price("1,2"))
    service = OpenAIBatches(api_key=KEY, base_url=provider.url)
    labeler.submit_batch(ROWS, judge=judge, batches=service, store=tmp_path, edition=1)
    with pytest.raises(UsageError, match="--edition 1"):
        labeler.label(ROWS, judge=judge_of(provider), store=tmp_path)
    assert not provider.calls


def test_labels_that_cost_nothing_are_made_again(provider: Provider) -> None:
    """A notice says so once; the old ones stay, and stop no paid run about other rows."""
    store, watch = MemoryStore(), Watch()
    labeler.label(ROWS, judge="embedded:lexical-1", store=store, edition=1)
    for _ in range(2):
        labeler.label(ROWS, judge="embedded", store=store, listener=watch)
    assert [text for text in watch.notices if "--edition 1 takes the stored labels" in text] == (
        watch.notices[:1]
    )
    assert len(store) == 2 * len(ROWS)
    labeler.label(ROWS, judge=judge_of(provider), store=store)
    assert len(provider.calls) == len(ROWS)


def test_a_configuration_file_names_the_edition(
    provider: Provider, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all commands."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    old_store(Path("store"))
    Path("labeler.toml").write_text("[judge]\nedition = 1\n")
    assert labeler_command(*command_of(provider, "label"))[0] == 0
    assert not provider.requests


def test_an_estimate_shows_the_cost_of_both_editions(
    provider: Provider, labeler_command: Command
) -> None:
    """That of edition 1 is nothing."""
    old_store(Path("store"))
    code, out, _ = labeler_command(*command_of(provider, "estimate"))
    assert code == 0
    assert "edition 1: 3 stored, 0 requests, cost $0.0000" in out
    assert "edition 2: 0 stored, 3 requests, cost $0.0" in out
    found = labeler.estimate(ROWS, model="m", store="store", edition=1)
    assert (found.edition, found.other_edition, found.rows.asked) == (1, None, 0)


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


@pytest.mark.parametrize(
    ("edition", "named"),
    [
        (1, {"prompt": "v2"}),
        (2, {"prompt": "claims/v1"}),
        (2, {"splitter": "general"}),
        (1, {"splitter": "general/2"}),
    ],
)
def test_editions_are_not_mixed(edition: int, named: dict[str, Any]) -> None:
    """An edition and a part of another one contradict each other."""
    with pytest.raises(UsageError, match="one run mixes no editions"):
        label_tasks(EmbeddedJudge(), LabelOptions(edition=edition, **named))


def test_an_unknown_edition_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(UsageError, match=r"unknown edition 9; have: 1, 2"):
        splitter_of(LabelOptions(edition=9))
