"""Rows in parts, each labeled into its own partition, by any process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeler
from command import Command
from engines import label_in_loop
from fakes import CountingJudge, agreeable, peeking
from labeler.errors import JudgeError, RunPaused, UsageError
from labeler.integrations.ray.parts import InputPart, input_files, parts_of_file
from labeler.integrations.ray.run import MANIFEST, Plan, Totals, plan, run
from labeler.integrations.ray.shards import labels_stored
from labeler.integrations.ray.worker import PartReport, Work
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.judge import UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.options import LabelOptions
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store.disk import DiskStore
from labeler.store.merge import merge_stores
from labeler.version import install_command
from parquet_rows import outcomes_in, row, write_rows


def work(
    folder: Path, judge: CountingJudge | None = None, output: str | None = None, **options: Any
) -> Work:
    """What is asked of a worker."""
    return Work(
        (lambda: judge) if judge else EmbeddedJudge,
        output or str(folder / "labels"),
        LabelOptions(store=str(folder / "store"), **options),
    )


def label(inputs: Path | str, asked: Work, part_rows: int = 5) -> Totals:
    """Label all that is left to do."""
    totals = Totals()
    for report in run(plan([str(inputs)], asked, part_rows), asked, label_in_loop, 1):
        totals.add(report)
    return totals


def test_partitions_hold_what_one_machine_makes_of_the_rows(tmp_path: Path) -> None:
    """The same records, in the same order, whatever the parts."""
    file = write_rows(tmp_path / "rows.parquet", 23, group=10)
    label(file, work(tmp_path), part_rows=4)
    alone = labeler.label(file, judge="embedded", store=tmp_path / "alone")
    assert [one.model_dump(exclude={"reply"}) for one in outcomes_in(tmp_path / "labels")] == [
        one.model_dump(exclude={"reply"}) for one in alone
    ]


def test_the_stores_of_parts_make_the_store_of_one_machine(tmp_path: Path) -> None:
    """Key by key, and nothing is asked again with it."""
    file = write_rows(tmp_path / "rows.parquet", 12)
    judge = CountingJudge()
    label(file, work(tmp_path, judge))
    labeler.label(file, judge=CountingJudge(), store=tmp_path / "alone")
    merge_stores([tmp_path / "store" / "shards"], tmp_path / "merged")
    with (
        DiskStore(tmp_path / "merged", create=False) as merged,
        DiskStore(tmp_path / "alone", create=False) as alone,
    ):
        assert [one.key for one in merged] == [one.key for one in alone]
    again = CountingJudge()
    labeler.label(file, judge=again, store=tmp_path / "merged")
    assert again.asked == []


def test_a_finished_part_is_not_done_again(tmp_path: Path) -> None:
    """Its partition stands."""
    file = write_rows(tmp_path / "rows.parquet", 12)
    asked = work(tmp_path)
    label(file, asked)
    planned = plan([str(file)], asked, 5)
    assert (planned.parts, planned.done, planned.rows) == ([], 3, 12)


def test_what_a_part_bought_before_it_was_broken_off_is_not_bought_again(tmp_path: Path) -> None:
    """The next worker finds the part's store."""
    file = write_rows(tmp_path / "rows.parquet", 10)

    def breaks_off(request: Task) -> JudgeReply:
        if request.example.id == "r7":
            raise RunPaused("come back later", reason="rate_limit")
        return agreeable(request)

    first = CountingJudge(breaks_off)
    with pytest.raises(RunPaused, match="come back later"):
        label(file, work(tmp_path, first, concurrency=1), part_rows=10)
    assert outcomes_in(tmp_path / "labels") == []
    second = CountingJudge()
    label(file, work(tmp_path, second), part_rows=10)
    assert len(second.asked) == 10 - len(first.asked) + 1
    assert len(outcomes_in(tmp_path / "labels")) == 10


