"""Plain words for metrics, the conclusion of labels, and the records with the least support."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from labeler.calculators.registry import Metric
from labeler.calculators.tally import Tally, tally
from labeler.errors import count_of
from labeler.labels.answers import ClaimsLabelingOutput
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import Display, Displayed, in_percent, percent, shortened
from labeler.sentences.example import Sentence
from labeler.sentences.words import STOP_WORDS, stems, surface_words

if TYPE_CHECKING:
    from labeler.calculators.metrics_row import MetricsRow
    from labeler.calculators.summary import SummaryRow

PLAIN_NAMES = {
    "adherence": "answers fully supported",
    "adherence_fraction": "answer sentences supported",
    "adherence_score": "chance of full support",
    "faithfulness": "answer sentences supported",
    "faithfulness:claim": "claims supported",
    "hallucination_rate": "answer sentences unsupported",
    "hallucination_rate:claim": "claims unsupported",
    "relevance": "retrieved sentences relevant",
    "context_relevancy": "retrieved sentences relevant",
    "utilization": "retrieved sentences used",
    "completeness": "relevant sentences used",
    "document_relevance": "documents relevant",
    "context_precision": "relevant documents ranked first",
    "context_utilization_precision": "used documents ranked first",
    "citation_coverage": "answer sentences backed by documents",
    "supported_by_history": "answer sentences supported by earlier turns",
    "citation_precision": "citations that hold",
    "citation_recall": "supported sentences fully cited",
    "citation_f1": "citations that hold and are complete",
    "abstention_rate": "answers that decline",
    "unneeded_abstention_rate": "answers that decline without need",
    "hallucination_contexts": "documents contradicted",
    "answer_relevancy": "claims that answer the question",
    "context_recall": "reference claims retrieved",
    "context_precision_claims": "documents with a reference claim",
    "context_utilization_claims": "retrieved reference claims used",
    "claim_precision": "claims correct",
    "claim_recall": "reference claims in the answer",
    "claim_f1": "claims correct and complete",
    "noise_sensitivity_relevant": "wrong claims from relevant documents",
    "noise_sensitivity_irrelevant": "wrong claims from irrelevant documents",
    "hallucination_incorrect": "wrong claims from no document",
    "self_knowledge": "correct claims from no document",
}
"""Words by metric id; each completes ``52 of 60 …`` or names a column of shares."""

_OF_SENTENCES = ("relevance", "utilization", "completeness")
HEADLINES = {
    "trace": ("adherence", "adherence_fraction", *_OF_SENTENCES, "document_relevance"),
    "claims": ("adherence", "adherence_fraction", "answer_relevancy", *_OF_SENTENCES),
    "reference": (
        *("adherence", "claim_precision", "claim_recall"),
        *("context_recall", "relevance", "completeness"),
    ),
}
"""By profile, the ids of the metrics to show first, in their order."""

OF_WHOLE_ANSWERS = frozenset({"adherence", "abstention_rate", "unneeded_abstention_rate"})
"""Metrics with the value 0 or 1, so that their sums count answers."""


def plain_name(metric: Metric) -> str:
    """Return words for a metric, or its id where there are none.

    The name of another definition follows in parentheses.
    """
    if metric.id in PLAIN_NAMES:
        return PLAIN_NAMES[metric.id]
    if metric.name not in PLAIN_NAMES:
        return metric.id
    return f"{PLAIN_NAMES[metric.name]} ({metric.definition})"


def name_with_id(metric: Metric) -> str:
    """Return the plain words for a metric with its id in parentheses."""
    words = PLAIN_NAMES.get(metric.id) or PLAIN_NAMES.get(metric.name)
    return f"{words} ({metric.id})" if words else metric.id


def headline_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics to show first, at most six; the richest profile they need decides."""
    given = {metric.id: metric for metric in metrics}
    profiles = {metric.profile.name for metric in given.values()}
    richest = next((name for name in reversed(HEADLINES) if name in profiles), "trace")
    first = [given[name] for name in HEADLINES[richest] if name in given]
    return first or list(given.values())[:6]


