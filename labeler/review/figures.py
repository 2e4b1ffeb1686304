"""What follows from all that was said so far: agreement, and means set right by people.

Worked out by the functions of ``labeler agree`` and ``labeler corrections apply``; but what the
judge alone gives is worked out once, so that one judgement more costs no more than the judged.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean

from labeler.calculators import METRICS, Metric
from labeler.calculators.rater_agreement import UNITS, is_yes_or_no
from labeler.calculators.statistics.corrected import Corrected, plain_mean, ppi_mean
from labeler.comparing.agreement import FieldAgreement, PeopleAgreement, compare_with_people
from labeler.comparing.agreement.estimates import without_empty_interval
from labeler.comparing.agreement.matching import TIE, People, judged, record_fields, together
from labeler.comparing.agreement.people import Among
from labeler.comparing.agreement.sides import labels_by_id
from labeler.comparing.corrected_labels import human_labels
from labeler.comparing.human_labels import OVERALL, HumanLabels
from labeler.data.corrections.applying import corrected
from labeler.data.corrections.correction import Correction, Queue
from labeler.data.corrections.overlay import unled
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import LabelRecord
from labeler.review.collection import Collection, values_of
from labeler.review.saving import Ledger, Standing
from labeler.review.views import (
    AmongView,
    AnnotatorView,
    FieldView,
    FiguresView,
    MeanView,
    MetricFiguresView,
)
from labeler.sentences.characters import visible

RANDOM: Queue = "random"


class Figures:
    """The figures of a desk, worked out anew where the file of corrections has changed.

    Args:
        collection: the labels.
        ledger: what people said of them.
        metrics: whose means are given, besides that of the verdict on the whole.
        drawn: keys of the labels that were drawn at random for this desk, in order.
        hidden: tells the keys of the labels whose verdicts nobody may see yet. As long as there are
            any, no mean is told, which would be made of them too, and nothing of these labels.
    """

    def __init__(
        self,
        collection: Collection,
        ledger: Ledger,
        metrics: Sequence[Metric],
        *,
        drawn: Sequence[str] = (),
        hidden: Callable[[Standing], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self._collection = collection
        self._ledger = ledger
        self._drawn = tuple(drawn)
        self._hidden = hidden
        self._metrics = [metric for metric in metrics if _follows(metric)]
        self._names = [*(metric.id for metric in metrics), OVERALL]
        self._places = {key: place for place, key in enumerate(collection.keys)}
        self._lock = threading.Lock()
        self._version: int | None = None
        self._view: FiguresView | None = None
        self._records: dict[str, LabelRecord] = {}
        self._values: dict[
            tuple[str, str | None], tuple[list[Correction], dict[str, float | None]]
        ] = {}

    def view(self) -> FiguresView:
        """The figures as they are now."""
        standing = self._ledger.standing()
        with self._lock:
            if self._view is None or self._version != standing.version:
                hidden = self._hidden(standing)
                said = [one for one in standing.current.values() if one.key not in hidden]
                alone = [one for one in unled(standing.events) if one.key not in hidden]
                self._view = self._made(said, alone, is_blind=bool(hidden))
                self._version = standing.version
            return self._view

    def _made(
        self, said: Sequence[Correction], alone: Sequence[Correction], *, is_blind: bool
    ) -> FiguresView:
        """The figures.

        Args:
            said: everybody's last word, which corrects the labels.
            alone: what everybody said by themselves, which the judge is compared with.
            is_blind: whether no mean may be told yet.
        """
        by_key, compared = self._by_key(said), self._by_key(alone)
        drawn = {
            key: [one for one in some if one.queue == RANDOM]
            for key, some in compared.items()
            if any(one.queue == RANDOM for one in some)
        }
        against = self._against(compared)
        estimates = {} if is_blind else self._estimates(drawn)
        notes = [_BLIND] if is_blind else _notes(len(by_key), estimates)
        return {
            "judged": len(by_key),
            "drawn": len(drawn),
            "rows": len(self._collection.rows),
            "fields": [] if against is None else _field_views(against.fields),
            "metrics": [] if is_blind else self._metric_views(by_key, estimates),
            "annotators": _annotators([one for one in said if one.key in self._places]),
            "among": [] if against is None else [_among_view(one) for one in against.among],
            "notes": [*self._mixed(), *self._passed_over(drawn), *notes],
        }

    def _by_key(self, said: Sequence[Correction]) -> dict[str, list[Correction]]:
        """The judgements of these labels, by key."""
        by_key: dict[str, list[Correction]] = defaultdict(list)
        for one in said:
            if (
                one.key in self._places
                and one.verdict is not None
                and not one.check_against(self._record(one.key))
            ):
                by_key[one.key].append(one)
        return by_key

    def _mixed(self) -> Iterator[str]:
        """Whether the means are of labels that were made in several ways."""
        if self._collection.ways > 1:
            yield (
                f"these labels were made in {self._collection.ways} ways, and every figure is over "
                "all of them together: review a file of one way for figures of that way"
            )

    def _passed_over(self, judged: Mapping[str, object]) -> Iterator[str]:
        """Whether what was drawn was judged without a choice."""
        last = max((n for n, key in enumerate(self._drawn) if key in judged), default=0)
        left = sum(key not in judged for key in self._drawn[:last])
        if left:
            noun = "record was" if left == 1 else "records were"
            yield (
                f"{left} {noun} drawn before the last judged one and not judged, left for later or "
                "unsure: if those are the hard ones, what is carried over is off"
            )

    def _record(self, key: str) -> LabelRecord:
        """A judged record under its key: rows may share an id."""
        if key not in self._records:
            record = self._collection.record(self._places[key])
            named = record.example.model_copy(update={"id": key})
            self._records[key] = record.model_copy(update={"example": named})
        return self._records[key]

    def _against(self, by_key: Mapping[str, list[Correction]]) -> PeopleAgreement | None:
        human = self._human(by_key)
        records = [self._record(key) for key in by_key]
        return compare_with_people(records, human) if records else None

    def _human(self, by_key: Mapping[str, list[Correction]]) -> HumanLabels:
        said = [one for some in by_key.values() for one in some]
        return human_labels(said, [self._record(key) for key in by_key])

    # Means.

    @cached_property
    def _judge_means(self) -> dict[str, MeanView]:
        """The judge alone; its intervals take most of the time, and no judgement changes them."""
        return {name: _mean_view(plain_mean(_defined(self._of_rows(name)))) for name in self._names}

    def _of_rows(self, name: str) -> list[float | None]:
        values = self._collection.values[name]
        return [values[place] for place in self._collection.rows]

    def _metric_views(
        self, by_key: Mapping[str, list[Correction]], estimates: Mapping[str, Corrected]
    ) -> list[MetricFiguresView]:
        changed = {key: self._corrected(key, some) for key, some in by_key.items()}
        views: list[MetricFiguresView] = []
        for name in self._names:
            estimate = estimates.get(name)
            views.append(
                {
                    "metric": name,
                    "judge": self._judge_means[name],
                    "estimate": None if estimate is None else _mean_view(estimate),
                    "overlaid": self._overlaid(name, changed),
                }
            )
        return views

    def _corrected(
        self, key: str, said: list[Correction], by: str | None = None
    ) -> dict[str, float | None]:
        """The values of a record as people corrected it, or one of them; worked out once."""
        known = self._values.get((key, by))
        if known is None or known[0] != said:
            record = corrected(self._record(key), said)
            known = said, values_of(record, self._metrics)
            self._values[key, by] = known
        return known[1]

    def _overlaid(
        self, name: str, changed: Mapping[str, Mapping[str, float | None]]
    ) -> float | None:
        if name not in self._correctable:
            return None
        values = [*self._collection.values[name]]
        for key, found in changed.items():
            values[self._places[key]] = found[name]
        defined = _defined([values[place] for place in self._collection.rows])
        return fmean(defined) if defined else None

    @cached_property
    def _correctable(self) -> frozenset[str]:
        return frozenset([*(metric.id for metric in self._metrics), OVERALL])

    def _estimates(self, drawn: Mapping[str, list[Correction]]) -> dict[str, Corrected]:
        """PPI++ means by metric, from what was drawn at random; none where nothing was."""
        if not drawn:
            return {}
        human = self._human(drawn)
        fields = record_fields(human)
        records = [self._record(key) for key in drawn]
        side = labels_by_id(
            records, lambda record: judged(record, fields, None, in_full=True), name="labels"
        )
        people = People(human, side)
        found = {}
        for name in self._names:
            if name in self._correctable:
                # As labeler agree has it, where it has it; else by each person's corrected labels.
                said = people.of_records(name) if name in fields else self._of_people(name, drawn)
                found[name] = self._estimate(name, said)
        return found

    def _of_people(
        self, name: str, drawn: Mapping[str, list[Correction]]
    ) -> dict[str, float | None]:
        found = {}
        for key, some in drawn.items():
            own = [self._corrected(key, [one], one.annotator)[name] for one in some]
            if defined := _defined(own):
                found[key] = together(defined, yes_or_no=is_yes_or_no(name))
        return found

    def _estimate(self, name: str, said: Mapping[str, float | None]) -> Corrected:
        by_place = {self._places[key]: value for key, value in said.items()}
        both: list[tuple[float, float]] = []
        alone: list[float] = []
        for place, value in zip(self._collection.rows, self._of_rows(name), strict=True):
            if value is None:
                continue
            if place in by_place:
                mine = by_place[place]
                both.append((TIE if mine is None else mine, value))
            else:
                alone.append(value)
        judge = [value for _, value in both]
        is_share = name == OVERALL or METRICS[name].bounded
        mean = ppi_mean(
            [mine for mine, _ in both],
            judge,
            alone,
            bounds=(0, 1) if is_share and all(0 <= v <= 1 for v in (*judge, *alone)) else None,
            random_sample=True,
        )
        return without_empty_interval(mean)


def _follows(metric: Metric) -> bool:
    """Whether a metric is of what people correct; they correct no claims."""
    return metric.profile.output is GPTLabelingOutput


def _defined(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean_view(mean: Corrected) -> MeanView:
    interval = mean.interval
    return {
        "value": mean.value,
        "interval": None if interval is None else [interval.low, interval.high],
    }


def _field_views(fields: Sequence[FieldAgreement]) -> list[FieldView]:
    return [
        {
            "field": one.field,
            "units": one.units,
            "raw": one.raw,
            "kappa": one.kappa.value,
            "ac1": one.ac1.value,
        }
        for one in fields
        if one.field in UNITS
    ]


def _among_view(one: Among) -> AmongView:
    return {
        "field": one.field,
        "units": one.alpha.units,
        "alpha": one.alpha.value,
        "ac1": one.ac1.value,
    }


def _annotators(said: Sequence[Correction]) -> list[AnnotatorView]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for one in said:
        counted[one.annotator][one.opinion] += 1
    return [
        {
            "annotator": visible(name),
            "agree": counts["agree"],
            "disagree": counts["disagree"],
            "unsure": counts["unsure"],
        }
        for name, counts in sorted(counted.items())
    ]


def _notes(judged_labels: int, estimates: Mapping[str, Corrected]) -> list[str]:
    """What else to know of the numbers, each once, with the metrics that it concerns."""
    if not judged_labels:
        return []
    if not estimates:
        return [_NOT_DRAWN]
    concerned: dict[str, list[str]] = defaultdict(list)
    for name, one in estimates.items():
        for warning in one.warnings:
            concerned[warning].append(name)
    return [f"{', '.join(names)}: {warning}" for warning, names in concerned.items()]


_BLIND = (
    "Means follow when you have judged every record of this desk: they are made of verdicts that "
    "are hidden from you still."
)
_NOT_DRAWN = (
    "What people judged here was not drawn at random, so it cannot set the judge's means right for "
    "the records that nobody judged: open the desk with --queue random for that."
)
