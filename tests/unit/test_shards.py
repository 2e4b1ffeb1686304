"""Shards of rows, each labeled into a store and a file of its own, by any process."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeler
from labeler.errors import RunPaused, UsageError
from labeler.judges.embedded import EmbeddedJudge
from labeler.judges.judge import UnusableAnswer
from labeler.judges.limits import Limits
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.options import LabelOptions
from labeler.labeling.progress import RunCounts
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins import ray
from labeler.plugins.ray import Purse, Shard, ShardStore, Work, Worker
from labeler.store.disk import DiskStore
from labeler.version import install_command
from support.command import Command
from support.fakes import CountingJudge, agreeable
from support.parquet_rows import outcomes_in, row, write_rows
from support.records import sample_failure, sample_record


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of five rows."""
    monkeypatch.setattr(ray, "SHARD_ROWS", 5)


def work(folder: Path, judge: CountingJudge | None = None, out: str = "out", **more: Any) -> Work:
    """What a worker gets."""
    options = LabelOptions(store=str(folder / "store"), **more)
    opened: Callable[[], Any] = (lambda: judge) if judge else EmbeddedJudge
    return Work(opened, options, folder / "store", folder / out)


def plan(*rows: Path | str, asked: Work) -> dict[Shard, RunCounts | None]:
    """The shards of rows."""
    return ray.plan(list(map(str, rows)), asked, lambda _: None)


def label(rows: Path | str, asked: Work) -> RunCounts:
    """Label what is left, as one worker does; counts of all rows."""
    total, purse = RunCounts(), Purse(asked.options.limits().budget, 1)
    worker = Worker(asked, 1, purse.take, purse.give_back)
    for shard, finished in plan(rows, asked=asked).items():
        counts, error = (finished, None) if finished else worker.label(shard)
        total.add(counts)
        if error is not None:
            raise copy.copy(error)  # as it is pickled
    return total


def test_labels_are_those_of_one_machine(tmp_path: Path) -> None:
    """The same records in the same order; a row that cannot be read names its place in the file."""
    responses = [row(number)["response"] for number in range(23)]
    responses[17] = None
    file = write_rows(tmp_path / "rows.parquet", 23, group=9, response=responses)
    label(file, work(tmp_path))
    alone = labeler.label(file, judge="embedded", store=tmp_path / "alone")
    found = outcomes_in(tmp_path / "out")
    assert list(map(facts, found)) == list(map(facts, alone))
    [failure] = [one for one in found if isinstance(one, LabelFailure)]
    assert f"{file}:row 18" in failure.message


def facts(outcome: AnyOutcome) -> dict[str, Any]:
    """What does not depend on the run."""
    return outcome.model_dump(exclude={"reply"})


def test_a_broken_off_shard_goes_on_where_it_was(tmp_path: Path) -> None:
    """The next worker finds the shard's store; finished shards are not done again."""
    file = write_rows(tmp_path / "rows.parquet", 10)

    def breaks_off(request: Task) -> JudgeReply:
        if request.example.id == "r7":
            raise RunPaused("come back later", reason="rate_limit")
        return agreeable(request)

    first, second = CountingJudge(breaks_off), CountingJudge()
    with pytest.raises(RunPaused, match="come back later"):
        label(file, work(tmp_path, first, concurrency=1))
    assert len(outcomes_in(tmp_path / "out")) == 5
    assert label(file, work(tmp_path, second)).origins == {"store": 7, "judge": 3}
    assert len(second.asked) == 3
    assert len(outcomes_in(tmp_path / "out")) == 10


def test_the_label_store_is_read_and_never_written(tmp_path: Path) -> None:
    """Its labels are not bought again; new ones go to the shards."""
    few, judge = write_rows(tmp_path / "few.parquet", 6), CountingJudge()
    labeler.label(few, judge=CountingJudge(), store=tmp_path / "store")
    counts = label(write_rows(tmp_path / "rows.parquet", 8), work(tmp_path, judge))
    assert (counts.origins, sorted(judge.asked)) == ({"store": 6, "judge": 2}, ["r6", "r7"])
    with labeler.DiskStore(tmp_path / "store", create=False) as store:
        assert len(store) == 6


