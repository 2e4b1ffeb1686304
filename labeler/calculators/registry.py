"""What a metric is, and the catalog that every list of metrics is read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel

from labeler.calculators.ratio import Ratio
from labeler.calculators.tally import Tally
from labeler.catalog import Catalog
from labeler.errors import UnknownName
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.profiles import PROFILES, Profile

if TYPE_CHECKING:  # numpy takes its time to load
    from labeler.calculators.columns import RatioColumn, TallyColumns

Compute = Callable[[Tally], Ratio]
Vector = Callable[["TallyColumns"], "RatioColumn"]


@dataclass(frozen=True)
class Metric:
    """A named, versioned function from a tally to a ratio.

    Attributes:
        name: the field's standard name.
        definition: which published definition it follows.
        version: counts up when the number changes for any label.
        higher_is_better: the direction of improvement.
        needs: the label fields that it reads; ``response_claims.verdict`` is one of each claim.
        source: the papers, packages or guides that define it.
        formula: the definition in one line.
        compute: the function itself.
        default: whether ``name`` alone means this dialect.
        bounded: whether every value lies from 0 to 1, as a share does. Only then may records that
            all have 1 be taken for a share of 1, and is it known what failed records could do.
        vector: the same function of many tallies at once, or ``None`` where records are measured
            one by one. It must give the same ratios.
    """

    name: str
    definition: str
    version: int
    higher_is_better: bool
    needs: tuple[str, ...]
    source: str
    formula: str
    compute: Compute
    default: bool
    bounded: bool = True
    vector: Vector | None = None

    @property
    def id(self) -> str:
        """``name`` for the default dialect, else ``name:dialect``."""
        return self.name if self.default else f"{self.name}:{self.definition}"

    @property
    def signature(self) -> str:
        """Name, dialect and version, as they stand in a number's signature."""
        return f"metric:{self.name}.v{self.version}|dialect:{self.definition}"

    @cached_property
    def profile(self) -> Profile:
        """The profile that asks for all that it needs, and for no more than it must."""
        profiles = list(PROFILES.values())
        of_labels = frozenset[str]().union(*(_fields(profile.output) for profile in profiles))
        asked = of_labels.intersection(self.needs)
        return next(profile for profile in profiles if asked <= _fields(profile.output))


@lru_cache
def _fields(output: type[GPTLabelingOutput]) -> frozenset[str]:
    """Names of a label's fields, and of those of its parts: ``response_claims.verdict``."""
    names = set(output.model_fields)
    for name, field in output.model_fields.items():
        for part in get_args(field.annotation):
            if isinstance(part, type) and issubclass(part, BaseModel):
                names.update(f"{name}.{inner}" for inner in part.model_fields)
    return frozenset(names)


METRICS: Catalog[Metric] = Catalog("metric")
ALL = "all"


def metric(
    name: str,
    *,
    definition: str,
    default: bool = False,
    version: int = 1,
    higher_is_better: bool = True,
    needs: tuple[str, ...],
    source: str,
    formula: str,
    bounded: bool = True,
    vector: Vector | None = None,
) -> Callable[[Compute], Compute]:
    """Register the decorated function as a metric; see :class:`Metric` for what is given."""

    def register(compute: Compute) -> Compute:
        made = Metric(
            name=name,
            definition=definition,
            version=version,
            higher_is_better=higher_is_better,
            needs=needs,
            source=source,
            formula=formula,
            compute=compute,
            default=default,
            bounded=bounded,
            vector=vector,
        )
        METRICS.add(made.id, made)
        return compute

    return register


def select_metrics(ids: str | Iterable[str] | None = None) -> tuple[Metric, ...]:
    """The metrics of the given ids, in order; each once, in its default dialect, where none are.

    Which of these a label has the fields for is told by :func:`labeler.calculators.measure`.

    An id is ``name``, ``name:dialect``, or ``package.module:name`` for a third party's metric.
    The default dialect may be named too: ``relevance:set`` is ``relevance``. ``all`` stands for
    every metric in every dialect. One text may hold several ids, parted by commas.

    Raises:
        UnknownName: an id is in no catalog; the message names the nearest ones.
    """
    if ids is None:
        return tuple(metric for metric in METRICS.values() if metric.default)
    wanted = [name.strip() for name in (ids.split(",") if isinstance(ids, str) else ids)]
    if wanted == [ALL]:
        return tuple(METRICS.values())
    return tuple(dict.fromkeys(_find(name) for name in wanted))


def _find(name: str) -> Metric:
    found: object = METRICS[_canonical(name)]
    # A third party's name may lead to anything; its decorator has put the metric in the catalog.
    for known in METRICS.values():
        if known is found or known.compute is found:
            return known
    raise UnknownName(f"{name!r} is no metric: decorate the function with @labeler.metric(...)")


def _canonical(name: str) -> str:
    base, _, definition = name.partition(":")
    if base in METRICS and METRICS[base].definition == definition:
        return base
    return name
