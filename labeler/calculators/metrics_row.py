"""Metrics of one record, and rows without repetitions."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, Protocol, SupportsIndex, TypeVar, overload

from typing_extensions import TypedDict

from labeler.calculators.ratio import Ratio, RatioJSON
from labeler.calculators.registry import LABEL, METRICS, Metric
from labeler.calculators.tally import RowFacts, outcome_profile, tally
from labeler.catalog import (
    named_keywords,
    place_of,
    positions_of,
    unknown,
)
from labeler.errors import UnknownName
from labeler.labels.answering import AnsweringModel, answered_by
from labeler.labels.answers import Profile
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    given_outcome,
    requested_kind,
)
from labeler.sentences.display import NONE, Column, Display, Displayed, Grid, number, plural


class MetricsRowJSON(TypedDict):
    """One line of ``labeler metrics --rows``: a contract with the programs that read it."""

    id: str
    metrics: dict[str, RatioJSON]
    """By metric id."""
    failed: str | None
    """Reason code of a row without a label."""
    signature: str
    """Metrics with their versions, label signature, the model that answered, program version."""


@dataclass(frozen=True, repr=False)
class MetricsRow(Displayed):
    """All selected metrics of one row; ``row["adherence"]`` is one of them.

    Attributes:
        id: the row's id.
        metrics: the value of each metric, by metric id.
        label: printed signature of the label; ``None`` for a failed row that has none.
        versions: printed names and versions of the metrics.
        failed: the failure's reason code; ``None`` for a labeled row.
        metadata: the row's other columns, for grouping.
        identity: digests by which repeated rows are found; ``None`` for a row that is unlike all.
        question: digest of the question, see :func:`question_digest`.
        answered: the model that answered; ``None`` for a failed row.
        facts: what else a numbers file has; ``None`` unless asked for.
    """

    id: str
    metrics: dict[str, Ratio]
    label: str | None
    versions: str
    failed: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)
    identity: Identity | None = field(default=None, repr=False)
    question: int = field(default=0, repr=False)
    answered: AnsweringModel | None = field(default=None, repr=False)
    facts: RowFacts | None = field(default=None, repr=False)

    @property
    def configuration(self) -> str | None:
        """Printed signature of the label, with the model that answered."""
        name = self.answered.name if self.answered else ""
        return self.label and answered_by(self.label, name)

    def __getitem__(self, name: str) -> Ratio:
        """Return one metric by an id of it.

        Raises:
            UnknownName: the row was not measured with it; the message has near spellings.
        """
        if name not in self.metrics:
            same = (one for one in self.metrics if one in METRICS)
            found = next((one for one in same if name in METRICS[one].spellings), None)
            if found is None:
                raise UnknownName(unknown("metric", name, list(self.metrics)))
            name = found
        return self.metrics[name]

    def _display(self) -> Display:
        columns = (Column("metric", words=True), Column("value"), Column("undefined", words=True))
        cells = [
            [name, number(ratio.value), ratio.undefined or ""]
            for name, ratio in self.metrics.items()
        ]
        state = f"failed: {self.failed}" if self.failed else "metrics"
        return Display(f"{self.id!r}: {state}", Grid(columns, cells), [self.label or "no label"])

    def as_json(self, version: str) -> MetricsRowJSON:
        """Return the published form.

        Args:
            version: the program's version, part of every signature.
        """
        return {
            "id": self.id,
            "metrics": {name: ratio.as_json() for name, ratio in self.metrics.items()},
            "failed": self.failed,
            "signature": f"{self.versions}|{self.configuration or 'label:none'}|labeler:{version}",
        }


class MetricsTable(Displayed, list[MetricsRow]):
    """The metrics of several rows: a list, and ``table["ID"]`` is the row of an id."""

    number_ids: Collection[str] = ()
    """The ids that came as whole numbers."""

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> MetricsRow: ...
    @overload
    def __getitem__(self, key: slice) -> list[MetricsRow]: ...
    def __getitem__(self, key: SupportsIndex | str | slice) -> MetricsRow | list[MetricsRow]:
        """Return a row by its position or id, or several.

        Raises:
            UnknownName: no row has the id; the message has near ones.
            UsageError: several rows have it, or a position is the id of another row.
        """
        positions = partial(positions_of, (row.id for row in self))
        place = place_of("row", key, self, positions, lambda: self.number_ids)
        found: MetricsRow | list[MetricsRow] = super().__getitem__(place)
        return found

    def _display(self) -> Display:
        ids = list(dict.fromkeys(name for row in self for name in row.metrics))
        columns = [Column("id", words=True)]
        columns += [Column(name, drop=len(ids) - place) for place, name in enumerate(ids)]
        made = [*filter(None, dict.fromkeys(row.label for row in self))]
        places = {label: str(place) for place, label in enumerate(made, start=1)}
        cells = [
            [
                row.id,
                *(number(row.metrics[n].value) if n in row.metrics else NONE for n in ids),
                places.get(row.label or "", NONE),
            ]
            for row in self
        ]
        failed = sum(row.failed is not None for row in self)
        title = f"metrics of {plural(len(self), 'row')}, {failed:,} failed"
        grid = Grid([*columns, Column("labels")], cells)
        if len(places) < 2:  # noqa: PLR2004 - one judge configuration needs no number
            return Display(title, grid.without("labels"))
        return Display(title, grid, [f"{place}: {label}" for label, place in places.items()])


@named_keywords
def measure(outcome: AnyOutcome, metrics: Sequence[Metric] | None = None) -> MetricsRow:
    """Compute metrics of one row; every metric of a failed row is undefined.

    Args:
        outcome: a record or a failure.
        metrics: as for :class:`Measurer`.

    Raises:
        UsageError: a third party's metric failed.
    """
    given_outcome("outcome", outcome)
    return Measurer(metrics).row(outcome, kind=requested_kind(outcome) or LABEL)


class Measurer:
    """Metrics that are chosen once and computed for many rows.

    Args:
        metrics: by default every metric of the row's kind, aliases included, in its default
            definition, if labels of the row's profile have its fields.
        facts: True for rows with :class:`~labeler.calculators.tally.RowFacts`.
        aliases: False to leave out default metrics that equal another.
    """

    def __init__(
        self, metrics: Sequence[Metric] | None = None, *, facts: bool = False, aliases: bool = True
    ) -> None:
        self._asked, self._facts, self._aliases = metrics, facts, aliases
        self._known: dict[str, _Chosen] = {}
        """The metrics of each kind and, of labels, of each profile."""

    def measured(self, kind: str) -> Sequence[Metric]:
        """Return the metrics that are computed of a kind of records; of labels, of any profile."""
        return self._chosen(kind).metrics

    def row(self, outcome: AnyOutcome, position: int = 0, kind: str = LABEL) -> MetricsRow:
        """Compute the metrics of one row; every metric of a failed row is undefined.

        Args:
            outcome: a record of the kind, or a failure.
            position: its place among all rows.
            kind: the kind that was asked for.

        Raises:
            UsageError: a third party's metric failed.
        """
        record: Any = outcome
        is_label = kind == LABEL
        of_profile = is_label and self._asked is None
        chosen = self._chosen(kind, outcome_profile(record) if of_profile else None)
        if isinstance(outcome, LabelFailure):
            # A failure of another kind may lack a part of the signature, such as an embedder.
            label = str(outcome.signature) if is_label and outcome.signature else None
            facts = RowFacts.of(position, outcome, kind) if self._facts else None
            return failed_row(outcome, chosen.metrics, label, facts)
        counted, label = tally(record) if is_label else record, outcome.printed
        example, id_ = record.example, outcome.id
        sets = counted if is_label else None
        facts = RowFacts.of(position, outcome, kind, sets) if self._facts else None
        return MetricsRow(
            id_,
            {metric.id: metric.ratio(counted, id_) for metric in chosen.metrics},
            label,
            chosen.versions,
            metadata=example.metadata,
            identity=Identity.of(id_, label, outcome.key),
            question=question_digest(example.question),
            answered=AnsweringModel.of(outcome.signature, outcome.reply),
            facts=facts,
        )

    def _chosen(self, kind: str, profile: Profile | None = None) -> _Chosen:
        """Return the metrics of a kind; for labels, of a profile."""
        key = profile.name if profile else kind
        if key not in self._known:  # once, not for each row
            own = self._default(kind) if self._asked is None else self._asked
            metrics = tuple(
                metric
                for metric in own
                if metric.kind == kind
                and (profile is None or issubclass(profile.output, metric.profile.output))
            )
            self._known[key] = _Chosen(metrics, printed_versions(metrics))
        return self._known[key]

    def _default(self, kind: str) -> Iterable[Metric]:
        every = METRICS.values() if kind == LABEL else METRICS.every()
        return (one for one in every if one.default and (self._aliases or one.same_as is None))


class _Chosen(NamedTuple):
    """Metrics, and their printed versions."""

    metrics: tuple[Metric, ...]
    versions: str


def failed_row(
    failure: LabelFailure,
    metrics: Sequence[Metric],
    label: str | None,
    facts: RowFacts | None = None,
) -> MetricsRow:
    """Return the row of a failure: every metric is undefined, as in ``failed:refusal``.

    ``label`` is the printed signature of the records that the failure counts with.
    """
    return MetricsRow(
        failure.id,
        _all_missing(tuple(metrics), failure.reason),
        label,
        printed_versions(metrics),
        failed=failure.reason,
        metadata=failure.metadata,
        identity=Identity.of(failure.id, label, None),
        facts=facts,
    )


@lru_cache(maxsize=256)
def _all_missing(metrics: tuple[Metric, ...], reason: str) -> dict[str, Ratio]:
    """Return the values of a failed row; rows share them, as all rows of a run may fail."""
    return dict.fromkeys((metric.id for metric in metrics), Ratio.missing(f"failed:{reason}"))


def printed_versions(metrics: Sequence[Metric]) -> str:
    """Return the metrics part of a signature."""
    return "metrics:" + ",".join(f"{metric.id}.v{metric.version}" for metric in metrics)


class Identity(NamedTuple):
    """Digests of 64 bits of what makes two records the same.

    Attributes:
        row: of the row's id and the printed signature; never 0, and the same in this process only.
        key: of the label key; 0 for a failure.
    """

    row: int
    key: int

    @classmethod
    def of(cls, id_: str, label: str | None, key: str | None) -> Identity:
        """Return the identity of a record, or of a failure, which has no key."""
        return cls(row_digest(id_, label), 0 if key is None else text_digest(key))

    @property
    def entry(self) -> tuple[int, int]:
        """A label in a :class:`DigestMap` of labels, whose values are the digests of rows."""
        return self.row ^ self.key, self.row


def row_digest(id_: str, label: str | None) -> int:
    """Return the digest, in this process, of a row's id and the signature or key of its label."""
    return hash((id_, label)) & _WORD or 1


