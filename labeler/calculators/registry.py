"""The ``Metric`` class, the decorator that registers metrics, and the registries of both kinds.

Most metrics measure records one by one; some measure all records of a kind together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, get_args

from pydantic import BaseModel
from typing_extensions import TypedDict, Unpack

from labeler.calculators.ratio import Ratio
from labeler.catalog import Catalog, check_options, keywords_of, named_keywords
from labeler.errors import UnknownName, UsageError
from labeler.labels.answers import PROFILES, GPTLabelingOutput, Profile
from labeler.labels.record import AnyOutcome
from labeler.sentences.display import percent, plural
from labeler.sentences.words import read_table

if TYPE_CHECKING:
    from labeler.calculators.metrics_row import MetricsRow

Compute = Callable[[Any], Ratio]
C = TypeVar("C", bound=Compute)

LABEL = "label"
"""The kind of record that most metrics are of."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named, versioned function from a tally, or a record of another kind, to a ratio.

    Attributes:
        name: the field's standard name.
        definition: the published definition that it follows, such as ``ragbench``.
        needs: the label fields that it reads; ``response_claims.verdict`` is a field of each claim.
        kind: the kind of record that it measures. Of labels it takes the tally, of other kinds the
            record itself.
        source: the papers, packages or guides that define it.
        formula: the definition in one line.
        compute: the function itself.
        default: True if ``name`` alone means this definition.
        version: increased when the value changes for any label.
        higher_is_better: the direction of improvement.
        bounded: True if every value lies from 0 to 1, as a share does. Only then is a sample of
            ones treated as a share of 1.
        scale: the lowest and the highest value of a metric that is not ``bounded``; ``None`` where
            unknown. Intervals are of the values as shares of the scale.
        conventions: the value that it prescribes where the default definition is undefined, for
            labels that keep the contract, as pairs of reason and value.
        same_as: id of the metric that this one equals on every label, or ``1-ID`` if the two add
            up to 1; ``None`` for a quantity of its own. Default output has one row per quantity,
            and tests of several metrics count quantities.
    """

    name: str
    definition: str
    needs: tuple[str, ...]
    source: str
    formula: str
    compute: Compute
    default: bool = False
    kind: str = LABEL
    version: int = 1
    higher_is_better: bool = True
    bounded: bool = True
    scale: tuple[float, float] | None = None
    conventions: tuple[tuple[str, float], ...] = ()
    same_as: str | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.definition))

    @property
    def range(self) -> tuple[float, float] | None:
        """The lowest and the highest value; ``None`` where unknown."""
        return (0.0, 1.0) if self.bounded else self.scale

    def ratio(self, counted: Any, row: str) -> Ratio:  # noqa: ANN401 - by the kind of record
        """Compute the metric, which a third party may have written.

        Args:
            counted: the tally of a label, or a record of the metric's kind.
            row: id of the record, for errors.

        Raises:
            UsageError: the function fails, or returns something else than a ratio.
        """
        try:
            found: object = self.compute(counted)
        except Exception as error:
            raise UsageError(
                f"metric {self.id!r} failed on record {row!r}: {type(error).__name__}: {error}; "
                "Ratio.of(numerator, denominator, if_empty=…) and Ratio.missing(reason) say when "
                "there is no value"
            ) from error
        if not isinstance(found, Ratio):
            raise UsageError(
                f"metric {self.id!r} gave {type(found).__name__} for record {row!r}; it must "
                "return a Ratio, such as Ratio.of(numerator, denominator, if_empty=…)"
            )
        return found

    def remedies(self, reasons: Iterable[str]) -> Iterator[str]:
        """Yield how labels get what reasons such as ``needs_reference`` say that they lack."""
        if {"needs_claims", "needs_reference"}.intersection(reasons):
            yield f"labels of profile {self.profile.name} have what it needs"

    @cached_property
    def id(self) -> str:
        """``name`` for the default definition, else ``name:definition``."""
        return self.name if self.default else f"{self.name}:{self.definition}"

    @property
    def names(self) -> frozenset[str]:
        """The ids by which it can be selected; the default definition may be named too."""
        return frozenset((self.id, f"{self.name}:{self.definition}"))

    @property
    def spellings(self) -> frozenset[str]:
        """All ids that mean this quantity, without its complements."""
        return self.names.union(one for one in self.aliases if not one.startswith("1-"))

    @property
    def quantity(self) -> str:
        """Id of the metric that stands for all equal and complementary ones."""
        return (self.same_as or self.id).removeprefix("1-")

    @property
    def aliases(self) -> tuple[str, ...]:
        """Ids of the other registered metrics of its quantity; ``1-ID`` for its complements."""
        return _aliases(self, tuple(METRICS))

    @property
    def is_complement(self) -> bool:
        """True if it and its quantity add up to 1."""
        return self.quantity not in (self.id, self.same_as)

    @property
    def signature(self) -> str:
        """Name, definition and version, as printed in the signature of a number."""
        return f"metric:{self.name}.v{self.version}|dialect:{self.definition}"

    @cached_property
    def profile(self) -> Profile:
        """The leanest profile whose labels have all fields that it needs."""
        profiles = list(PROFILES.values())
        known = frozenset[str]().union(*(_fields(profile.output) for profile in profiles))
        needed = known.intersection(self.needs)
        return next(profile for profile in profiles if needed <= _fields(profile.output))


@lru_cache
def _fields(output: type[GPTLabelingOutput]) -> frozenset[str]:
    """Names of a label's fields and of their inner fields: ``response_claims.verdict``."""
    names = set(output.model_fields)
    for name, field in output.model_fields.items():
        for part in get_args(field.annotation):
            if isinstance(part, type) and issubclass(part, BaseModel):
                names.update(f"{name}.{inner}" for inner in part.model_fields)
    return frozenset(names)


