"""Laws of the index: whatever it serves is what the records themselves give."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from contextlib import closing
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_labels import ANY_LABEL, random_label, wide_labels
from labeled import record
from labeler.calculators import (
    METRICS,
    Intervals,
    SummaryRow,
    measure,
    select_metrics,
    summarize,
    tally,
)
from labeler.calculators.column_summary import ColumnCounts, Frame, SummaryRequest, compute_column
from labeler.calculators.columns import TallyColumns
from labeler.calculators.index.frames import IndexFrame
from labeler.calculators.index.row_batch import RowBatch
from labeler.calculators.index.rows import failure_row
from labeler.calculators.index.segments import Header, Segment, SegmentWriter
from labeler.calculators.selection import RowDigests, SeenDigests, select
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, ReplyFacts
from tallied import tallied_row

ALL = select_metrics("all")
LABELS = 2_000
"""Random labels of each profile."""
BATCH = 500
"""Labels at a time: the collector of garbage looks at all that are alive again and again."""
MODELS = st.sampled_from([None, "", "one-2026-01-01", "two|\n", "one + two", "x" * 500])
METADATA: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"of": "x"}, {"of": None, "n": 1.5}, {"of": [1, {"é": None}]}]
)


@st.composite
def outcomes(draw: st.DrawFn) -> list[Outcome]:
    """Labels and failures, some of them again, of few questions, by two judges and few models."""
    found: list[Outcome] = []
    for number, made in enumerate(draw(st.lists(ANY_LABEL, max_size=8))):
        metadata = draw(METADATA)
        name = f"r{draw(st.integers(0, number))}"
        asked = draw(st.sampled_from(["", "One?", "Two?", f"{number}?"]))
        row = {"id": name, "metadata": metadata, "question": asked}
        example = made.example.model_copy(update=row)
        judge = draw(st.sampled_from(["test", "other"]))
        signature = made.signature.model_copy(update={"judge": judge})
        reply = ReplyFacts(served_model=draw(MODELS), host=draw(MODELS))
        changes = {"example": example, "signature": signature, "reply": reply}
        if draw(st.integers(0, 3)):
            found.append(made.model_copy(update=changes))
        else:
            signed = signature if draw(st.booleans()) else None
            reason = draw(st.sampled_from(["refusal", "contract"]))
            found.append(
                LabelFailure(
                    id=name, reason=reason, message="", signature=signed, metadata=metadata
                )
            )
    again = draw(st.lists(st.sampled_from(found), max_size=4)) if found else []
    return draw(st.permutations([*found, *again]))


def gathered(rows: Sequence[Outcome], first: int = 0) -> RowBatch:
    """Rows on their way into columns, in places from the first on."""
    batch = RowBatch()
    for place, outcome in enumerate(rows, start=first):
        if isinstance(outcome, LabelRecord):
            batch.add(place, tallied_row(outcome))
        else:
            batch.add(place, failure_row(outcome))
    return batch


def in_file(batches: Sequence[RowBatch], path: Path) -> Segment:
    """The same batches, written and read again."""
    writer = SegmentWriter(path.parent)
    for batch in batches:
        writer.add(batch)
    writer.finish(path, Header("test", 0, 1, writer.rows))
    return Segment(path)


def assert_same_ratios(frame: Frame, labels: Sequence[LabelRecord]) -> None:
    """Every metric of every record: numerator, denominator, reason, convention and value."""
    columns, tallies = TallyColumns(frame), list(map(tally, labels))
    for metric in ALL:
        served = compute_column(metric, columns, len(labels))
        expected = [metric.compute(one) for one in tallies]
        assert list(served) == expected, metric.id
        values = [None if value != value else value for value in served.values.tolist()]  # noqa: PLR0124 - NaN
        assert values == [ratio.value for ratio in expected], metric.id


@given(st.lists(st.one_of(ANY_LABEL, wide_labels()), max_size=5))
def test_columns_give_the_ratios_of_the_records(labels: list[LabelRecord]) -> None:
    """For every metric there is, in memory and from a file."""
    batch = gathered(labels)
    assert_same_ratios(IndexFrame(batch), labels)
    with TemporaryDirectory() as folder:
        segment = in_file([batch], Path(folder, "s"))
        for frame in segment.frames(by_key=False):
            assert_same_ratios(frame, labels)
        segment.close()


@pytest.mark.parametrize("profile", PROFILES)
def test_one_record_has_the_ratios_of_the_batch(profile: str) -> None:
    """Of random labels of each profile, every metric: the two ways to count a formula."""
    random = Random(11)  # noqa: S311 - labels, no secrets
    for _ in range(LABELS // BATCH):
        labels = [random_label(random, profile) for _ in range(BATCH)]
        assert_same_ratios(IndexFrame(gathered(labels)), labels)


def summarized(frames: Iterable[IndexFrame], request: SummaryRequest) -> list[SummaryRow]:
    """The summary of the rows of frames."""
    listed = list(frames)
    counts, begin = ColumnCounts(request), 0
    with closing(SeenDigests()) as seen:
        for frame in listed:
            seen.add(RowDigests.of(frame))
        selection = select(seen.batches)
        for frame in listed:
            counts.add(frame, selection.of(begin, begin + frame.rows))
            begin += frame.rows
        return counts.summary(seen.present)


@given(outcomes(), st.integers(0, 8), st.sampled_from([None, "of"]), st.booleans(), st.booleans())
def test_columns_give_the_summaries_of_the_rows(
    rows: list[Outcome], cut: int, by: str | None, fitting: bool, drawn: bool
) -> None:
    """Means, pooled values, counts, bounds and intervals, to the last bit, in any batches."""
    by = by if any("of" in _metadata(row) for row in rows) else None
    intervals = Intervals(resamples=100, group="of" if drawn and by else None)
    chosen = select_metrics() if fitting else ALL
    measured = [measure(row, None if fitting else ALL) for row in rows]
    expected = summarize(measured, chosen, by, intervals=intervals)
    batches = [gathered(rows[:cut]), gathered(rows[cut:], cut)]
    frames = [IndexFrame(batch) for batch in batches if len(batch)]
    request = SummaryRequest(chosen, by, fitting, intervals)
    assert summarized(frames, request) == expected
    with TemporaryDirectory() as folder:
        segment = in_file(batches, Path(folder, "s"))
        read = segment.frames(by_key=False)
        found = summarized(read, request)
        segment.close()
    assert found == expected
    assert [list(row.undefined) for row in found] == [list(row.undefined) for row in expected]


@given(outcomes(), st.integers(0, 8), st.sampled_from([None, "of"]), st.booleans(), st.booleans())
def test_what_is_counted_apart_adds_up(
    rows: list[Outcome], cut: int, by: str | None, fitting: bool, drawn: bool
) -> None:
    """Counted in two places and sent, in order: the summary of all, to the last bit."""
    by = by if any("of" in _metadata(row) for row in rows) else None
    intervals = Intervals(resamples=100, group="of" if drawn and by else None)
    chosen = select_metrics() if fitting else ALL
    asked = partial(ColumnCounts, SummaryRequest(chosen, by, fitting, intervals))
    batches = [gathered(rows[:cut]), gathered(rows[cut:], cut)]
    whole, added = asked(), asked()
    for frame in map(IndexFrame, batches):
        apart = asked()
        apart.add(frame)
        whole.add(frame)
        added.add_counted(deepcopy(apart))
    found, expected = added.summary(), whole.summary()
    assert found == expected
    assert [list(row.undefined) for row in found] == [list(row.undefined) for row in expected]
    assert [list(row.failed) for row in found] == [list(row.failed) for row in expected]
    assert (added.rows, added.unsigned) == (whole.rows, whole.unsigned)


def _metadata(row: Outcome) -> dict[str, object]:
    return row.example.metadata if isinstance(row, LabelRecord) else row.metadata


def test_every_metric_of_labels_is_vectorized() -> None:
    """What ships is served by the index."""
    assert [metric.id for metric in METRICS.values() if not metric.vectorized] == []


def test_what_is_kept_for_means_alone_does_not_grow() -> None:
    """With intervals, every distinct value is kept: from these are drawn."""
    sizes = {}
    for intervals in (None, Intervals()):
        for rows in (20, 200):
            counts = ColumnCounts(SummaryRequest(ALL, intervals=intervals))
            lengths = [["x" * (n + 1), "y" * (3 * n + 2)] for n in range(rows)]
            labels = [record(documents=[texts]) for texts in lengths]
            counts.add(IndexFrame(gathered(labels)))
            sizes[intervals is None, rows] = len(pickle.dumps(counts))
    assert sizes[True, 200] - sizes[True, 20] < 500
    assert sizes[False, 200] - sizes[False, 20] > 2_000