@pytest.mark.parametrize("lasting", [False, True])
def test_failures_are_asked_again_as_on_one_machine(tmp_path: Path, lasting: bool) -> None:
    """One that may pass by the next run; a lasting one on request."""

    def refuses(request: Task) -> JudgeReply:
        if request.example.id == "r3":
            raise UnusableAnswer("no", reason="refusal", attempts=1, lasting=lasting)
        return agreeable(request)

    file, second = write_rows(tmp_path / "rows.parquet", 6), CountingJudge()
    assert label(file, work(tmp_path, CountingJudge(refuses))).reasons == {"refusal": 1}
    assert label(file, work(tmp_path, second)).failed == lasting
    assert second.asked == ["r3"] * (not lasting)
    assert label(file, work(tmp_path, second, retry_failed=True)).failed == 0
    assert second.asked == ["r3"]
    assert not any(isinstance(one, LabelFailure) for one in outcomes_in(tmp_path / "out"))


def test_shares_of_a_budget_and_of_rates_never_exceed_them() -> None:
    """What a worker did not spend is for others; the share of a dead one stays spent."""
    purse = Purse(Decimal(9), 3)
    assert [purse.take(name) for name in "abca"] == [*[(Decimal(3), 1)] * 3, (Decimal(0), 2)]
    purse.give_back(Decimal(0), Decimal(0))
    purse.give_back(Decimal(3), Decimal(1))
    purse.give_back(Decimal(3), Decimal(3))
    assert purse.take("d") == (Decimal(1), 1)
    purse.give_back(Decimal(1), Decimal(0))
    assert purse.left == 2
    assert (dead := purse.lost().spent)
    assert dead.doubtful == 3
    assert Purse(None, 2).take("a") == (None, 1)
    shared = Limits(requests_per_minute=60, longest_wait=5).share(4, Decimal(2))
    assert shared == Limits(requests_per_minute=15, budget=Decimal(2), longest_wait=5)


@pytest.mark.parametrize(
    ("taken", "reasons", "ending"),
    [((Decimal(0), 1), {"budget": 4}, ""), ((None, 5), {}, "lost")],
)
def test_a_shard_without_money_or_that_ends_its_workers_is_not_begun(
    tmp_path: Path, taken: tuple[Decimal | None, int], reasons: dict[str, int], ending: str
) -> None:
    """Nothing is asked and nothing written."""
    file, judge = write_rows(tmp_path / "rows.parquet", 4), CountingJudge()
    asked = work(tmp_path, judge)
    [shard] = plan(file, asked=asked)
    counts, error = Worker(asked, 1, lambda _: taken, lambda *_: None).label(shard)
    assert (counts.reasons, getattr(error, "reason", ""), judge.asked) == (reasons, ending, [])
    assert outcomes_in(tmp_path / "out") == []


def test_a_folder_has_one_configuration_and_one_set_of_rows(tmp_path: Path) -> None:
    """Labels of others would stand next to them; more files may come."""
    file = write_rows(tmp_path / "in" / "rows.parquet", 6)
    label(file, work(tmp_path))
    for options in ({"trial": 1}, {"id_from": "question"}, {"max_input_tokens": 9000}):
        with pytest.raises(UsageError, match=rf"another configuration: {next(iter(options))} was"):
            plan(file, asked=work(tmp_path, **options))
    write_rows(tmp_path / "in" / "more.parquet", 3, first=6)
    assert label(file.parent, work(tmp_path)).origins == {"store": 6, "judge": 3}
    write_rows(file, 7)
    with pytest.raises(UsageError, match="has labels of other rows"):
        plan(file.parent, asked=work(tmp_path))