@lru_cache
def _aliases(metric: Metric, _registered: tuple[str, ...]) -> tuple[str, ...]:
    """Return the other ids of a metric's quantity, while no metric is registered."""
    if metric not in METRICS.values():  # such as a criterion that has the name of a metric
        return ()
    return tuple(
        other.id if other.is_complement == metric.is_complement else f"1-{other.id}"
        for other in METRICS.values()
        if other.quantity == metric.quantity and other.id != metric.id
    )


METRICS: Catalog[Metric] = Catalog(
    "metric", group="metrics", of=Metric, shown_by="labeler metrics --list"
)
ALL = "all"


class MetricOptions(TypedDict, total=False):
    """The attributes of a :class:`Metric` that have defaults."""

    default: bool
    kind: str
    version: int
    higher_is_better: bool
    bounded: bool
    conventions: tuple[tuple[str, float], ...]
    same_as: str | None


@named_keywords
def metric(
    name: str,
    *,
    definition: str,
    needs: tuple[str, ...],
    source: str,
    formula: str,
    **options: Unpack[MetricOptions],
) -> Callable[[C], C]:
    """Register the decorated function as a metric.

    Args:
        name: the field's standard name.
        definition: the published definition that it follows, or a word of your own.
        needs: label fields that it reads, such as ``sentence_support_information``.
        source: paper, package or guide that defines it.
        formula: the definition in one line.
        options: further attributes of :class:`Metric`: ``default=True`` if ``name`` alone means
            this definition; ``kind``, ``version``, ``higher_is_better``, ``bounded``,
            ``conventions``, ``same_as``.

    Returns:
        A decorator. The function takes a :class:`~labeler.calculators.tally.Tally`, or a record of
        another kind, and returns a :class:`Ratio`.

    Raises:
        UsageError: the id is taken.
        UnknownOption: a metric has no such attribute.

    Example:
        >>> @labeler.metric(
        ...     "first_supported", definition="sentence", default=True, source="ours",
        ...     needs=("sentence_support_information",), formula="1 if sentence a is supported",
        ... )
        ... def first_supported(tally):
        ...     return labeler.Ratio(int("a" in tally.supported), 1)
        >>> labeler.metrics(labels, "first_supported")["log-rotation"]["first_supported"].value
        1.0
    """
    check_options("metric", options, (*keywords_of(metric), *MetricOptions.__annotations__))
    facts = {"definition": definition, "needs": needs, "source": source, "formula": formula}

    def register(compute: C) -> C:
        made = Metric(name=name, compute=compute, **facts, **options)  # type: ignore[arg-type]
        METRICS.add(made.id, made)
        return compute

    return register


def alias(name: str, same_as: str, *, definition: str, source: str, default: bool = False) -> None:
    """Register another name of a registered metric: its function, formula and fields are the same.

    Args:
        name: the other name.
        same_as: id of the metric.
        definition: the published definition in which it has the name.
        source: paper, package or guide that defines it.
        default: True if the name alone means this definition.
    """
    known = METRICS[same_as]
    facts = {"name": name, "definition": definition, "source": source, "default": default}
    made = replace(known, same_as=same_as, **facts)  # type: ignore[arg-type]
    METRICS.add(made.id, made)


def select_metrics(
    ids: str | Iterable[str] | None = None, *, kind: str | None = LABEL
) -> tuple[Metric, ...]:
    """Return the metrics with the given ids, in order; by default one per quantity of labels.

    The default metrics are in their default definition; :attr:`Metric.aliases` has their other
    names. :func:`labeler.calculators.measure` decides which of these a label has the fields for.

    Args:
        ids: each ``name``, ``name:definition``, or ``package.module:name`` for a third party's
            metric. ``all`` selects every metric in every definition. One string may hold several
            ids, separated by commas.
        kind: the kind of records that they are of; ``None`` for all kinds.

    Raises:
        UnknownName: an id is not registered; the message names the nearest ones.
        UsageError: there is no id, or a metric of another kind has the id.
    """
    if ids is None:
        every = (one for one in METRICS.values() if one.kind == LABEL)
        return tuple(one for one in every if one.default and one.same_as is None)
    wanted = split_ids(ids)
    if not wanted:
        raise UsageError(
            "no metric is named: give ids such as 'adherence', or none for the default"
        )
    if wanted == [ALL]:
        return tuple(one for one in METRICS.every() if kind in {None, one.kind})
    found = tuple(dict.fromkeys(map(_find, wanted)))
    if other := next((one for one in found if kind not in {None, one.kind}), None):
        raise UsageError(f"metric {other.id!r} is of records of kind {other.kind!r}, not {kind!r}")
    return found


