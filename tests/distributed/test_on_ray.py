"""Labeling on Ray: each row once, also when a worker is killed, and never beyond the budget."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Event

import pytest

import labeler
from command import Command
from distributed.ray_run import SECONDS, Cluster, Gate, bucket, cluster, labeling, numbers
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store.disk import DiskStore
from parquet_rows import outcomes_in, write_rows
from wire.provider import Provider, error

ROWS = 60
IN_FLIGHT = 4
PRICE = "10,100"


def hosted(provider: Provider) -> list[object]:
    """The options that name the server."""
    return ["--judge", "openai", "--model", "m", "--base-url", provider.url]


def asked(provider: Provider) -> int:
    """How many completions were asked for."""
    return provider.routes["POST /v1/chat/completions"]


def keys(store: Path) -> list[str]:
    """The keys of a store's labels."""
    with DiskStore(store, create=False) as labels:
        return [record.key for record in labels]


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, str]]:
    """The variables that name a bucket's server."""
    with bucket() as variables:
        yield json.loads(variables)


@pytest.fixture(scope="module")
def ray_cluster(storage: dict[str, str]) -> Iterator[Cluster]:
    """Two processors."""
    with cluster(storage) as running:
        yield running


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two files of rows, in parts of ten."""
    for file in (0, 1):
        write_rows(tmp_path / "in" / f"{file}.parquet", ROWS // 2, first=ROWS // 2 * file, group=10)
    return tmp_path / "in"


def test_a_wrong_key_ends_the_run_with_its_words(tmp_path: Path, rows: Path) -> None:
    """No row is labeled, and none is a failure; Ray is started for this run alone."""
    with Provider(itertools.repeat(error(401, "invalid_api_key")), record=False) as provider:
        options = ["--input", rows, "-o", "labels", "--workers", 1, *hosted(provider)]
        with labeling(tmp_path, *options) as run:
            code, said = run.end()
    assert code == 2
    assert "key" in said
    assert "sk-none" not in said
    assert "logging.cc" not in said
    assert outcomes_in(tmp_path / "labels") == []


def test_a_killed_worker_costs_what_it_had_in_flight_and_no_row(
    tmp_path: Path, rows: Path, ray_cluster: Cluster, labeler_command: Command
) -> None:
    """All rows have one label, those of one machine; nothing else is bought twice."""
    gate = Gate(25)
    with Provider(latency=lambda _: gate.latency(), record=False) as provider:
        options = ["--input", rows, "-o", "labels", "--concurrency", IN_FLIGHT, *hosted(provider)]
        with labeling(tmp_path, *options, **ray_cluster.variables) as run:
            assert gate.reached.wait(SECONDS)
            ray_cluster.kill_a_worker()
            code, said = run.end()
        assert code == 0, said
        outcomes = outcomes_in(tmp_path / "labels")
        assert all(isinstance(one, LabelRecord) for one in outcomes)
        assert sorted(one.id for one in outcomes) == sorted(f"r{n}" for n in range(ROWS))
        assert ROWS <= asked(provider) <= ROWS + IN_FLIGHT
        paid = asked(provider)

        shards = tmp_path / ".labeler" / "shards"
        assert labeler_command("store", "merge", shards, "--into", tmp_path / "all")[0] == 0
        files = sorted(rows.iterdir())
        alone = [*files, "-o", "alone.jsonl", "--store", "all", *hosted(provider)]
        code, _, said = labeler_command("label", *alone)
        assert code == 0, said
        assert asked(provider) == paid  # one machine finds each label under the key that Ray gave
        assert len(keys(tmp_path / "all")) == ROWS


def test_a_run_that_is_broken_off_says_what_it_stored_and_the_next_one_goes_on(
    tmp_path: Path, rows: Path, ray_cluster: Cluster
) -> None:
    """Nobody takes paid labels for lost."""
    gate, broken_off = Gate(9), Event()

    def latency(_: object) -> float:
        gate.latency()
        return SECONDS if gate.reached.is_set() and not broken_off.is_set() else 0.0

    with Provider(latency=latency, record=False) as provider:
        options = ["--input", rows, "-o", "labels", "--concurrency", 1, *hosted(provider)]
        with labeling(tmp_path, *options, **ray_cluster.variables) as run:
            assert gate.reached.wait(SECONDS)
            broken_off.set()
            run.interrupt()
            _, said = run.end()
        assert re.search(r"\d labels of the 6 parts that are not written yet are stored", said), (
            said
        )
        with labeling(tmp_path, *options, **ray_cluster.variables) as run:
            code, said = run.end()
        assert code == 0, said
        assert asked(provider) <= ROWS + 2  # what each worker had in flight


def test_workers_keep_to_one_budget_and_the_next_run_goes_on(
    tmp_path: Path, rows: Path, ray_cluster: Cluster
) -> None:
    """What is left is asked then, and nothing twice."""
    with Provider(count_tokens=True, record=False) as provider:
        options = [
            *("--input", rows, "-o", "labels", "--concurrency", IN_FLIGHT, *hosted(provider)),
            *("--price", PRICE, "--max-output-tokens", 400),
        ]
        budget = Decimal("0.90")
        with labeling(tmp_path, *options, "--budget", budget, **ray_cluster.variables) as run:
            code, said = run.end()
        assert code == 4, said
        prompt, completion = provider.tokens
        million = Decimal(1_000_000)
        assert Decimal(0) < (prompt * 10 + completion * 100) / million <= budget
        assert 0 < asked(provider) < ROWS

        with labeling(tmp_path, *options, **ray_cluster.variables) as run:
            code, said = run.end()
        assert code == 0, said
        assert asked(provider) == ROWS
        outcomes = outcomes_in(tmp_path / "labels")
        assert len(outcomes) == ROWS
        assert [one for one in outcomes if isinstance(one, LabelFailure)] == []


FILES = (
    "import sys, fsspec; files = fsspec.filesystem('s3'); "
    "getattr(files, sys.argv[1])(*sys.argv[2:], recursive=True)"
)
"""A program that copies to a bucket or from it."""


def copied(how: str, source: object, target: object, variables: dict[str, str]) -> None:
    """Copy a folder, in a process of its own."""
    subprocess.run(
        [sys.executable, "-c", FILES, how, str(source), str(target)],
        check=True,
        env={**os.environ, **variables},
    )


def test_workers_judge_each_retrieval_once_and_without_a_response(
    tmp_path: Path, storage: dict[str, str], ray_cluster: Cluster, labeler_command: Command
) -> None:
    """Its rows stand in all parts; the labels are those of one machine, and bought once.

    Rows and partitions are in a bucket. A row that failed stands where nothing is left to do.
    """
    lamps, rows = 3, range(12)
    for file, group in enumerate((rows[:6], rows[6:])):
        write_rows(
            tmp_path / "in" / f"{file}.parquet",
            len(group),
            first=group[0],
            group=2,
            question=[f"How long is lamp {n % lamps}?" for n in group],
            documents=[["A lamp is 90 cm long.", "It was built of oak."]] * len(group),
            response=[f"RESPONSE {n} is 90 cm long." if n else None for n in group],
        )
    copied("put", f"{tmp_path / 'in'}/", "s3://harbour/in/", storage)
    variables = {**storage, **ray_cluster.variables}
    labeled = len(rows) - 1
    with Provider() as provider:
        options = ["--relevance", "blind", *hosted(provider)]
        on_ray = ["--input", "s3://harbour/in/*.parquet", "-o", "s3://harbour/labels", *options]
        for parts in (6, 0):
            with labeling(tmp_path, *on_ray, **variables) as run:
                code, said = run.end()
            assert code == 1, said
            assert f"{parts} parts written" in said
            assert "1 failed (missing_field 1)" in said
        assert f"{labeled} labeled before" in said
        blind = [call for call in provider.calls if "RESPONSE" not in call.data]
        assert len(provider.calls) == lamps + labeled
        assert len({str(call.data["QUESTION"]) for call in blind}) == len(blind) == lamps
        assert not any(b"RESPONSE" in call.raw for call in blind)
        files = sorted((tmp_path / "in").iterdir())
        alone = [*files, "-o", tmp_path / "alone.jsonl", "--store", tmp_path / "alone", *options]
        assert labeler_command("label", *alone)[0] == 1
    copied("get", "s3://harbour/labels", tmp_path / "labels", storage)
    found, expected = (
        outcomes_in(tmp_path / "labels"),
        labeler.read_labels(tmp_path / "alone.jsonl"),
    )
    assert [one.model_dump(exclude={"reply"}) for one in found if one.id != "r0"] == [
        one.model_dump(exclude={"reply"}) for one in expected if one.id != "r0"
    ]
    of_one = numbers(tmp_path, "labels", "--json")
    for place in ("s3://harbour/labels", "s3://harbour/labels/", "s3://harbour/labels/*.parquet"):
        assert numbers(tmp_path, place, "--json", **storage) == of_one


def test_ray_is_not_loaded_unless_it_is_asked_for() -> None:
    """Nor by what can ask for it."""
    program = (
        "import sys, labeler, labeler.cli, labeler.integrations.ray.run; "
        "assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