def test_what_the_whole_store_holds_is_not_asked(tmp_path: Path) -> None:
    """Workers read the store that the parts will be merged into."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    labeler.label(file, judge=CountingJudge(), store=tmp_path / "store")
    judge = CountingJudge()
    totals = label(file, work(tmp_path, judge))
    assert judge.asked == []
    assert totals.sum.origins == {"store": 6}


def test_a_row_that_cannot_be_read_is_a_failure_in_its_place(tmp_path: Path) -> None:
    """It names the row of the file, not that of the part."""
    responses = [row(number)["response"] for number in range(8)]
    responses[6] = None
    file = write_rows(tmp_path / "rows.parquet", 8, group=4, response=responses)
    label(file, work(tmp_path), part_rows=2)
    outcomes = outcomes_in(tmp_path / "labels")
    failures = [one for one in outcomes if isinstance(one, LabelFailure)]
    assert [one.id for one in outcomes] == [f"r{number}" for number in range(8)]
    assert [f"{file}:row 7" in one.message for one in failures] == [True]


def failing_once(*, lasting: bool) -> Iterator[CountingJudge]:
    """A judge that fails for one row, then one that does not."""

    def fails(request: Task) -> JudgeReply:
        if request.example.id == "r3":
            raise UnusableAnswer("no", reason="refusal", attempts=1, lasting=lasting)
        return agreeable(request)

    yield CountingJudge(fails)
    yield CountingJudge()


def test_a_part_with_a_failure_that_may_pass_is_asked_again_for_that_alone(tmp_path: Path) -> None:
    """Its new partition takes the place of the old one."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    first, second = failing_once(lasting=False)
    assert label(file, work(tmp_path, first)).sum.reasons == {"refusal": 1}
    assert len(outcomes_in(tmp_path / "labels")) == 6
    label(file, work(tmp_path, second))
    assert second.asked == ["r3"]
    assert all(isinstance(one, LabelRecord) for one in outcomes_in(tmp_path / "labels"))
    assert len(outcomes_in(tmp_path / "labels")) == 6


