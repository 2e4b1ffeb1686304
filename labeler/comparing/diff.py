"""Show the decisions on which two labels of the same sentences differ, and what metrics change by.

Each label is measured once, when it is read, and kept compressed, B's without the sentences that A
has too.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, compress
from typing import Any, NamedTuple

from labeler.calculators import Metric, Ratio, select_metrics, tally
from labeler.calculators.registry import headline_metrics, plain_name
from labeler.calculators.summary_text import alias_note
from labeler.catalog import named_keywords
from labeler.comparing.comparison_text import side_lines, undefined_lines
from labeler.comparing.flips import (
    FIELDS,
    FLIP_WORDS,
    FlipCount,
    MetricChange,
    MetricDiff,
    RecordDiff,
    Totals,
    count_decisions,
    decision_flips,
)
from labeler.comparing.pairs import Pair, PairCounts, others_of, read_pairs
from labeler.comparing.sides import Side, SideOptions, mixed_labels
from labeler.errors import count_of
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.labels.signature import digest
from labeler.sentences.display import (
    NONE,
    Column,
    Display,
    Displayed,
    Grid,
    Section,
    arrow,
    as_sentence,
    figure,
    have,
    number,
    plural,
    shortened,
)
from labeler.version import __version__

TOP = 10
"""Records that are listed."""
_FAST = 1
"""Compression level: a higher one saves a tenth and takes twice as long."""
_SHOWN_METRICS = 4
"""Metrics that are listed of a record, those with the largest changes."""
_SHOWN_FLIPS = 12
"""Flips that are listed of a record and a field."""
_SIGNS = {"gained": "+", "lost": "-", "changed": "~"}


@dataclass(frozen=True, slots=True)
class _Packed:
    """A compressed record and its metrics; two are equal if their labels are."""

    label: str
    content: bytes = field(repr=False, compare=False)
    ratios: tuple[Ratio, ...] = field(repr=False, compare=False)

    def record(self) -> LabelRecord:
        return LabelRecord.model_validate_json(zlib.decompress(self.content))


def _packer(metrics: Sequence[Metric]) -> Callable[..., _Packed]:
    """Return a function that measures and compresses records."""
    shared: dict[object, Ratio] = {}  # there are few distinct ratios, and many records

    def packed(record: LabelRecord, *, sentences: bool = True) -> _Packed:
        counted = tally(record)
        ratios = (metric.ratio(counted, record.id) for metric in metrics)
        kept = tuple(shared.setdefault(ratio.parts, ratio) for ratio in ratios)
        label = digest(record.label.model_dump())
        if not sentences:
            bare = record.example.model_copy(update={"documents": (), "response": ()})
            record = record.model_copy(update={"example": bare})
        return _Packed(label, zlib.compress(record.model_dump_json().encode(), _FAST), kept)

    return packed


class _Sums(NamedTuple):
    """Sums over the records of a diff; see :class:`LabelDiff`."""

    flipped: int
    flips: tuple[FlipCount, ...]
    metrics: tuple[MetricDiff, ...]
    records: tuple[RecordDiff, ...]


@dataclass(frozen=True, repr=False)
class LabelDiff(Displayed):
    """The differences between two sets of labels, and the changes of the metrics.

    Iterate over it for the differences of every pair, in A's order. Sums are made when first used.

    Attributes:
        a: the labels to start from.
        b: the labels that are compared with them.
        counts: the numbers of pairs and of other records.
        compared: the metrics that are compared.
        by: name of the metadata column that records are grouped by, or ``None``.
        top: number of the records that changed most to list.
    """

    a: Side[_Packed]
    b: Side[_Packed]
    counts: PairCounts
    compared: tuple[Metric, ...]
    by: str | None
    top: int
    _shown: tuple[bool, ...]
    """True for each of the measured metrics that is compared."""
    _pairs: tuple[Pair[_Packed], ...]

    @property
    def flipped(self) -> int:
        """Number of records with a flip."""
        return self._sums.flipped

    @property
    def flips(self) -> tuple[FlipCount, ...]:
        """Numbers of flips, of all records first, then by group."""
        return self._sums.flips

    @property
    def metrics(self) -> tuple[MetricDiff, ...]:
        """Changes of the metrics, in the same order."""
        return self._sums.metrics

    @property
    def records(self) -> tuple[RecordDiff, ...]:
        """The records that changed most, the largest change first, without unchanged ones."""
        return self._sums.records

    def __iter__(self) -> Iterator[RecordDiff]:
        for pair in self._pairs:
            a, b = self.labels(pair.id)
            tallies = tally(a), tally(b)
            yield RecordDiff(
                id=pair.id,
                group=pair.group,
                flips=tuple(decision_flips(a.example, (a.label, b.label), tallies)),
                changes=tuple(MetricChange.of(*change) for change in self._changes(pair)),
                decisions=count_decisions(*tallies),
            )

    def _changes(self, pair: Pair[_Packed]) -> Iterator[tuple[str, Ratio, Ratio]]:
        """Yield each metric's id and both ratios."""
        a, b = (compress(kept.value.ratios, self._shown) for kept in (pair.a, pair.b))
        return zip((metric.id for metric in self.compared), a, b, strict=True)

    @property
    def pairs(self) -> dict[str, int]:
        """Number of records with a value on both sides, by metric."""
        found = dict.fromkeys((metric.id for metric in self.compared), 0)
        for pair in self._pairs:
            for name, a, b in self._changes(pair):
                found[name] += a.value is not None and b.value is not None
        return found

    def labels(self, name: str) -> tuple[LabelRecord, LabelRecord]:
        """Return both labels of a record."""
        a, b = (side.value(name).record() for side in (self.a, self.b))
        sentences = {"documents": a.example.documents, "response": a.example.response}
        return a, b.model_copy(update={"example": b.example.model_copy(update=sentences)})

    @cached_property
    def _sums(self) -> _Sums:
        totals: dict[str | None, Totals] = {None: Totals(None, self.compared)}
        most: list[tuple[Fraction, int, int, RecordDiff]] = []
        flipped = 0
        for place, record in enumerate(self):
            for group in {None, record.group}:
                if group not in totals:
                    totals[group] = Totals(group, self.compared)
                totals[group].add(record)
            flipped += bool(record.flips)
            if record.flips or record.size:
                # Of two equal changes the earlier one ranks higher.
                heapq.heappush(most, (record.size, len(record.flips), -place, record))
                if len(most) > self.top:
                    heapq.heappop(most)
        ordered = [totals[group] for group in sorted(totals, key=lambda group: group or "")]
        return _Sums(
            flipped,
            tuple(count for part in ordered for count in part.flips()),
            tuple(row for part in ordered for row in part.metrics()),
            tuple(entry[-1] for entry in sorted(most, reverse=True)),
        )

    @property
    def groups(self) -> tuple[str | None, ...]:
        """``None`` for all records, then the groups."""
        return tuple(dict.fromkeys(count.group for count in self.flips))

    @property
    def conclusion(self) -> str:
        """The records whose verdicts differ, and the first changes, in one sentence."""
        total = self.counts.pairs
        found = [count for count in self._flips_of(None) if count.flipped]
        first = "; ".join(map(str, found[:2]))
        verdicts = f"{self.flipped:,} of {plural(total, 'record')} {have(self.flipped)} a verdict "
        verdicts += f"that differs: {first}"
        if not self.flipped:
            verdicts = f"no verdict differs in {plural(total, 'record')} with the same sentences"
        parts = self.counts.left_out
        others = ", ".join(f"{n:,} with {others_of(part)}" for part, n in parts.items())
        left_out = others and f"not compared: {others} (labeler compare counts them, too)"
        remarks = [verdicts, left_out]
        if sum(parts.values()) > total:  # most records say nothing about the judge
            remarks.reverse()
        return as_sentence("; ".join(filter(None, (self.counts.warning, *remarks))))

    def _flips_of(self, group: str | None) -> list[FlipCount]:
        """Return the flips of a group, the most telling field first."""
        order = [*FLIP_WORDS]
        counts = (count for count in self.flips if count.group == group)
        return sorted(counts, key=lambda count: order.index(count.field))

    def figures(self, group: str | None = None) -> Grid:
        """Return the flips of a group, or of all records, in plain words."""
        heads = ("differ", "of", "B: yes, A: no", "A: yes, B: no", "records")
        columns = [Column("verdicts", words=True), *map(Column, heads)]
        cells = [
            [
                FLIP_WORDS[count.field].verdicts,
                f"{count.flipped:,}",
                f"{count.decisions:,}",
                *(f"{n:,}" if FLIP_WORDS[count.field].positive else NONE for n in both),
                f"{count.records:,}",
            ]
            for count in self._flips_of(group)
            for both in [(count.gained, count.lost)]
        ]
        return Grid(columns, cells)

    def _display(self) -> Display:
        sides = (f"A is {self.a.name}", f"B is {self.b.name}")
        notes = [*self._changed_most(), *sides, *self.pairing]
        return Display(self.conclusion, self.figures(), notes)

    @property
    def pairing(self) -> list[str]:
        """Lines on the records that are paired, and those with other parts on both sides."""
        unlike = self.counts.unlike.items()
        others = (f"of these with another {parts}: {count}" for parts, count in unlike)
        notes = mixed_labels(A=self.a.signatures, B=self.b.signatures)
        return [self.counts.in_words(), *others, *(f"note: {note}" for note in notes)]

    def _changed_most(self, *, details: bool = False) -> Iterator[str]:
        """Yield the records that changed most, with the first metric that did, or with all."""
        metrics = dict.fromkeys(row.metric for row in self.metrics)
        ordered = dict.fromkeys([*headline_metrics(metrics), *metrics])
        if self.records:
            yield "Changed most, from A to B:"
        for record in self.records:
            flips = len(record.flips)
            words = "1 verdict differs" if flips == 1 else f"{flips} verdicts differ"
            changes = {change.metric: change for change in record.changes if change.change}
            first = next((metric for metric in ordered if metric.id in changes), None)
            if first is not None:
                one = changes[first.id]
                words += f", {plain_name(first)} {figure(one.a)} → {figure(one.b)}"
            yield f"  {shortened(record.id)}: {words}"
            if details:
                yield from (f"    {line}" for line in _differing(record) if line)

    def in_full(self) -> Iterator[Section]:
        """Yield the sides, for all and each group flips and changes, and the largest changes."""
        sides = (("A", self.a), ("B", self.b))
        lines = (side_lines(letter, one, len(one.failed)) for letter, one in sides)
        yield Section(lines=[*chain(*lines), *self.pairing])
        for group in self.groups:
            rows = [row for row in self.metrics if row.group == group]
            grids = [self.figures(group), *([_changes(rows)] if rows else [])]
            heading = None if group is None else f"{self.by}: {shortened(group)}"
            yield Section(heading, grids, [*undefined_lines(rows)])
        aliases = alias_note(row.metric for row in self.metrics)
        yield Section(
            lines=[*self._changed_most(details=True), "", *aliases, f"labeler:{__version__}"]
        )

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        counts, pairs = self.counts, self.pairs
        return {
            "a": self.a.as_json() | {"failed": len(self.a.failed)},
            "b": self.b.as_json() | {"failed": len(self.b.failed)},
            "counts": {
                "pairs": counts.pairs,
                "unlike": counts.left_out,
                **counts.others_as_json(),
            },
            "by": self.by,
            "flipped": self.flipped,
            "flips": [count.as_json() for count in self.flips],
            "metrics": [row.as_json() for row in self.metrics],
            "records": [record.as_json(pairs) for record in self.records],
            "labeler": __version__,
        }