SUPPORTED = "adherence"
"""The metric of the first line: 1 for an answer whose every sentence is supported."""
_USUAL_LEVEL = 0.95
_LONGEST_ID = 40


@dataclass(frozen=True)
class Headline:
    """The conclusion of the labels of one judge configuration; ``str`` gives all of it.

    Attributes:
        finding: the conclusion, one sentence.
        unsupported: number of answers with an unsupported sentence.
        worst: ids of the records with the least support, if known.
        failed: number of rows without a label.
        unjudged: number of labels without a verdict on the whole answer, such as empty answers.
    """

    finding: str
    unsupported: int = 0
    worst: tuple[str, ...] = ()
    failed: int = 0
    unjudged: int = 0

    @property
    def exceptions(self) -> str:
        """Sentences on unsupported answers and failed rows; empty if there are none."""
        names = ", ".join(shortened(one, _LONGEST_ID) for one in self.worst)
        lacking = f"{self.unsupported:,} {'is' if self.unsupported == 1 else 'are'} not"
        if names:
            lacking += f": {names}" if self.unsupported == 1 else f"; worst: {names}"
        unjudged = f"{self.unjudged:,} {'has' if self.unjudged == 1 else 'have'} no verdict."
        failed = f"{self.failed:,} {'row' if self.failed == 1 else 'rows'} failed."
        counted = ((self.unsupported, f"{lacking}."), (self.unjudged, unjudged))
        return " ".join(text for count, text in (*counted, (self.failed, failed)) if count)

    def __str__(self) -> str:
        return f"{self.finding} {self.exceptions}".rstrip()


def headline(rows: Sequence[SummaryRow], worst: Sequence[str] = ()) -> Headline:
    """Return the conclusion of summaries of one judge configuration, of all its groups.

    ``worst`` are the ids of the records with the least support.

    Example:
        >>> from labeler.calculators.headline import headline
        >>> print(headline(labels.summary(), ["tide-gate-wrong-year"]))
        9 of 14 answers fully supported (64 %, 38 to 86). 5 are not; worst: tide-gate-wrong-year.
    """
    first = rows[0].metric if rows else None
    own = [row for row in rows if row.metric is first]
    labeled, failed = sum(row.labeled for row in own), sum(sum(r.failed.values()) for r in own)
    if not labeled:
        return Headline("No labels.", failed=failed)
    support = [row for row in rows if row.metric.id == SUPPORTED]
    judged = sum(row.defined for row in support)
    if not judged:
        return Headline(_mean_of_first(rows, labeled), failed=failed)
    supported = sum(round((row.mean or 0) * row.defined) for row in support)
    noun = "answer" if judged == 1 else "answers"
    share = percent(supported / judged) if len(support) > 1 else _joined(support[0])
    finding = f"{supported:,} of {judged:,} {noun} fully supported ({share})"
    return Headline(
        f"{finding}{_lowest_group(support)}.",
        judged - supported,
        tuple(worst),
        failed,
        sum(row.labeled for row in support) - judged,
    )


def _mean_of_first(rows: Sequence[SummaryRow], labeled: int) -> str:
    """Return a sentence on the first metric with a value."""
    row = next((row for row in rows if row.defined), None)
    if row is None:
        return f"No metric has a value for {labeled:,} labeled records."
    group = f" for {row.group}" if row.group is not None else ""
    mean, interval = in_words(row)
    between = f" ({interval})" if interval else ""
    return f"{plain_name(row.metric).capitalize()}{group}: {mean} on average{between}."


def _lowest_group(support: Sequence[SummaryRow]) -> str:
    """Return the group with the smallest share, if the shares of groups differ."""
    judged = [row for row in support if row.mean is not None]
    if len({row.mean for row in judged}) < 2:  # noqa: PLR2004 - nothing to be lowest among
        return ""
    row = min(judged, key=lambda row: row.mean or 0)
    count = f"{round((row.mean or 0) * row.defined):,} of {row.defined:,}"
    return f", least for {shortened(str(row.group), _LONGEST_ID)}: {count} ({_joined(row)})"