def test_a_lasting_failure_is_asked_again_only_on_request(tmp_path: Path) -> None:
    """As on one machine."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    first, second = failing_once(lasting=True)
    label(file, work(tmp_path, first))
    label(file, work(tmp_path, second))
    assert second.asked == []
    label(file, work(tmp_path, second, retry_failed=True))
    assert second.asked == ["r3"]


def test_labels_of_another_kind_are_not_put_beside_them(tmp_path: Path) -> None:
    """A folder has one judge, prompt and way to cut."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    label(file, work(tmp_path))
    with pytest.raises(UsageError, match="asked for otherwise: trial was 0, and is 1 now"):
        plan([str(file)], work(tmp_path, trial=1), 5)


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """Its old rows' labels would stand beside the new ones."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    label(file, work(tmp_path))
    write_rows(file, 7)
    with pytest.raises(UsageError, match="holds partitions of other rows"):
        plan([str(file)], work(tmp_path), 5)


@pytest.mark.parametrize(("before", "after"), [(10, 4), (4, 10), (10, 10)])
def test_what_parts_of_another_size_bought_is_not_bought_again(
    tmp_path: Path, before: int, after: int
) -> None:
    """Whatever part a row stood in, its label is found, and nobody is told of a loss."""
    file = write_rows(tmp_path / "rows.parquet", 40, group=20)
    label(file, work(tmp_path, CountingJudge()), part_rows=before)
    judge = CountingJudge()
    other = work(tmp_path, judge, output=str(tmp_path / "other"))
    assert plan([str(file)], other, after).unread == 0
    assert label(file, other, part_rows=after).sum.origins == {"store": 40}
    assert judge.asked == []


def test_a_part_looks_into_no_more_stores_than_it_shares_rows_with(tmp_path: Path) -> None:
    """Each open store takes files."""
    file = write_rows(tmp_path / "rows.parquet", 40, group=40)
    label(file, work(tmp_path), part_rows=10)
    parts = plan([str(file)], work(tmp_path, output=str(tmp_path / "other")), 4).parts
    shared = [[name[-2:] for name in part.overlapping] for part in parts]
    assert shared == [
        [],
        ["00"],
        ["00", "10"],
        ["10"],
        ["10"],
        [],
        ["20"],
        ["20", "30"],
        ["30"],
        ["30"],
    ]


def test_a_store_that_another_machine_has_is_passed_over(tmp_path: Path) -> None:
    """Its labels are asked for again; the part is labeled."""
    file = write_rows(tmp_path / "rows.parquet", 4, group=4)
    label(file, work(tmp_path), part_rows=4)
    judge = CountingJudge()
    other = work(tmp_path, judge, output=str(tmp_path / "other"))
    planned = plan([str(file)], other, 2)
    assert [len(part.overlapping) for part in planned.parts] == [0, 1]
    shutil.rmtree(tmp_path / "store")
    assert [report.rows for report in run(planned, other, label_in_loop, 1)] == [2, 2]
    assert len(judge.asked) == 4


def test_stores_that_are_too_many_for_a_part_are_told_of(tmp_path: Path) -> None:
    """What they hold would be bought again without a word."""
    file = write_rows(tmp_path / "rows.parquet", 70, group=70)
    part = parts_of_file(str(file), 1)
    for one in part:
        folder = tmp_path / "store" / "shards" / one.name
        folder.mkdir(parents=True)
        (folder / "cache.db").touch()
    planned = plan([str(file)], work(tmp_path), 70)
    assert len(planned.parts[0].overlapping) + planned.unread == 69
    assert planned.unread > 0


def test_stores_of_a_changed_file_are_told_of_and_those_of_others_are_not(tmp_path: Path) -> None:
    """Some of its rows may be the same."""
    write_rows(tmp_path / "other.parquet", 5)
    file = write_rows(tmp_path / "rows.parquet", 6)
    for each in ("other", "rows"):
        label(tmp_path / f"{each}.parquet", work(tmp_path, output=str(tmp_path / each)))
    write_rows(file, 7)
    changed = work(tmp_path, output=str(tmp_path / "changed"))
    assert plan([str(file)], changed, 5).unread == 2
    fresh = write_rows(tmp_path / "fresh.parquet", 7)
    assert plan([str(fresh)], work(tmp_path, output=str(tmp_path / "fresh")), 5).unread == 0


def test_a_run_that_finds_all_done_tells_of_the_failures_that_stand(tmp_path: Path) -> None:
    """What was labeled and what failed before is counted, whatever the partition's name."""
    responses = [row(number)["response"] for number in range(8)]
    responses[6] = None
    file = write_rows(tmp_path / "rows.parquet", 8, response=responses)
    judge, _ = failing_once(lasting=True)
    label(file, work(tmp_path, judge), part_rows=4)
    planned = plan([str(file)], work(tmp_path, judge), 4)
    assert planned.parts == []
    standing = planned.existing
    assert (standing.rows, standing.origins) == (8, {"before": 6})
    assert standing.reasons == {"refusal": 1, "missing_field": 1}
    assert [f"{file}:row 7" in message for message in standing.failures] == [False, True]


def test_a_file_in_the_place_of_a_partition_is_named(tmp_path: Path) -> None:
    """It is not counted as labels."""
    file = write_rows(tmp_path / "rows.parquet", 4)
    label(file, work(tmp_path))
    (partition,) = (tmp_path / "labels").glob("*.parquet")
    partition.write_bytes(file.read_bytes())
    with pytest.raises(UsageError, match="is no partition of labels"):
        plan([str(file)], work(tmp_path), 5)


def foreign(file: Path) -> Path:
    """Rows with the columns of another system."""
    table = pa.table(
        {"user_input": ["How long?"], "retrieved_contexts": [["90 m."]], "response": ["90 m."]}
    )
    pq.write_table(table, file)
    return file


def test_a_file_without_the_columns_of_rows_is_refused_with_the_preset_that_fits(
    tmp_path: Path,
) -> None:
    """Before anything is written; with the preset it is labeled."""
    file = foreign(tmp_path / "rows.parquet")
    with pytest.raises(UsageError, match=r"no column for 'question', 'documents'.*--preset ragas"):
        plan([str(file)], work(tmp_path))
    assert not (tmp_path / "labels").exists()
    assert label(file, work(tmp_path, preset="ragas")).sum.rows == 1