def split_ids(ids: str | Iterable[str]) -> list[str]:
    """Return ids as a list; one string holds them separated by commas."""
    listed = ids.split(",") if isinstance(ids, str) else ids
    names = list(listed) if isinstance(listed, Iterable) else [listed]
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"a metric is named by its id, such as 'adherence', got {name!r:.40}")
    return [name.strip() for name in names]


def _find(name: str) -> Metric:
    found: object = METRICS[_canonical(name)]
    # A third party's name may lead to any object; its decorator has registered the metric.
    for known in METRICS.values():
        if known is found or known.compute is found:
            return known
    raise UnknownName(f"{name!r} is not a metric: decorate the function with @labeler.metric(...)")


def _canonical(name: str) -> str:
    base = name.partition(":")[0]
    return base if base in METRICS and name in METRICS[base].names else name


class Collected(Protocol):
    """Outcomes of one kind, collected to be measured together."""

    def add(self, outcome: AnyOutcome) -> None:
        """Add a record of the kind, a failure of one, or a row that could not be read."""

    def metrics(self, ids: Collection[str] | None = None) -> list[Metric]:
        """Return the metrics that the outcomes added so far have, all or by their ids."""

    def rows(self, metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
        """Yield the rows of the outcomes, with these metrics only."""

    def show(self, metrics: Sequence[Metric], *, intervals: bool) -> None:
        """Print what else the outcomes say below their summaries, such as agreement."""


COLLECTED: Catalog[Callable[[], Collected]] = Catalog(
    "kind of records", group="collected", of=Callable
)
"""What makes the collection of each kind of records that are measured together, such as scores; an
installed package adds to it by an entry point of ``labeler.collected``."""


_NAMES = read_table(__file__, "names")
PLAIN_NAMES: Mapping[str, str] = _NAMES["plain"]
"""Words by metric id; each completes ``52 of 60 …`` or names a column of shares."""
HEADLINES: Mapping[str, Sequence[str]] = _NAMES["headlines"]
"""By profile, the ids of the metrics to show first, in their order."""
OF_WHOLE_ANSWERS = frozenset[str](_NAMES["whole_answers"])
"""Metrics with the value 0 or 1, so that their sums count answers, and a majority decides."""


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
    richest = next((name for name in reversed([*HEADLINES]) if name in profiles), "trace")
    first = [given[name] for name in HEADLINES[richest] if name in given]
    return first or list(given.values())[:6]


class FieldWords(NamedTuple):
    """Plain words for the decisions on a field.

    Attributes:
        subject: one of the things that a decision is about.
        positive: what a yes calls it; empty if the decision is not yes or no.
    """

    subject: str
    positive: str = ""

    @property
    def verdicts(self) -> str:
        """The positive decisions: ``answer sentences supported``."""
        return f"{self.subject}s {self.positive}".rstrip()

    def counted(self, count: int) -> str:
        """Return a number of subjects."""
        return plural(count, self.subject)


FIELD_WORDS: Mapping[str, FieldWords] = {
    "overall_supported": FieldWords("answer", "supported as a whole"),
    "supported": FieldWords("answer sentence", "supported"),
    "relevant": FieldWords("document sentence", "relevant"),
    "utilized": FieldWords("document sentence", "used"),
}
"""Words by field, the most telling field first."""


@dataclass(frozen=True, kw_only=True)
class Flipped:
    """Relevance that differs between labels of equal documents.

    Attributes:
        sentences: document sentences, each counted once for each pair of labels.
        flipped: share of these that only one label of the pair calls relevant; ``None`` without
            sentences.
        lean: over flipped sentences that only one response of the pair uses: the share that is
            relevant by the label of that response, minus the share by the other label, from -1 to
            1. Above 0, the judge calls relevant what the response uses. ``None`` without such
            sentences.
    """

    sentences: int
    flipped: float | None
    lean: float | None

    @staticmethod
    def lean_of(same: int, other: int) -> float | None:
        """Return the lean by counts of flipped sentences that one response of a pair uses."""
        return (same - other) / (same + other) if same + other else None

    @property
    def flips(self) -> str:
        """The share and the lean in words; empty if no sentence is flipped."""
        if not self.flipped:
            return ""
        leans = "" if self.lean is None else f", lean to used sentences {self.lean:+.2f} (-1 to 1)"
        return f"{percent(self.flipped, 1)} of {plural(self.sentences, 'sentence')} flipped{leans}"
