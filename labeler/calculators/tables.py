"""Tables of Python: summaries by metric, labels at a glance, and the records to look at first."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex, TypeVar, cast, overload

from labeler.calculators.intervals import Intervals
from labeler.calculators.metrics_row import DistinctOutcome, DistinctRows, MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.calculators.summary import SHARE, SUPPORTED, SummaryRow
from labeler.calculators.summary_text import (
    Headline,
    conclusions,
    configuration_names,
    filled,
    floor_note,
    measured_rows,
    summary_cells,
    summary_notes,
)
from labeler.calculators.tally import Tally, tally
from labeler.catalog import check_key, unknown
from labeler.errors import UnknownName, UsageError, count_of
from labeler.labels.answers import ClaimsLabelingOutput
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, records_of
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    NONE,
    Column,
    Display,
    Displayed,
    Grid,
    display_of,
    have,
    plural,
    reason_counts,
    shortened,
)
from labeler.sentences.example import Sentence
from labeler.sentences.words import STOP_WORDS, stems, surface_words

if TYPE_CHECKING:
    from labeler.labels.answering import LabelFacts


class _OfMetric(Protocol):
    """A row about one metric, and one group if rows are grouped."""

    @property
    def metric(self) -> Metric: ...
    @property
    def group(self) -> str | None: ...


R = TypeVar("R", bound=_OfMetric)


def find_row(rows: Iterable[R], key: str | tuple[str, str]) -> R:
    """Return the row of a metric, or of a metric and group.

    Raises:
        UnknownName: there is no such metric or group; the message has near spellings.
        UsageError: several rows are of them.
    """
    rows = list(rows)
    name, *groups = (key,) if isinstance(key, str) else key
    named = [row for row in rows if name in row.metric.spellings]
    if not named:
        raise UnknownName(unknown("metric", str(name), [row.metric.id for row in rows]))
    found = [row for row in named if not groups or row.group in groups]
    if not found:
        raise UnknownName(unknown("group", str(groups[0]), [row.group or "(all)" for row in named]))
    if len(found) > 1:
        several = list(dict.fromkeys(row.group or "(all)" for row in found))
        raise UsageError(
            f"{name!r} is of {len(several)} groups: name one, such as [{name!r}, {several[0]!r}]"
            if len(several) > 1
            else f"{name!r} is of {len(found)} judge configurations: choose by row.label"
        )
    return found[0]


class SummaryTable(Displayed, list[SummaryRow]):
    """Summaries: a list, and ``table["adherence"]`` is the row of a metric.

    Args:
        rows: the summaries.
        intervals: settings of their intervals, if they have any.
    """

    def __init__(self, rows: Iterable[SummaryRow], intervals: Intervals | None = None) -> None:
        super().__init__(rows)
        self.intervals = intervals

    @overload
    def __getitem__(self, key: SupportsIndex | str | tuple[str, str]) -> SummaryRow: ...
    @overload
    def __getitem__(self, key: slice) -> list[SummaryRow]: ...
    def __getitem__(
        self, key: SupportsIndex | str | tuple[str, str] | slice
    ) -> SummaryRow | list[SummaryRow]:
        """Return a row by its position, metric, or metric and group; or several by a slice.

        Raises:
            UnknownName: there is no such metric or group; the message has near spellings.
            UsageError: several groups or judge configurations have the metric.
        """
        if isinstance(key, str | tuple):
            return find_row(self, key)
        check_key("row", key)
        return super().__getitem__(key)

    def _display(self) -> Display:
        labels = list(dict.fromkeys(row.label for row in self))
        cells = summary_cells(self.intervals)
        if any(row.group is not None for row in self):
            cells = {Column("group", words=True): lambda row: row.group or NONE} | cells
        if len(labels) > 1:
            cells |= {Column("labels"): lambda row: str(1 + labels.index(row.label))}
        grid = filled(cells, measured_rows(self))
        made_by = [f"{n}: {one or 'no label'}" for n, one in enumerate(labels, start=1)]
        made_by = made_by if len(labels) > 1 else [f"by {one or 'no label'}" for one in labels]
        first = [row for row in self if row.label == labels[0]]
        notes = [*made_by, *summary_notes(first, self.intervals if len(labels) == 1 else None)]
        notes += selection_warnings(labels[1:])
        return Display(" ".join(conclusions(self)) or "0 summaries", grid, notes)


def labels_display(
    outcomes: Sequence[AnyOutcome],
    facts: LabelFacts,
    table: SummaryTable,
    cost: str,
    what: str = "label",
) -> Display:
    """Return the display of labels: the conclusion, each metric with its mean, and notes.

    Args:
        outcomes: labels and failures.
        facts: counts of them.
        table: their summary.
        cost: the cost of the run, in words.
        what: name of one of the records.
    """
    by = next(iter(facts.judges)) if len(facts.judges) == 1 else f"{len(facts.judges)} judges"
    failed = facts.failed.total()
    counts = f"{plural(len(outcomes) - failed, what)}{f' by {by}' if facts.judges else ''}"
    counts += f", {failed:,} failed"
    if failed == len(outcomes):
        return _failures(counts, outcomes)
    grid = cast("Grid", display_of(table).grid).without("v").without("pooled")
    notes = [counts, *([f"failed: {reason_counts(facts.failed)}"] if facts.failed else [])]
    notes.append(f"cost: {cost}")
    warnings = [*selection_warnings(row.label for row in table), *floor_note(facts.judges)]
    if len({row.label for row in table}) > 1:
        notes.append("several judge configurations, each with rows of its own: .summary()")
    else:
        known = {*notes, *warnings}
        notes += [one for one in summary_notes(table, table.intervals) if one not in known]
    return Display(" ".join(conclusions(table)), grid, notes, "; ".join(warnings))


def _failures(title: str, outcomes: Sequence[AnyOutcome]) -> Display:
    """Return the display of rows without a label: reasons by id, and a message for each reason."""
    failed = [outcome for outcome in outcomes if isinstance(outcome, LabelFailure)]
    first = {one.reason: f"{one.reason}: {one.message}" for one in reversed(failed)}
    columns = (Column("id", words=True), Column("reason", words=True))
    grid = Grid(columns, [(one.id, one.reason) for one in failed]) if failed else None
    return Display(title, grid, [*first.values()])


# The records with the least support, and the sentences that lack it.

MOST = 5
"""Default number of records."""
_LONGEST = 600
"""Characters of a text in a line, at most."""


class Unsupported(NamedTuple):
    """A response sentence that the documents do not fully support.

    Attributes:
        key: its key.
        text: its text.
        explanation: the judge's reason, or its probability.
        nearest: the sentence that contradicts it by the label, else the first one that the
            explanation names, else the one that shares the most words with it, rare words first;
            ``None`` if no sentence shares a word.
    """

    key: str
    text: str
    explanation: str
    nearest: Sentence | None


@dataclass(frozen=True)
class WorstRecord:
    """A record with its unsupported sentences.

    Attributes:
        record: the label.
        counted: its tally.
        unsupported: the response sentences without full support, in order.
    """

    record: LabelRecord
    counted: Tally
    unsupported: tuple[Unsupported, ...]

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id

    def as_json(self) -> dict[str, Any]:
        """Return the published form: id, counts, and each unsupported sentence."""
        return {
            "id": self.id,
            "sentences": len(self.counted.response),
            "supported": len(self.counted.supported),
            "unsupported": [
                one._asdict() | {"nearest": one.nearest and asdict(one.nearest)}
                for one in self.unsupported
            ],
        }


class WorstRecords(Displayed, list[WorstRecord]):
    """Records with the least support, the worst first.

    Args:
        records: the records.
        lacking: number of all labels with an unsupported sentence.
        unjudged: number of other labels without a verdict on the whole answer, such as empty ones.
        total: number of all labels.
        failed: number of rows without a label.
        ways: short names of the judge configurations, by printed signature.
    """

    def __init__(
        self,
        records: Iterable[WorstRecord],
        *,
        lacking: int,
        unjudged: int,
        total: int,
        failed: int,
        ways: Mapping[str | None, str],
    ) -> None:
        super().__init__(records)
        self.lacking, self.unjudged, self.total = lacking, unjudged, total
        self.failed, self.ways = failed, ways

    @property
    def conclusion(self) -> str:
        """One sentence on the number of records with an unsupported sentence."""
        if not self.total:
            return str(Headline("No labels.", failed=self.failed))
        failed = f"; {plural(self.failed, 'row')} failed" if self.failed else ""
        if self.unjudged == self.total:
            return f"No answer has a verdict{failed}."
        if self.total == 1 and not self.lacking:
            return f"The only answer has no unsupported sentence{failed}."
        noun = plural(self.total, "answer")
        if len(self.ways) > 1:
            noun = f"{plural(self.total, 'label')} of {len(self.ways)} judge configurations"
        counted = f"{self.lacking:,}" if self.lacking else "None"
        found = f"{counted} of {noun} {have(self.lacking or 1)} an unsupported sentence"
        if self.unjudged:
            found += f"; {self.unjudged:,} {have(self.unjudged)} no verdict"
        found += failed
        if len(self) < self.lacking:
            found += f"; the {len(self) if len(self) > 1 else 'one'} with the least support"
        return f"{found}{':' if self.lacking else '.'}"

    def _display(self) -> Display:
        return Display(self.conclusion, notes=list(self.lines()))

    def lines(self) -> Iterator[str]:
        """Yield lines of text: each record, its unsupported sentences, evidence and reasons."""
        for one in self:
            by = f" by {self.ways[str(one.record.signature)]}" if len(self.ways) > 1 else ""
            yield f"{shortened(one.id)}{by}: {one.counted.support_in_words}"
            if question := one.record.example.question:
                yield f"  question: {shortened(question, _LONGEST)}"
            for lacking in one.unsupported:
                yield f"  unsupported {lacking.key}: {shortened(lacking.text, _LONGEST)}"
                if lacking.nearest is None:
                    yield "    nearest: no document sentence shares a word with it"
                else:
                    found = lacking.nearest
                    yield f"    nearest {found.key}: {shortened(found.text, _LONGEST)}"
                if lacking.explanation:
                    yield f"    because: {shortened(lacking.explanation, _LONGEST)}"


Rank = tuple[float, int, int]


def rank(share: Ratio, position: int) -> Rank:
    """Return the rank of a record with an unsupported sentence: the lowest is the worst.

    By the share of supported sentences, which is unknown, and ranks last, if a sentence has no
    verdict; then by the number of unsupported ones; then by position.
    """
    if share.numerator is None or share.denominator is None:
        return 1.0, 0, position
    return float(share), int(share.numerator - share.denominator), position


class WorstIds:
    """Ids of the two rows of each judge configuration with the least support.

    They are in the order of :func:`worst_records`.
    """

    def __init__(self) -> None:
        self._found: dict[str | None, list[tuple[Rank, str]]] = {}

    def watch(self, rows: Iterable[MetricsRow]) -> Iterator[MetricsRow]:
        """Yield rows, and keep the ids of the worst."""
        for position, row in enumerate(rows):
            share, supported = (row.metrics.get(one) for one in (SHARE, SUPPORTED))
            if share is not None and supported == 0:
                own = self._found.setdefault(row.configuration, [])
                if row.id not in {name for _, name in own}:  # a copy
                    insort(own, (rank(share, position), row.id))
                    del own[2:]
            yield row

    def of(self, configuration: str | None) -> tuple[str, ...]:
        """Return the ids of one judge configuration, the worst first."""
        return tuple(name for _, name in self._found.get(configuration, ()))


def worst_records(outcomes: Iterable[AnyOutcome], most: int = MOST) -> WorstRecords:
    """Return the records with the least support.

    The smallest share of supported sentences comes first; of equal shares the record with more
    unsupported sentences, then the earlier one. A record with a sentence without a verdict has no
    share and comes last. Records without an unsupported sentence and failed rows are left out.
    Copies and failures count as in metrics, see :func:`labeler.calculators.summarize`.

    Args:
        outcomes: of any kind; consumed once.
        most: number of records.
    """
    count_of("the number of records", most, 1)
    kept: list[tuple[Rank, LabelRecord]] = []
    signatures: dict[str, None] = {}
    lacking = unjudged = total = failed = 0
    rows = DistinctRows(map(DistinctOutcome.of, records_of(outcomes, "label")))
    for position, row in enumerate(rows):
        outcome = row.outcome
        if isinstance(outcome, LabelFailure):
            failed += 1
            continue
        total += 1
        signatures[str(outcome.signature)] = None
        found = tally(outcome)
        if found.unsupported:
            lacking += 1
            place = rank(found.response_share(found.supported), position)
            insort(kept, (place, outcome), key=itemgetter(0))
            del kept[most:]
        elif found.unjudged or not found.response:
            unjudged += 1
    described = (_described(record, tally(record)) for _, record in kept)
    ways = configuration_names(signatures)
    return WorstRecords(
        described, lacking=lacking, unjudged=unjudged, total=total, failed=failed, ways=ways
    )


def _described(record: LabelRecord, found: Tally) -> WorstRecord:
    nearest = _nearest(record)
    reasons = {
        entry.response_sentence_key: record.why(entry)
        for entry in reversed(record.label.sentence_support_information)
        if not entry.fully_supported
    }
    unsupported = (
        Unsupported(key, text, reasons[key], nearest(key, text, reasons[key]))
        for key, text in found.texts.items()
        if key in found.unsupported
    )
    return WorstRecord(record, found, tuple(unsupported))


def _nearest(record: LabelRecord) -> Callable[[str, str, str], Sentence | None]:
    """Return a function that finds the evidence nearest to a response sentence of a record.

    The function takes the sentence's key and text, and the judge's reason: a sentence that the
    judge names is the one to read next to its reason.
    """
    sentences = list(record.example.evidence_sentences())
    by_key = {sentence.key: sentence for sentence in sentences}
    words_of = [_words(sentence.text) for sentence in sentences]
    counts = Counter(word for words in words_of for word in words)
    weights = {word: log(1 + len(sentences) / count) for word, count in counts.items()}
    contradicting: dict[str, str] = {}
    if isinstance(record.label, ClaimsLabelingOutput):
        for claim in record.label.response_claims:
            for key in claim.contradicting_sentence_keys[:1]:
                contradicting.setdefault(claim.response_sentence_key, key)

    def nearest(key: str, text: str, reason: str) -> Sentence | None:
        if against := contradicting.get(key):
            return by_key.get(against)
        own = set(_TOKEN.findall(text.lower()))  # "the 3a protein" names no sentence
        for token in _TOKEN.findall(reason.lower()):
            if token in by_key and token not in own:
                return by_key[token]
        wanted = _words(text)
        shared = [
            sum(weights[word] for word in wanted & words) / (1 + len(words)) ** 0.25
            for words in words_of
        ]
        best = max(shared, default=0.0)
        return sentences[shared.index(best)] if best > 0 else None

    return nearest


_TOKEN = re.compile(r"\w+")


def _words(text: str) -> set[str]:
    return set(stems(surface_words(text))) - STOP_WORDS