def test_a_preset_that_fits_no_column_is_refused(tmp_path: Path) -> None:
    """It says where the field was looked for."""
    file = foreign(tmp_path / "rows.parquet")
    with pytest.raises(UsageError, match="'question' is read from 'query'"):
        plan([str(file)], work(tmp_path, preset="llamaindex"))


def test_labels_given_as_rows_are_refused(tmp_path: Path) -> None:
    """They need no labeling."""
    label(write_rows(tmp_path / "rows.parquet", 2), work(tmp_path))
    with pytest.raises(UsageError, match="holds labels, not rows"):
        plan([str(tmp_path / "labels")], work(tmp_path, output=str(tmp_path / "again")))


def test_a_budget_that_cannot_be_kept_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """In the words of the judge."""

    class Unbounded(CountingJudge):
        def require_bounds(self) -> None:
            raise UsageError("a budget needs a price")

    file = write_rows(tmp_path / "rows.parquet", 2)
    with pytest.raises(UsageError, match="needs a price"):
        plan([str(file)], work(tmp_path, Unbounded(), budget=1))
    assert not (tmp_path / "labels").exists()
    assert len(plan([str(file)], work(tmp_path, Unbounded())).parts) == 1


def test_what_unfinished_parts_stored_is_counted(tmp_path: Path) -> None:
    """A damaged store counts for nothing and stops nobody."""
    file = write_rows(tmp_path / "rows.parquet", 12)
    label(file, work(tmp_path))
    names = [part.name for part in parts_of_file(str(file), 5)]
    assert labels_stored(tmp_path / "store", names[1:]) == 7
    (tmp_path / "store" / "shards" / names[1] / "cache.db").write_bytes(b"no store")
    assert labels_stored(tmp_path / "store", [*names[1:], "strange"]) == 2