def question_digest(question: str | None) -> int:
    """Return the digest of a question; 0 for none and for a blank one."""
    return text_digest(question) if question and not question.isspace() else 0


_WORD = (1 << 64) - 1


def text_digest(text: str) -> int:
    """Return 64 bits that stand for a text, in every process; never 0."""
    found = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "little") or 1


# Rows without repetitions.

REPEATED = "repeated records (same id and label key), each counted once: {}"
"""The notice of repeated records."""


class DigestMap:
    """A map from digests of 64 bits to others, in 21 to 26 bytes each, by open addressing.

    No value is 0.
    """

    def __init__(self) -> None:
        self._digests, self._values = array("Q"), array("Q")
        """Digests and their values in order of addition."""
        self._places = array("I", bytes(4 * 64))
        """The number of the digest at each place, from 1; 0 for none."""

    def __len__(self) -> int:
        return len(self._digests)

    def add(self, digest: int, value: int) -> int:
        """Map a digest to a value unless it is mapped; return the value before, 0 for none."""
        place = self._place(digest)
        if number := self._places[place]:
            return self._values[number - 1]
        self._digests.append(digest)
        self._values.append(value)
        self._places[place] = len(self)
        if 5 * len(self) >= 4 * len(self._places):
            self._grow()
        return 0

    def index(self, digest: int) -> int:
        """Return how many digests were added before one; slow."""
        return self._digests.index(digest)

    def present(self, values: Collection[int]) -> set[int]:
        """Return which of some values a digest is mapped to."""
        return set(values).intersection(self._values) if values else set()

    def _place(self, digest: int) -> int:
        """Return the place of a digest, or the empty one where it belongs."""
        digests, places = self._digests, self._places
        mask = len(places) - 1
        place, step = digest & mask, digest >> 32 | 1
        while (number := places[place]) and digests[number - 1] != digest:
            place = (place + step) & mask
        return place

    def _grow(self) -> None:
        """Double the places, and find the place of each digest again."""
        size, self._places = 2 * len(self._places), array("I")  # the old ones are freed first
        self._places = array("I", [0]) * size
        for count, digest in enumerate(self._digests, start=1):
            self._places[self._place(digest)] = count