def _joined(row: SummaryRow) -> str:
    mean, between = in_words(row)
    level = row.interval.level if row.interval else _USUAL_LEVEL
    named = "" if level == _USUAL_LEVEL else f"{level * 100:g} % interval "
    return f"{mean}, {named}{between}" if between else mean


def in_words(row: SummaryRow) -> tuple[str, str]:
    """Return mean and interval, which may be empty, as shares in percent: ``64 %, 38 to 86``."""
    if row.mean is None:
        return "unknown", ""
    is_share = row.metric.range == (0, 1)
    shown = in_percent if is_share else "{:.3g}".format
    mean = f"{shown(row.mean)}{' %' if is_share else ''}"
    if row.interval is None:
        return mean, ""
    return mean, f"{shown(row.interval.low)} to {shown(row.interval.high)}"


def conclusions(rows: Sequence[SummaryRow], worst: WorstIds | None = None) -> list[str]:
    """Return the headline of each judge configuration, with its name if there are several."""
    names = configuration_names(rows)
    found = []
    for label, name in names.items():
        own = [row for row in rows if row.label == label]
        one = headline(own, worst.of(label) if worst else ())
        found.append(f"{name}: {one}" if len(names) > 1 else str(one))
    return found


def configuration_names(rows: Iterable[SummaryRow]) -> dict[str | None, str]:
    """Return short names of judge configurations: the parts in which they differ."""
    labels = list(dict.fromkeys(row.label for row in rows))
    parts = {label: dict.fromkeys((label or "no judge").split("|")) for label in labels}
    counts = Counter(part for own in parts.values() for part in own)
    return {
        label: ", ".join(
            part.removeprefix("judge:").replace(":", " ", 1)
            for part in [one for one in own if counts[one] < len(labels)] or [next(iter(own))]
        )
        for label, own in parts.items()
    }


class Rank(NamedTuple):
    """The rank of a record by its support: the lowest is the worst."""

    supported: float
    """Share of the response sentences."""
    unsupported: int
    """Number of sentences, negative."""
    position: int


