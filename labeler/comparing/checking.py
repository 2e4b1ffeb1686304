"""Check gates: means of labels, and their drops from a base, record by record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from xml.etree import ElementTree as ET

from labeler.calculators import Metric, MetricsRow, SummaryRow, summarize
from labeler.calculators.ratio import Ratio, counts_in_gates, difference
from labeler.calculators.summary import CountedRows
from labeler.calculators.summary_text import configuration_names, not_finite_note
from labeler.comparing.gates import IN_BASE, Demand, Gate, GateSettings, measure_gates
from labeler.comparing.pairs import pair_by_question
from labeler.comparing.sides import quoted
from labeler.comparing.verdicts import GateRecords, GateResults, Note, Verdict, judge
from labeler.errors import UsageError
from labeler.labels.answering import AnsweringModels, joined, mixture
from labeler.labels.record import AnyOutcome
from labeler.labels.signature import selection_warnings
from labeler.sentences.characters import visible
from labeler.sentences.display import plural, reason_counts

OTHER_QUESTION = "other_question"
"""Why two labels of an id are not a pair."""


class Checked(NamedTuple):
    """Verdicts, and what callers report next to them.

    Attributes:
        results: the verdicts.
        gates: the gates.
        repeated: labels left out because they repeat.
    """

    results: GateResults
    gates: list[Gate]
    repeated: int


def check_gates(
    outcomes: Iterable[AnyOutcome] | CountedRows,
    demands: Sequence[Demand],
    base: Iterable[AnyOutcome] | CountedRows | None = None,
    settings: GateSettings | None = None,
) -> Checked:
    """Check outcomes of any kind against gates.

    Args:
        outcomes: labels, scores, generated questions and failures; consumed once.
        demands: the gates; those on drops need a base.
        base: outcomes of another run to start from, such as the main branch.
        settings: how to check.

    Raises:
        UnknownName: a metric does not exist.
        UsageError: there is no gate, a demand names several metrics, there is a base without a gate
            on a drop or the reverse, or an error of :func:`check_rows` or :func:`check_drops`.
    """
    settings, models = settings or GateSettings(), AnsweringModels()
    drops = [one for one in demands if one.of_drop]
    if (base is None) is bool(drops):
        raise UsageError("against and max_drop need each other: give both or neither")
    if isinstance(outcomes, CountedRows):
        models = AnsweringModels(outcomes.models())
    else:
        outcomes = models.watch(outcomes)
    gates, new = measure_gates(outcomes, demands)
    means = [gate for gate in gates if not gate.of_drop]
    rows: Iterable[MetricsRow] = new
    if base is not None or not demands:
        rows = list(new)
    found: list[Verdict] = []
    if means or not (drops or settings.one_model):
        found += check_rows(rows, means, settings)
    repeated = new.repeated
    if base is not None:
        _, before = measure_gates(base, drops)
        dropped = [gate for gate in gates if gate.of_drop]
        found += check_drops(list(rows), list(before), dropped, settings)
        repeated += before.repeated
    if settings.one_model:
        faults = tuple(models.faults())
        finding = "; ".join(faults) or "no other model or host is named"
        found.append(Verdict("one model", not faults, finding))
    return Checked(GateResults(found), gates, repeated)


def check_rows(
    rows: Iterable[MetricsRow],
    gates: Sequence[Gate],
    settings: GateSettings | None = None,
    notes: Iterable[Note] = (),
) -> list[Verdict]:
    """Check measured rows against gates.

    Labels of each signature, and each group of a column, must pass. A verdict is on all models that
    answered for a signature, and notes that they are several. Rows that failed before a judge was
    chosen count as failed with each signature. Where some labels of a group were asked for a
    metric, those that were not, as of a poorer profile, are not checked, and the verdict notes
    them.

    Args:
        rows: rows that were measured with the gates' metrics; consumed once.
        gates: the gates.
        settings: how to check.
        notes: remarks on every verdict.

    Returns:
        A verdict for each gate, group, and signature that can have the metric.

    Raises:
        UsageError: there is no gate, or no row has the column.
    """
    if not gates:
        raise UsageError("no gate is given: name a metric and a number, such as adherence=0.9")
    settings = settings or GateSettings()
    metrics = tuple(dict.fromkeys(gate.metric for gate in gates))
    records = GateRecords(gates, settings.by, every=settings.every_record)
    summaries = summarize(
        records.watch(rows), metrics, settings.by, intervals=settings.drawn, by_model=False
    )
    return [one for gate in gates for one in _verdicts(gate, summaries, settings, records, notes)]


def _verdicts(
    gate: Gate,
    summaries: Sequence[SummaryRow],
    settings: GateSettings,
    records: GateRecords,
    remarks: Iterable[Note],
) -> Iterator[Verdict]:
    """Yield the verdicts on one gate."""
    rows = [row for row in summaries if row.metric == gate.metric]
    if not rows:
        yield Verdict(gate.demand, passed=False, finding="there are no records")
    names, unasked = configuration_names(row.label for row in rows), _unasked(rows)
    ways = names if len(names) > 1 else {}
    checked = {row.group for row in rows if row.label not in unasked}
    notes: dict[str | None, list[Note]] = {}
    for row in rows:
        if row.label in unasked and row.group in checked:
            full = f"not gated: {reason_counts(row.undefined | row.failed)} by {names[row.label]}"
            total = plural(row.rows, "record")
            brief = f"not checked: {total} whose judge was not asked for it"
            notes.setdefault(row.group, []).append(Note(full, brief))
    for row in rows:
        if row.label in unasked and row.group in checked:
            continue
        # With the first verdict of the group.
        own = [
            mixture(model.name for model in row.models),
            *selection_warnings([row.label]),
            *not_finite_note(row.metric.id, row.undefined),
        ]
        yield judge(
            gate,
            row,
            settings,
            way=ways.get(row.label),
            notes=(*notes.pop(row.group, ()), *map(Note, filter(None, own)), *remarks),
            records=records.of(gate, row.label, row.group),
        )


def _unasked(rows: Sequence[SummaryRow]) -> set[str | None]:
    """Return the signatures whose labels were not asked for the metric, in all groups."""
    undefined = {row.label for row in rows if row.undefined}
    return undefined - {
        row.label for row in rows if row.defined or any(map(counts_in_gates, row.undefined))
    }


# Drops from a base.


def check_drops(
    new: Sequence[MetricsRow],
    base: Sequence[MetricsRow],
    gates: Sequence[Gate],
    settings: GateSettings | None = None,
) -> list[Verdict]:
    """Check the drops of measured rows from the rows of a base, paired by id.

    A drop is a value of its own, or a rise where less is better: gates, groups and intervals treat
    it as any metric. Rows without a pair of labels count as failed.

    Args:
        new: rows to check.
        base: rows to start from.
        gates: gates on drops.
        settings: how to check.

    Returns:
        A verdict for each gate, judge configuration and group.

    Raises:
        UsageError: judge configurations cannot be paired, a row has two values, no two rows of an
            id ask the same question, or no row has a column that is named.
    """
    found: list[Verdict] = []
    for gate in gates:
        for rows, notes in _drops(gate.metric, new, base):
            low, high = gate.metric.range or (0.0, 1.0)
            drops = (abs(row.metrics[gate.metric.id].value or 0.0) for row in rows)
            span = max([high - low, *drops])
            metric = replace(gate.metric, bounded=False, scale=(-span, span))
            found += check_rows(rows, [replace(gate, metric=metric)], settings, notes)
    return found


_Side = dict[str, MetricsRow]
"""Rows of one judge configuration by id."""


def _drops(
    metric: Metric, new: Sequence[MetricsRow], base: Sequence[MetricsRow]
) -> Iterator[tuple[list[MetricsRow], list[Note]]]:
    """Yield the drops of each judge configuration as rows of their own, with notes on them."""
    ours, theirs = _by_label(metric, new), _by_label(metric, base)
    if len(ours) == len(theirs) == 1:
        matched = dict(zip(ours, theirs, strict=True))
    elif ours.keys() == theirs.keys():
        matched = dict(zip(ours, ours, strict=True))
    else:
        raise UsageError(
            f"{metric.id}: {len(ours)} judge configurations are checked against "
            f"{len(theirs)} others; give files of one each, or of the same ones"
        )
    for label, base_label in matched.items():
        after, before = ours[label], theirs[base_label]
        failed = {row.id for row in (*before.values(), *after.values()) if row.failed}
        asked, asks = (
            {name: row.question for name, row in side.items() if not row.failed}
            for side in (before, after)
        )
        by_question = pair_by_question(asked, asks, failed)
        after = {by_question.names.get(name, name): row for name, row in after.items()}
        rows = [
            _drop(metric, label, name, after.get(name), before.get(name))
            for name in sorted({*after, *before})
        ]
        _check_pairs(after, before, rows)
        notes = map(Note, filter(None, (by_question.warning(len(asked)), by_question.note())))
        yield rows, [*notes, *_notes(after, before, label, base_label)]


def _drop(
    metric: Metric, label: str | None, name: str, new: MetricsRow | None, base: MetricsRow | None
) -> MetricsRow:
    """Return the drop of a metric as a row; without two labels of one question a failed one."""
    value, question, missing = None, 0, None
    if new is None:
        missing = "only_in_base"
    elif new.failed:
        missing = new.failed
    elif base is None:
        missing = "only_in_new"
    elif base.failed:
        missing = f"{base.failed}{IN_BASE}"
    elif new.question != base.question:
        missing = OTHER_QUESTION
    else:
        value, question = _difference(metric, new, base), new.question
    row = new or base
    return MetricsRow(
        name,
        {metric.id: Ratio.missing(missing or "") if value is None else value},
        label,
        versions="",
        failed=missing,
        metadata=row.metadata if row else {},
        question=question,
        answered=new.answered if new else None,
    )


def _difference(metric: Metric, row: MetricsRow, base_row: MetricsRow) -> Ratio:
    new, base = row.metrics[metric.id], base_row.metrics[metric.id]
    if new.undefined or base.undefined:
        return Ratio.missing(new.undefined or f"{base.undefined}{IN_BASE}")
    return difference(new, base) if metric.higher_is_better else difference(base, new)


def _check_pairs(new: _Side, base: _Side, rows: Sequence[MetricsRow]) -> None:
    """Require an id on both sides, and of labels one with the same question."""
    if new and base and not new.keys() & base.keys():
        raise UsageError(
            f"new labels and base have no id in common: the new labels have {_some(sorted(new))}, "
            f"the base has {_some(sorted(base))}; rows are paired by id: give both sides the same "
            "rows under the same ids (--id)"
        )
    others = [row.id for row in rows if row.failed == OTHER_QUESTION]
    if others and all(row.failed for row in rows):
        raise UsageError(
            f"new labels and base share {_some(others)}, but ask different questions under each: "
            "these are other rows; give both sides the same rows under the same ids (--id)"
        )


def _some(ids: Sequence[str]) -> str:
    """Return the number of ids, and the first few."""
    return f"{plural(len(ids), 'id')} ({quoted(ids)})"


def _by_label(metric: Metric, rows: Iterable[MetricsRow]) -> dict[str | None, _Side]:
    """Return the rows by judge configuration and id; a label goes before a failure."""
    found: dict[str | None, dict[str, MetricsRow]] = {}
    unsigned: dict[str, MetricsRow] = {}
    for row in rows:
        if metric.id not in row.metrics:
            continue
        side = unsigned if row.label is None else found.setdefault(row.label, {})
        known = side.get(row.id)
        if known is None or known.failed:
            side[row.id] = row
        elif not row.failed and row.metrics[metric.id] != known.metrics[metric.id]:
            raise UsageError(f"record {row.id!r:.80} has two values of {metric.id} in one file")
    return {label: {**unsigned, **side} for label, side in found.items()} or {None: unsigned}


def _notes(new: _Side, base: _Side, label: str | None, base_label: str | None) -> Iterator[Note]:
    """Yield notes on differences in making, on models, and on selected corrections."""
    if label != base_label:
        yield Note(
            f"the base was labeled otherwise: {base_label or 'no label'}",
            "the base has labels of another judge, prompt or settings, which can explain a change",
        )
    answered, before = (
        joined(row.answered.name for row in side.values() if row.answered) for side in (new, base)
    )
    if answered and before and (answered != before or mixture([answered])):
        yield Note(f"answered by {answered}, in the base by {before}")
    yield from map(Note, selection_warnings([base_label]))


# Reports. Ids, groups and names of models are untrusted text, escaped in each.

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, even escaped."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
"""Characters that Markdown may interpret; a backslash escapes them."""


def junit_report(verdicts: Sequence[Verdict], *, per_record: bool = False) -> str:
    """Return a JUnit test suite with one test case a verdict; a missed gate is a failure.

    Args:
        verdicts: the verdicts.
        per_record: whether each record is a test case, too. One that misses the threshold itself
            is a failure if the gate is missed; one without a value is skipped, unless it has no
            pair.
    """
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", {"name": "labeler check"})
    for verdict in verdicts:
        label = verdict.label or "no label"
        finding = "\n".join(filter(None, (verdict.finding, verdict.named)))
        failure = None if verdict.passed else finding
        _case(suite, f"labeler.check.{label}", verdict.title, finding, failure)
        for one in verdict.records if per_record else ():
            failure = one.shown if one.missed and not verdict.passed else None
            name = f"{verdict.title}: {one.id}"
            case = _case(suite, f"labeler.check.record.{label}", name, one.shown, failure)
            if one.value is None and failure is None:
                ET.SubElement(case, "skipped", {"message": _xml(one.shown)})
    failures = len(suites.findall(".//failure"))
    counts = {"tests": str(len(suite)), "failures": str(failures), "errors": "0"}
    suites.attrib.update(counts)
    suite.attrib.update(counts)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _case(
    suite: ET.Element, class_name: str, name: str, output: str, failure: str | None
) -> ET.Element:
    names = {"classname": _xml(class_name), "name": _xml(name)}
    case = ET.SubElement(suite, "testcase", names)
    if failure is None:
        ET.SubElement(case, "system-out").text = _xml(output)
    else:
        text = _xml(failure)
        message = text.partition("\n")[0]
        ET.SubElement(case, "failure", {"message": message, "type": "gate"}).text = text
    return case


def markdown_report(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of verdicts, below the conclusion."""
    lines = [
        "### labeler check",
        "",
        _markdown(GateResults(verdicts).conclusion),
        "",
        "| | gate | found | labels |",
        "|---|---|---|---|",
    ]
    for verdict in verdicts:
        finding = "; ".join(filter(None, (verdict.finding, verdict.named)))
        cells = (verdict.title, finding, verdict.label or "none")
        mark = "✅" if verdict.passed else "❌"
        lines.append(f"| {mark} | {' | '.join(map(_markdown, cells))} |")
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("", visible(text))


def _markdown(text: str) -> str:
    """Escape text for a table cell: no markup, HTML, link or line break."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(visible(text).split()))