def test_a_fault_of_all_rows_is_found_before_anything_is_written(tmp_path: Path) -> None:
    """Other columns, labels, other formats, an unbounded cost."""

    class Unbounded(CountingJudge):
        def require_bounds(self) -> None:
            raise UsageError("a budget needs a price")

    file = write_rows(tmp_path / "in" / "rows.parquet", 2)
    columns = {"texts": [["90 m."]], "user_input": ["How long?"], "response": ["90 m."]}
    pq.write_table(pa.table(columns), tmp_path / "foreign.parquet")
    labeler.label(
        file, judge="embedded", store=tmp_path / "alone", output=tmp_path / "labels.parquet"
    )
    (tmp_path / "rows.csv").write_text("question,documents,response\na,b,c\n")
    (tmp_path / "same").mkdir()
    (tmp_path / "same" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "labels.txt").touch()
    for names, asked, fault in (
        (["foreign.parquet"], work(tmp_path), "has no 'question'"),
        (["foreign.parquet"], work(tmp_path, columns=["question=q"]), "no row has 'q'"),
        (["labels.parquet"], work(tmp_path), "'question'"),
        (["rows.csv"], work(tmp_path), "not a Parquet file"),
        (["none.parquet"], work(tmp_path), "cannot read"),
        (["in", "same"], work(tmp_path), "the same name and the same rows"),
        (["in"], work(tmp_path, Unbounded(), budget=1), "needs a price"),
        (["in"], work(tmp_path, out="labels.txt"), "cannot write"),
    ):
        with pytest.raises(UsageError, match=fault):
            plan(*(tmp_path / name for name in names), asked=asked)
        assert not (tmp_path / "out").exists()


def test_rows_of_other_columns_are_read_as_on_one_machine(tmp_path: Path) -> None:
    """By the preset that fits, by columns that are named, with other ids; one notice says so."""
    notices: list[str] = []
    rows = [row(number) for number in range(12)]
    ragas = [
        {"user_input": one["question"], "retrieved_contexts": one["documents"], "response": "Oak."}
        for one in rows
    ]
    pq.write_table(pa.Table.from_pylist(ragas), tmp_path / "ragas.parquet")
    assert label(tmp_path / "ragas.parquet", work(tmp_path)).origins == {"judge": 12}
    ray.plan([str(tmp_path / "ragas.parquet")], work(tmp_path), notices.append)
    assert ["--preset ragas" in text for text in notices] == [True]
    asked = work(tmp_path, out="mine", columns=["question=user_input"], id_from="user_input")
    assert label(tmp_path / "ragas.parquet", asked).origins == {"store": 12}
    assert [one.id for one in outcomes_in(tmp_path / "mine")] == [one["question"] for one in rows]


def test_rows_may_be_at_an_address(tmp_path: Path) -> None:
    """As a folder or a pattern; each shard is the same however it is named."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    files = fsspec.filesystem("memory")
    files.pipe_file("/harbour/in/rows.parquet", file.read_bytes())
    try:
        assert label("memory://harbour/in", work(tmp_path)).origins == {"judge": 6}
        assert label("memory://harbour/in/*.parquet", work(tmp_path)).origins == {"store": 6}
    finally:
        files.rm("/harbour", recursive=True)


def test_without_ray_the_engine_says_what_to_install(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is written."""
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "")  # restored at the end, whatever the module sets
    file = write_rows(tmp_path / "rows.parquet", 3)
    options = ["--engine", "ray", file, "-o", "labels", "--judge", "embedded"]
    code, _, err = labeler_command("label", *options)
    assert (code, install_command("ray") in err) == (2, True)
    assert not (tmp_path / "labels").exists()


def test_a_label_of_the_whole_store_goes_before_a_failure_of_the_shard(tmp_path: Path) -> None:
    """In one look-up for both."""
    found, failed = sample_record(1), sample_failure(1)
    with DiskStore(tmp_path / "store") as whole, ShardStore(whole, "part") as shard:
        whole.put(found).result(10)
        shard.put(failed).result(10)
        assert shard.get(found.key) == found
        assert shard.failure(found.key) == failed