def test_a_folder_of_other_parquet_files_is_refused(tmp_path: Path) -> None:
    """Nothing is mixed in."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    label(file, work(tmp_path))
    (tmp_path / "labels" / MANIFEST).unlink()
    with pytest.raises(UsageError, match="something else"):
        plan([str(file)], work(tmp_path), 5)


def test_more_files_may_come_later(tmp_path: Path) -> None:
    """What is done stays."""
    write_rows(tmp_path / "in" / "a.parquet", 6)
    label(tmp_path / "in", work(tmp_path))
    write_rows(tmp_path / "in" / "b.parquet", 6, first=6)
    assert label(tmp_path / "in", work(tmp_path)).parts == 2
    assert len(outcomes_in(tmp_path / "labels")) == 12


def test_parts_cover_each_row_once(tmp_path: Path) -> None:
    """Row groups are cut where they are large, and never joined."""
    file = write_rows(tmp_path / "rows.parquet", 25, group=10)
    parts = parts_of_file(str(file), 4)
    assert [part.rows for part in parts] == [4, 4, 2, 4, 4, 2, 4, 1]
    places = [part.before + at for part in parts for at in range(part.start, part.stop)]
    assert places == list(range(25))
    assert len({part.name for part in parts}) == len(parts)
    assert [InputPart.model_validate_json(part.model_dump_json()) for part in parts] == parts


def test_two_files_of_one_name_and_content_are_refused(tmp_path: Path) -> None:
    """Their rows would be labeled twice."""
    for folder in "ab":
        write_rows(tmp_path / folder / "rows.parquet", 3)
    with pytest.raises(UsageError, match="labeled twice"):
        plan([str(tmp_path / "a"), str(tmp_path / "b")], work(tmp_path))


def test_rows_of_another_format_are_refused(tmp_path: Path) -> None:
    """Only Parquet can be read in parts."""
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="no Parquet file by its name"):
        input_files(str(tmp_path / "rows.jsonl"))


def test_a_mapped_column_that_no_file_has_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    """As on one machine."""
    file = write_rows(tmp_path / "rows.parquet", 3)
    with pytest.raises(UsageError, match="has no column 'contexts'"):
        plan([str(file)], work(tmp_path, columns={"documents": "contexts"}))


def test_columns_of_other_names_are_read_in_parts_too(tmp_path: Path) -> None:
    """``--map`` means the same."""
    questions = [row(number)["question"] for number in range(3)]
    file = write_rows(tmp_path / "rows.parquet", 3, query=questions, question=[""] * 3)
    label(file, work(tmp_path, columns={"question": "query"}))
    records = [one for one in outcomes_in(tmp_path / "labels") if isinstance(one, LabelRecord)]
    assert [one.example.question for one in records] == questions


def test_rows_and_labels_may_be_at_an_address(tmp_path: Path) -> None:
    """Read and written through fsspec; what is half written has another name."""
    file = write_rows(tmp_path / "rows.parquet", 6)
    files = fsspec.filesystem("memory")
    files.pipe_file("/harbour/in/rows.parquet", file.read_bytes())
    output = "memory://harbour/labels"
    try:
        totals = label("memory://harbour/in/*.parquet", work(tmp_path, output=output))
        assert totals.parts == 2
        names = sorted(Path(name).name for name in files.ls("/harbour/labels", detail=False))
        assert [name for name in names if "partial" in name] == []
        with fsspec.open(f"{output}/{names[-1]}", "rb") as remote:
            (tmp_path / "one.parquet").write_bytes(remote.read())
        assert len(list(labeler.read_labels(tmp_path / "one.parquet"))) == 1
        assert label("memory://harbour/in", work(tmp_path, output=output)).parts == 0
    finally:
        files.rm("/harbour", recursive=True)


def test_a_report_crosses_to_another_machine_as_it_is() -> None:
    """As a text, with its money to the last digit."""
    report = PartReport(part="p", rows=3, known=Decimal("0.0123"), failures=("a",))
    report.origins["judge"] += 2
    report.reasons["refusal"] += 1
    assert PartReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize("ending", ["StoreError", "UsageError", "FatalJudgeError", "LabelerError"])
def test_what_ended_a_worker_ends_the_run_in_its_words(ending: str) -> None:
    """And as an error of its kind."""
    report = PartReport(part="p", ending=ending, message="it is so")
    with pytest.raises(labeler.errors.LabelerError, match="it is so") as raised:
        report.raise_ending()
    assert type(raised.value).__name__ == ending


def test_a_part_that_cannot_be_begun_is_left() -> None:
    """The budget is at its end: its rows are not failures, they wait for another run."""
    totals = Totals()
    totals.add(PartReport(part="p", ending="budget"))
    assert (totals.parts, totals.left) == (0, 1)


def test_a_judge_that_breaks_for_one_row_costs_that_row(tmp_path: Path) -> None:
    """Failures are rows of the partition."""

    def breaks(_: Task) -> JudgeReply:
        raise JudgeError("no answer", reason="unreachable")

    file = write_rows(tmp_path / "rows.parquet", 2)
    label(file, work(tmp_path, CountingJudge(breaks)))
    reasons = [
        one.reason for one in outcomes_in(tmp_path / "labels") if isinstance(one, LabelFailure)
    ]
    assert reasons == ["unreachable"] * 2


def test_nothing_left_to_do_starts_no_engine(tmp_path: Path) -> None:
    """Not even to find that out."""

    def engine(*_: object) -> Iterator[PartReport]:
        raise AssertionError

    assert list(run(Plan([], 1, 1), work(tmp_path), engine, 1)) == []  # type: ignore[arg-type] # never called


def test_without_ray_the_engine_says_what_to_install(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is written."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "labeler.integrations.ray.cluster", raising=False)
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "")  # put back as it was, whatever is set
    file = write_rows(tmp_path / "rows.parquet", 3)
    options = ["--engine", "ray", "--input", file, "-o", "labels", "--judge", "embedded"]
    code, _, err = labeler_command("label", *options)
    assert code == 2
    assert install_command("ray") in err
    assert not (tmp_path / "labels").exists()


@pytest.fixture
def loop_for_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a loop in this process do what Ray would."""
    stand_in = ModuleType("labeler.integrations.ray.cluster")
    monkeypatch.setattr(stand_in, "label_on_ray", label_in_loop, raising=False)
    monkeypatch.setattr(stand_in, "processor_count", lambda: 1, raising=False)
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)


