"""Labeling on Ray: each row once, also when a run or a worker is killed, and within the budget."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pytest

from distributed.ray_run import SECONDS, Cluster, cluster, labeling
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store.disk import DiskStore
from support.command import Command
from support.optional import need
from support.parquet_rows import outcomes_in, row, write_rows
from wire.provider import Provider, error
from wire.runs import comes_true

need("distributed", "RAY_TESTS", ["ray"] * (find_spec("ray") is None))

ROWS, MANY = 60, 400
IN_FLIGHT = 4
PRICE = "10,100"


def options_of(provider: Provider, *more: object) -> list[object]:
    """The command line after the rows."""
    hosted = ["--judge", "openai", "--model", "m", "--base-url", provider.url]
    return ["-o", "labels", "--concurrency", IN_FLIGHT, *hosted, *more]


def asked(provider: Provider) -> int:
    """How many completions were asked for."""
    return provider.routes["POST /v1/chat/completions"]


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Cluster]:
    """Two processors."""
    with cluster() as running:
        yield running


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two files of rows, in shards of ten."""
    for file in (0, 1):
        write_rows(tmp_path / "in" / f"{file}.parquet", ROWS // 2, first=ROWS // 2 * file, group=10)
    return tmp_path / "in"


def test_a_wrong_key_ends_the_run_with_its_words(tmp_path: Path, rows: Path) -> None:
    """No row is labeled, and none is a failure; Ray is started for this run alone."""
    with (
        Provider(itertools.repeat(error(401, "invalid_api_key")), record=False) as provider,
        labeling(tmp_path, rows, *options_of(provider), workers=1) as run,
    ):
        code, said = run.end()
    assert (code, "key" in said, "sk-none" in said) == (2, True, False), said
    assert outcomes_in(tmp_path / "labels") == []


def test_killed_runs_and_workers_go_on_and_buy_each_label_once(
    tmp_path: Path, ray_cluster: Cluster, labeler_command: Command
) -> None:
    """Another worker finds a shard's labels; merged, they equal the labels of one machine.

    A record over the limit is one failure, unasked, with both figures.
    """
    documents = [row(number)["documents"] for number in range(MANY)]
    documents[7] = ["A quay is long. " * 5000]
    write_rows(tmp_path / "in" / "rows.parquet", MANY, group=MANY // 2, documents=documents)
    limits = "--max-input-tokens", 8000
    with Provider(latency=0.01, record=False) as provider:
        command = ["in", *options_of(provider, *limits)]
        with labeling(tmp_path, *command, variables=ray_cluster.variables) as run:
            # in the middle of a shard, by one worker or two
            assert comes_true(lambda: asked(provider) >= 120, SECONDS)
            run.kill()
            run.end()
        assert outcomes_in(tmp_path / "labels") == []
        with labeling(tmp_path, *command, variables=ray_cluster.variables, workers=1) as run:
            assert comes_true(lambda: asked(provider) >= 240, SECONDS)
            ray_cluster.kill_a_worker()
            code, said = run.end()
        assert code == 1, said
        assert MANY - 1 <= asked(provider) <= MANY - 1 + 3 * IN_FLIGHT
        outcomes = outcomes_in(tmp_path / "labels")
        assert [one.id for one in outcomes] == [f"r{number}" for number in range(MANY)]
        [failure] = [one for one in outcomes if isinstance(one, LabelFailure)]
        assert (failure.id, failure.reason) == ("r7", "context_length")
        assert re.search(r"\d\d,\d+ tokens.*8,000", failure.message), failure.message

        paid = asked(provider)
        written = [file.stat().st_mtime_ns for file in (tmp_path / "labels").iterdir()]
        with labeling(tmp_path, *command, variables=ray_cluster.variables, workers=1) as run:
            code, said = run.end()
        assert (code, asked(provider)) == (1, paid), said
        assert "2 shards, 0 of them left" in said
        assert written == [file.stat().st_mtime_ns for file in (tmp_path / "labels").iterdir()]

        store = tmp_path / ".labeler"
        assert labeler_command("store", "merge", store / "shards", "--into", store)[0] == 0
        with DiskStore(store, create=False) as labels:
            assert sum(isinstance(one, LabelRecord) for one in labels) == MANY - 1
        alone = ["in/rows.parquet", *options_of(provider, *limits)[2:], "-o", "alone.jsonl"]
        assert labeler_command("label", *alone)[0] == 1
        assert asked(provider) == paid


def test_workers_keep_to_one_budget(tmp_path: Path, rows: Path, ray_cluster: Cluster) -> None:
    """Together they spend no more, and most of it."""
    with Provider(count_tokens=True, record=False) as provider:
        priced = ("--price", PRICE, "--max-output-tokens", 400, "--budget", "0.90")
        with labeling(
            tmp_path, rows, *options_of(provider, *priced), variables=ray_cluster.variables
        ) as run:
            code, said = run.end()
        assert code == 4, said
        prompt, completion, _ = provider.tokens
    spent = (prompt * 10 + completion * 100) / Decimal(1_000_000)
    assert Decimal("0.45") < spent <= Decimal("0.90")
    assert f"${spent:.4f}" in said


def test_ray_is_not_loaded_unless_it_is_asked_for() -> None:
    """Nor by what can ask for it."""
    program = (
        "import sys, labeler, labeler.cli.label, labeler.plugins.ray; "
        "assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