class WorstIds:
    """Ids of the rows with the least support, in the order of :func:`worst_records`.

    Args:
        most: number of ids kept for each judge configuration.
    """

    def __init__(self, most: int = 2) -> None:
        self._most = most
        self._found: dict[str | None, list[tuple[Rank, str]]] = {}

    def watch(self, rows: Iterable[MetricsRow]) -> Iterator[MetricsRow]:
        """Yield rows, and keep the ids of the worst."""
        for position, row in enumerate(rows):
            share = row.metrics.get("adherence_fraction")
            if share is not None and share.value is not None and share.value < 1:
                lacking = share.denominator - share.numerator  # type: ignore[operator] # defined
                place = Rank(share.value, -int(lacking), position)
                own = self._found.setdefault(row.configuration, [])
                insort(own, (place, row.id))
                del own[self._most :]
            yield row

    def of(self, configuration: str | None) -> tuple[str, ...]:
        """Return the ids of one judge configuration, the worst first."""
        return tuple(dict.fromkeys(name for _, name in self._found.get(configuration, ())))


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
        nearest: the sentence that contradicts it by the label, else the one that shares the most
            words with it, rare words first; ``None`` if no sentence shares a word.
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
        sentences: number of judged response sentences.
        unsupported: those without full support, in order.
    """

    record: LabelRecord
    sentences: int
    unsupported: tuple[Unsupported, ...]

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id

    def as_json(self) -> dict[str, Any]:
        """Return the published form: id, counts, and each unsupported sentence."""
        return {
            "id": self.id,
            "sentences": self.sentences,
            "unsupported": [
                one._asdict() | {"nearest": one.nearest and asdict(one.nearest)}
                for one in self.unsupported
            ],
        }


class WorstRecords(Displayed, list[WorstRecord]):
    """Records with the least support, the worst first.

    Args:
        records: the records.
        lacking: number of all records with an unsupported sentence.
        total: number of all labels.
    """

    def __init__(self, records: Iterable[WorstRecord], lacking: int, total: int) -> None:
        super().__init__(records)
        self.lacking, self.total = lacking, total

    @property
    def conclusion(self) -> str:
        """One sentence on the number of records with an unsupported sentence."""
        if not self.total:
            return "No labels."
        if not self.lacking:
            return f"Every sentence of all {self.total:,} answers is supported."
        some = f"; the {len(self)} with the least support" if len(self) < self.lacking else ""
        counted = f"{self.lacking:,} of {self.total:,} answers have an unsupported sentence"
        return f"{counted}{some}:"

    def _display(self) -> Display:
        return Display(self.conclusion, notes=list(self.lines()))

    def lines(self) -> Iterator[str]:
        """Yield lines of text: each record, its unsupported sentences, evidence and reasons."""
        for one in self:
            supported = one.sentences - len(one.unsupported)
            name = shortened(one.id)
            yield f"{name}: {supported} of {one.sentences} sentences supported"
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


def worst_records(outcomes: Iterable[AnyOutcome], most: int = MOST) -> WorstRecords:
    """Return the records with the least support.

    The smallest share of supported sentences comes first; of equal shares the record with more
    unsupported sentences, then the earlier one. Records without an unsupported sentence and failed
    rows are left out; a repeated record counts once.

    Args:
        outcomes: of any kind; consumed once.
        most: number of records.
    """
    count_of("the number of records", most, 1)
    seen: set[tuple[str, str]] = set()
    kept: list[tuple[Rank, LabelRecord]] = []
    lacking = 0
    for position, outcome in enumerate(outcomes):
        if not isinstance(outcome, LabelRecord) or (outcome.id, outcome.key) in seen:
            continue
        seen.add((outcome.id, outcome.key))
        found = tally(outcome)
        if found.unsupported:
            lacking += 1
            share = len(found.supported) / len(found.response)
            place = Rank(share, -len(found.unsupported), position)
            insort(kept, (place, outcome), key=itemgetter(0))
            del kept[most:]
    described = (_described(record, tally(record)) for _, record in kept)
    return WorstRecords(described, lacking, len(seen))


def _described(record: LabelRecord, found: Tally) -> WorstRecord:
    nearest = _nearest(record)
    reasons = {
        entry.response_sentence_key: record.why(entry)
        for entry in reversed(record.label.sentence_support_information)
        if not entry.fully_supported
    }
    unsupported = (
        Unsupported(key, text, reasons[key], nearest(key, text))
        for key, text in found.texts.items()
        if key in found.unsupported
    )
    return WorstRecord(record, len(found.response), tuple(unsupported))


def _nearest(record: LabelRecord) -> Callable[[str, str], Sentence | None]:
    """Return a function that finds the evidence nearest to a response sentence of a record."""
    sentences = list(record.example.evidence_sentences())
    words_of = [_words(sentence.text) for sentence in sentences]
    counts = Counter(word for words in words_of for word in words)
    weights = {word: log(1 + len(sentences) / count) for word, count in counts.items()}
    contradicting: dict[str, str] = {}
    if isinstance(record.label, ClaimsLabelingOutput):
        for claim in record.label.response_claims:
            for key in claim.contradicting_sentence_keys[:1]:
                contradicting.setdefault(claim.response_sentence_key, key)

    def nearest(key: str, text: str) -> Sentence | None:
        if against := contradicting.get(key):
            return next((one for one in sentences if one.key == against), None)
        wanted = _words(text)
        shared = [
            sum(weights[word] for word in wanted & words) / (1 + len(words)) ** 0.25
            for words in words_of
        ]
        best = max(shared, default=0.0)
        return sentences[shared.index(best)] if best > 0 else None

    return nearest


def _words(text: str) -> set[str]:
    return set(stems(surface_words(text))) - STOP_WORDS
