"""Groups of a metadata column: what is one group, what its name is, and what many of them cost."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stdout

import labeler
from labeler.audit.auditing import audit_labels
from labeler.calculators import Intervals
from labeler.calculators.statistics.intervals import mean_interval
from labeler.cli.measure import View, print_summary
from labeler.cli.terminal import print_sections
from labeler.comparing.agreement import compare_labels
from labeler.comparing.agreement_text import labels_in_full
from labeler.comparing.checking import GateSettings, check_rows
from labeler.comparing.compare import compare
from labeler.comparing.gates import Demand
from labeler.labels.record import LabelRecord
from support.labeled import record

VALUES = (1, "1", None, "(none)", True, "true", "", "law")
NAMES = {"1", '"1"', "(none)", '"(none)"', "true", '"true"', '""', "law"}


def labels() -> list[LabelRecord]:
    """Two records of each value, one of them supported; one record without the column."""
    made = [
        record(id=f"{n}-{good}", support={"a": ["0a"] * good}, metadata={"g": value})
        for n, value in enumerate(VALUES)
        for good in (0, 1)
    ]
    return [*made, record(id="without", metadata={"other": 1})]


def test_numbers_texts_and_missing_values_are_groups_of_their_own() -> None:
    """In summaries, gates, comparisons and audits, each with a name of its own."""
    found = labeler.summary(labels(), "adherence", by="g")
    counts = {row.group: row.defined for row in found}
    assert counts == {**dict.fromkeys(NAMES, 2), "(none)": 3}
    compared = compare(labels(), labels(), "adherence", by="g").rows
    assert {row.group: row.pairs for row in compared} == counts
    agreed = compare_labels(labels(), labels(), by="g").fields
    assert {one.group for one in agreed} == {None, *NAMES}
    assert {row.group for row in audit_labels(labels(), by="g").rows} == NAMES
    rows = list(labeler.metrics(labels(), "adherence"))
    gate = Demand("adherence", 0.9, at_least=True).gate()
    for verdict in check_rows(rows, [gate], GateSettings(by="g", every_record=True)):
        assert len(verdict.records) == counts[verdict.group]


def test_a_text_keeps_its_name_where_nothing_else_has_it() -> None:
    """Groups of a CSV file are texts, and look like numbers."""
    made = [record(id=year, metadata={"year": year}) for year in ("2024", "2025")]
    assert [row.group for row in labeler.summary(made, "adherence", by="year")] == ["2024", "2025"]


def test_observations_of_a_column_are_told_apart_in_the_same_way() -> None:
    """The number 1 and the text are two observations; records without a value are each alone."""
    values = [1, "1", 1, "1", None, None]
    made = [record(id=str(n), metadata={"g": value}) for n, value in enumerate(values)]
    (row,) = labeler.summary(made, "adherence", intervals=Intervals(group="g"))
    assert row.interval == mean_interval([1.0] * 6, groups=["a", "b", "a", "b", None, None])


def seconds(groups: int) -> float:
    """Processor time for tables of so many groups, and for agreement by group."""
    made = [
        record(id=f"r{n}", support={"a": ["0a"] * (n % 3 > 0)}, metadata={"g": f"g{n // 2}"})
        for n in range(2 * groups)
    ]
    begin = time.process_time()
    rows = labeler.summary(made, by="g", intervals=Intervals())
    agreement = compare_labels(made, made, by="g")
    with redirect_stdout(io.StringIO()):
        print_summary(rows, View(Intervals(), "g", every=True))
        print_sections(labels_in_full(agreement))
    return time.process_time() - begin


def test_many_groups_cost_as_much_as_their_records() -> None:
    """Four times as many groups take about four times as long, not sixteen."""
    seconds(20)
    few, many = seconds(40), seconds(160)
    assert many < 9 * few