@named_keywords
def diff_labels(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    metrics: str | Iterable[str] | None = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    top: int = TOP,
    by: str | None = None,
    signature: str | None = None,
    trial: int | None = None,
) -> LabelDiff:
    """Show the decisions on which two sets of labels differ, and what each metric changes by.

    Compared are the records that both have a label of, for the same question, documents and
    response. A record's share of a mean's change is its own change over the number of pairs; the
    shares add up to it exactly. See ``docs/diff.md``.

    Args:
        a: label records and failures to start from, such as
            ``labeler.api.read_labels("before.jsonl")``; other kinds of records are left out.
        b: those that are compared with them.
        metrics: metric ids, as for :func:`labeler.metrics`; by default each metric once, in its
            default definition, that labels of both sides have the fields for.
        names: names of the sides in errors and results, such as their files.
        top: number of the records that changed most to list.
        by: name of a metadata column to group by as well.
        signature: a part of the signature of the labels of each side.
        trial: the trial of the labels of each side.

    Returns:
        The difference of each pair, flipped decisions by field, and each metric's change as an
        exact fraction.

    Raises:
        UsageError: a side has no label that fits the choice, or two different ones of a record; no
            record has a label on both sides for the same sentences; no label has the column; or
            ``top`` is negative.
        UnknownName: there is no such metric.

    Example:
        >>> stricter = labels.at(support=0.9)
        >>> row = labeler.comparing.diff_labels(labels, stricter, "adherence").metrics[0]
        >>> row.change == row.mean_b - row.mean_a
        True
    """
    count_of("top", top)
    chosen = select_metrics(metrics)
    options = SideOptions(by=by, signature=signature, trial=trial)
    packed = _packer(chosen)
    keep = (packed, partial(packed, sentences=False))
    (pairs,) = read_pairs([a, b], keep, options, names=names)
    compared = tuple(chosen if metrics is not None else pairs.measurable(chosen))
    shown = tuple(metric in compared for metric in chosen)
    found = (pairs.a, pairs.b, pairs.counts)
    return LabelDiff(*found, compared, options.by, top, shown, pairs.pairs)