@pytest.mark.usefixtures("loop_for_ray")
def test_failures_that_stand_make_the_exit_code_of_each_run(
    labeler_command: Command, tmp_path: Path
) -> None:
    """As on one machine; and one part is one part."""
    file = write_rows(tmp_path / "rows.parquet", 3, response=[None, "It is.", "It was."])
    options = ["--engine", "ray", "--input", file, "-o", "labels", "--judge", "embedded"]
    code, _, first = labeler_command("label", *options)
    assert (code, "3 rows in 1 part, 0 of them done before; 1 worker" in first) == (1, True)
    code, _, again = labeler_command("label", *options)
    assert code == 1
    assert "0 labeled, 0 from the store, 2 labeled before, 1 failed (missing_field 1)" in " ".join(
        again.split()
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "ray", "-o", "x"], "needs --input"),
        (["--engine", "ray", "--input", "rows.parquet"], "give a folder"),
        (["--engine", "ray", "--input", "r.parquet", "-o", "x.jsonl"], "give a folder"),
        (["--engine", "ray", "--input", "r.parquet", "-o", "x", "--repeat", "2"], "--repeat goes"),
        (["--input", "rows.parquet"], "--input goes with --engine ray"),
        (["rows.jsonl", "--workers", "2"], "--workers goes with --engine ray"),
    ],
)
def test_options_that_do_not_fit_the_engine_are_refused(
    labeler_command: Command, options: list[str], says: str
) -> None:
    """Their user expects an effect."""
    code, _, err = labeler_command("label", "--judge", "embedded", *options)
    assert code == 2
    assert says in err


def parquet(path: Path, questions: int) -> Path:
    """Twelve rows with other responses to so many questions, all over the same documents."""
    documents = ["A lamp is red. A chair is not."]
    rows = [
        {**row(n), "question": f"What of lamp {n % questions}?", "documents": documents}
        for n in range(12)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_rows_of_one_retrieval_in_several_parts_share_its_label(tmp_path: Path) -> None:
    """It is bought once, before the parts."""
    file = parquet(tmp_path / "rows.parquet", 1)
    judge = CountingJudge(peeking)
    asked = work(tmp_path, judge, relevance="blind")
    totals = label(file, asked)
    assert (totals.parts, totals.sum.origins["judge"], totals.sum.requests) == (3, 12, 13)
    assert len(judge.asked) == 13
    found = [one for one in outcomes_in(tmp_path / "labels") if isinstance(one, LabelRecord)]
    assert len({one.retrieval.key for one in found if one.retrieval}) == 1
    assert {one.label.all_relevant_sentence_keys for one in found} == {("0a",)}
    label(file, asked)
    assert len(judge.asked) == 13


def test_parts_do_not_judge_a_retrieval_that_was_refused(tmp_path: Path) -> None:
    """Its rows fail in all parts; the next run asks nothing, unless on request."""

    def refuses(task: Task[Any]) -> JudgeReply[Any]:
        if task.kind.name == "retrieval" and "lamp 0" in task.example.question:
            raise UnusableAnswer("refused", reason="refusal", attempts=1, lasting=True)
        return peeking(task)

    file, judge = parquet(tmp_path / "rows.parquet", 2), CountingJudge(refuses)
    totals = label(file, work(tmp_path, judge, relevance="blind"))
    assert totals.sum.reasons == {"refusal": 6}
    before = len(judge.asked)
    label(file, work(tmp_path, judge, relevance="blind"))
    assert len(judge.asked) == before
    label(file, work(tmp_path, judge, relevance="blind", retry_failed=True))
    assert len(judge.asked) == before + 1