class _Countable(Protocol):
    """A label or a failure that enters numbers; see :class:`MetricsRow`."""

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def failed(self) -> str | None: ...
    @property
    def identity(self) -> Identity | None: ...


R = TypeVar("R", bound=_Countable)


class DistinctRows(Generic[R]):
    """Rows without repetitions: each label once, each failure once and without a label.

    A failure without a signature is left out if every judge configuration has its row. Labels keep
    their order; failures come after them, because a row may be labeled later.

    Args:
        rows: the rows; consumed once.
    """

    def __init__(self, rows: Iterable[R]) -> None:
        self._rows = rows
        self.copies = Counter[Identity]()
        """Labels that were left out so far."""

    @property
    def repeated(self) -> int:
        """Number of labels that were left out so far."""
        return self.copies.total()

    def __iter__(self) -> Iterator[R]:
        """Yield the rows."""
        known, failures = DigestMap(), dict[int, R]()
        labels = set[str | None]()
        for row in self._rows:
            labels.add(row.label)
            if row.failed and row.identity:
                failures.setdefault(row.identity.row, row)
            elif row.identity is None or not known.add(*row.identity.entry):
                if row.identity and (facts := getattr(row, "facts", None)) and facts.copies:
                    self.copies[row.identity] += facts.copies
                yield row
            else:
                self.copies[row.identity] += 1
        labels.discard(None)
        labeled = known.present(failures.keys())
        for own, row in failures.items():
            signed = {row_digest(row.id, label) for label in labels if row.label is None}
            elsewhere = known.present(signed) | (signed & failures.keys())
            if own not in labeled and (not signed or elsewhere < signed):
                yield row


class DistinctOutcome(NamedTuple):
    """An outcome and the facts by which copies are recognized; see :class:`DistinctRows`."""

    id: str
    label: str | None
    failed: str | None
    identity: Identity
    outcome: Outcome

    @classmethod
    def of(cls, outcome: Outcome) -> DistinctOutcome:
        """Return a label, or a failure of one."""
        label = str(outcome.signature) if outcome.signature else None
        failed = None if isinstance(outcome, LabelRecord) else outcome.reason
        key = outcome.key if failed is None else None
        return cls(outcome.id, label, failed, Identity.of(outcome.id, label, key), outcome)