# Details as text.


def _changes(rows: Sequence[MetricDiff]) -> Grid:
    heads = ("A", "B", "B-A", "changed", "of")
    return Grid(
        [Column("mean of", words=True), *map(Column, heads)],
        [
            [
                f"{row.metric.id} {arrow(higher_is_better=row.metric.higher_is_better)}",
                number(row.mean_a),
                number(row.mean_b),
                "0" if row.change == 0 else number(row.change, "+.4f"),
                f"{row.changed:,}",
                f"{row.pairs:,}",
            ]
            for row in rows
        ],
    )


def _differing(record: RecordDiff) -> Iterator[str]:
    """Yield a line of the decisions that differ, and one of the metrics."""
    fields: dict[str, list[str]] = {}
    for flip in sorted(record.flips, key=lambda flip: FIELDS.index(flip.field)):
        fields.setdefault(flip.field, []).append(f"{_SIGNS[flip.direction]}{flip.key}")
    yield "; ".join(
        f"{name.replace('_', ' ')} {_first(own, _SHOWN_FLIPS, ' ', ' and')}"
        for name, own in fields.items()
    )
    moved = [one for one in record.changes if one.change]
    moved.sort(key=lambda one: -abs(one.change or Fraction()))
    values = [f"{one.metric} {number(one.a)} → {number(one.b)}" for one in moved]
    yield _first(values, _SHOWN_METRICS, ", ", ", and")


def _first(parts: Sequence[str], most: int, comma: str, last: str) -> str:
    """Return the first parts, and the number of the others."""
    more = f"{last} {len(parts) - most} more" if len(parts) > most else ""
    return comma.join(parts[:most]) + more
