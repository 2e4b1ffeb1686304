"""Stated probabilities against people: how often they are right, and which thresholds fit.

A judge that states .9 should be right nine times in ten. A reliability table shows whether it is;
its expected calibration error is the mean distance of stated and observed shares. Thresholds are
chosen on the same verdicts, so their accuracy on other records is a little lower.

Source: C. Guo et al., On Calibration of Modern Neural Networks, ICML 2017 (table and error).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from labeler.calculators.agreement import Floats, drawn_intervals
from labeler.calculators.intervals import Interval, question_groups
from labeler.calculators.summary import observations
from labeler.calculators.summary_text import small_sample_note
from labeler.comparing.human_labels import HumanLabels
from labeler.comparing.human_matching import Judged, Matched, People
from labeler.comparing.sides import Choice, Side, mixed_labels, read_side
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.labels.thresholds import VERDICTS, probabilities
from labeler.sentences.display import (
    NONE,
    Brief,
    Column,
    Display,
    Displayed,
    Grid,
    Section,
    figure,
    number,
    plural,
)

FIELDS: Mapping[str, str] = dict(zip(VERDICTS, ("supported", "relevant", "utilized"), strict=True))
"""Fields of people and of rater agreement by kind of verdict."""
BINS = 10
FEWEST = 100
"""Verdicts below which a warning says that the numbers mean little."""
PRECISION = 0.9
_MOST_THRESHOLDS = 200
"""Thresholds that are tried; more distinct probabilities are thinned evenly."""
_ROUNDING = 1e-12
_UNSEEN = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
"""Probability and verdict of the verdicts that may not have been seen."""


class Bin(NamedTuple):
    """Verdicts with similar stated probabilities.

    Attributes:
        low: least probability.
        high: first probability above; the last bin includes 1.
        verdicts: number of verdicts.
        stated: mean stated probability; ``None`` without verdicts.
        observed: share to which people said yes; ``None`` without verdicts.
    """

    low: float
    high: float
    verdicts: int
    stated: float | None
    observed: float | None


@dataclass(frozen=True)
class Threshold:
    """A threshold and its results on the verdicts that it was chosen on.

    Attributes:
        value: least probability of a positive verdict; ``None`` if undefined.
        interval: of the threshold, over records; ``None`` if undefined.
        sensitivity: share of people's yeses that are positive.
        specificity: share of people's noes that are negative.
        precision: share of positive verdicts to which people said yes.
        undefined: ``one_class`` if people always said the same, ``not_reached`` if no threshold
            has the precision.
        balanced_accuracy: the mean of sensitivity and specificity.
    """

    value: float | None = None
    interval: Interval | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    precision: float | None = None
    undefined: str | None = None
    balanced_accuracy: float | None = None


@dataclass(frozen=True, repr=False)
class Reliability(Brief):
    """Stated probabilities of one kind of verdict against people.

    Attributes:
        kind: ``support``, ``relevance`` or ``utilization``.
        verdicts: verdicts on sentences that people judged, without ties.
        records: records that these are of.
        questions: questions that intervals are grouped by; ``None`` where all records differ.
        bins: the reliability table.
        calibration_error: expected calibration error: mean distance of stated and observed shares
            over bins, weighted by verdicts.
        interval: of the error; ``None`` for a single record.
        best_balanced_accuracy: the threshold with the best one; of equal ones that nearest .5.
        with_precision: the lowest threshold with the precision that was asked for.
    """

    kind: str
    verdicts: int
    records: int
    questions: int | None
    bins: tuple[Bin, ...]
    calibration_error: float
    interval: Interval | None
    best_balanced_accuracy: Threshold
    with_precision: Threshold


@dataclass(frozen=True, repr=False)
class Calibration(Displayed):
    """Stated probabilities of a judge against people.

    Attributes:
        signatures: signatures of the judge's labels.
        matched: numbers of human labels that were used or left out, and why.
        precision: the precision that was asked for.
        kinds: the kinds of verdicts that people judged.
        warnings: limits of the numbers, in plain English.
    """

    signatures: tuple[str, ...]
    matched: Matched
    precision: float
    kinds: tuple[Reliability, ...]
    warnings: tuple[str, ...]

    def _display(self) -> Display:
        return Display("\n".join(self.conclusions), notes=self.notes)

    @property
    def notes(self) -> list[str]:
        """Lines on thresholds that are undefined, human labels that are left out, and limits."""
        lines = []
        for one in self.kinds:
            if one.best_balanced_accuracy.undefined:
                lines.append(f"{one.kind}: people always said the same, so no threshold is best")
            if one.with_precision.undefined == "not_reached":
                lines.append(f"{one.kind}: no threshold has a precision of {self.precision:g}")
        warnings = (f"note: {warning}" for warning in self.warnings)
        return [*lines, *self.matched.lines(), *warnings]

    def in_full(self) -> Iterator[Section]:
        """Yield the reliability table of each kind of verdict, and thresholds with results."""
        columns = [Column(head) for head in ("stated", "verdicts", "mean stated", "people: yes")]
        for one in self.kinds:
            cells = [
                [
                    f"{each.low:g} to {each.high:g}",
                    f"{each.verdicts:,}",
                    number(each.stated),
                    number(each.observed),
                ]
                for each in one.bins
                if each.verdicts
            ]
            yield Section(one.kind, [Grid(columns, cells)])
        lines = [
            *(
                f"{one.kind}: 95 % intervals {question_groups(one.questions)}"
                for one in self.kinds
                if one.questions is not None
            ),
            *small_sample_note(one.interval for one in self.kinds),
            *self.notes,
            *(f"A: {signature}" for signature in self.signatures),
        ]
        yield Section(None, [self.table], lines)

    @property
    def conclusions(self) -> list[str]:
        """One sentence for each kind of verdict."""
        lines = []
        for one in self.kinds:
            error, best = figure(one.calibration_error), one.best_balanced_accuracy
            line = f"{one.kind}: stated probabilities are off by {error}{_range(one.interval)}"
            line += " on average"
            if one.verdicts < FEWEST:
                line += "; too few verdicts to choose a threshold"
            elif best.value is not None:
                option = f"--threshold {one.kind}={best.value}{_range(best.interval)}"
                line += f"; {option} agrees best with people"
            lines.append(line)
        return lines

    @property
    def table(self) -> Grid:
        """Error and thresholds by kind of verdict."""
        heads = ("verdicts", "error", "95 %\ninterval", "best\nthreshold", "95 %\ninterval ",
                 "balanced\naccuracy", f"precision\n{self.precision:g} from",
                 "95 %\ninterval  ", "yes\nfound")  # fmt: skip
        columns = [Column("kind", words=True), *map(Column, heads)]
        rows = [
            [
                one.kind,
                f"{one.verdicts:,}",
                number(one.calibration_error),
                _ends(one.interval),
                _text(one.best_balanced_accuracy.value),
                _ends(one.best_balanced_accuracy.interval),
                number(one.best_balanced_accuracy.balanced_accuracy),
                _text(one.with_precision.value),
                _ends(one.with_precision.interval),
                number(one.with_precision.sensitivity),
            ]
            for one in self.kinds
        ]
        return Grid(columns, rows)

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "judge": list(self.signatures),
            "human_labels": asdict(self.matched),
            "precision": self.precision,
            "kinds": [
                asdict(one) | {"bins": [each._asdict() for each in one.bins]} for one in self.kinds
            ],
            "warnings": list(self.warnings),
        }


def _text(value: float | None) -> str:
    # All digits: a rounded threshold divides otherwise.
    return NONE if value is None else str(value)


def _range(found: Interval | None) -> str:
    """Return an interval in parentheses, unless it has no width, which no sample can know."""
    if found is None or found.low == found.high:
        return ""
    return f" ({figure(found.low)} to {figure(found.high)})"


def _ends(interval: Interval | None) -> str:
    return NONE if interval is None else f"{interval.low:.3f} {interval.high:.3f}{interval.mark}"


def calibrate(
    outcomes: Iterable[AnyOutcome],
    human: HumanLabels,
    *,
    precision: float = PRECISION,
    choice: Choice | None = None,
    human_name: str = "human labels",
) -> Calibration:
    r"""Compare stored probabilities with human labels of sentences.

    Args:
        outcomes: labels of a judge that states probabilities.
        human: the human labels; a majority decides among several people.
        precision: the precision of a second threshold, above 0 and at most 1.
        choice: the labels that are meant; by default all.
        human_name: name of the human labels in errors.

    Raises:
        UsageError: the precision is out of range, people judged no sentence, or a judged label has
            no probabilities.

    Example:
        >>> _ = (folder / "people.csv").write_text("id,sentence,supported\nlog-rotation,a,yes\n")
        >>> from labeler.comparing.calibration import calibrate
        >>> people = labeler.comparing.read_human_labels(folder / "people.csv")
        >>> calibrate(labels, people).kinds[0].verdicts
        1
    """
    if not 0 < precision <= 1:
        raise UsageError(f"precision {precision:g}: it is a share above 0 and at most 1, as 0.9")
    fields = {one.id: set[str]() for one in human.labels}
    for one in human.labels:
        fields[one.id].add(one.field)

    def keep(record: LabelRecord) -> Judged:
        judged, wanted = fields.get(record.id, set()), FIELDS.items()
        kept = Judged.of(record, (), in_full=bool(judged))
        stated = {field: probabilities(record, kind) for kind, field in wanted if field in judged}
        return replace(kept, stated=stated, counted=None)  # no metric is derived

    of_sentences = [one for one in human.labels if one.sentence is not None]
    if not of_sentences:
        raise UsageError(
            f"{human_name} judges no sentence: give {', '.join(FIELDS.values())} of sentences, "
            "such as labeler review makes them"
        )
    side = read_side(outcomes, keep, choice)
    people = People(human._replace(labels=tuple(of_sentences)), side, human_name)
    kinds = tuple(_reliabilities(people, side, precision))
    return Calibration(
        side.signatures, people.matched, precision, kinds, tuple(_warnings(people, side, kinds))
    )


def _reliabilities(people: People, side: Side[Judged], precision: float) -> Iterator[Reliability]:
    for kind, field in FIELDS.items():
        records = {}
        for (name, judged), verdicts in people.verdicts.items():
            if judged == field:
                stated = side.value(name).stated[field]
                pairs = [(stated[k], v) for k, v in verdicts.items() if k and v is not None]
                if pairs:
                    records[name] = pairs
        if records:
            questions = [side.labels[name].question for name in records]
            yield _reliability(kind, list(records.values()), questions, precision)


def _reliability(
    kind: str,
    records: Sequence[Sequence[tuple[float, float]]],
    questions: Sequence[int | None],
    precision: float,
) -> Reliability:
    shared, groups = observations(questions)
    tried = _thresholds([stated for record in records for stated, _ in record])
    sums = _Sums(np.array(tried), precision)
    each = [sums.of(record) for record in records]
    unseen = [sums.of([one]) for one in _UNSEEN]
    drawn = drawn_intervals(each, sums.statistics, unseen, groups=groups)
    whole = np.sum(each, axis=0)[np.newaxis]
    found = {name: float(values[0]) for name, values in sums.statistics(whole).items()}
    return Reliability(
        kind=kind,
        verdicts=int(whole[0, 0]),
        records=len(records),
        questions=shared,
        bins=tuple(_bins(whole[0])),
        calibration_error=found["error"],
        interval=drawn.get("error"),
        best_balanced_accuracy=sums.threshold(whole, "balanced", found, drawn),
        with_precision=sums.threshold(whole, "precise", found, drawn),
    )


def _thresholds(stated: Sequence[float]) -> list[float]:
    """Return a short number for each way to divide probabilities, ascending."""
    values = sorted(set(stated))
    count = min(len(values), _MOST_THRESHOLDS)
    places = [round(place * (len(values) - 1) / max(count - 1, 1)) for place in range(count)]
    return [_short(values[one - 1] if one else -1.0, values[one]) for one in places]


def _short(low: float, high: float) -> float:
    """Return the shortest decimal above one number and at most another, near their middle."""
    if low < 0:
        return 0.0
    for digits in range(1, 17):
        rounded = round((low + high) / 2, digits)
        if low < rounded <= high:
            return rounded
    return high


class _Sums:
    """Sums over verdicts from which error and thresholds follow.

    Args:
        tried: the thresholds, ascending.
        precision: of the second threshold.
    """

    def __init__(self, tried: Floats, precision: float) -> None:
        self._tried, self._precision = tried, precision
        self._nearest = np.argsort(np.abs(tried - 0.5), kind="stable")

    def of(self, verdicts: Sequence[tuple[float, float]]) -> list[float]:
        """Return a record's sums: verdicts, yeses, the bins, positives and right positives."""
        stated, said = np.array(verdicts, dtype=np.float64).T
        bins = np.zeros((BINS, 3))
        rows = np.stack([np.ones_like(stated), stated, said], axis=1)
        np.add.at(bins, np.minimum((stated * BINS).astype(int), BINS - 1), rows)
        positive = (stated >= self._tried[:, np.newaxis]).astype(np.float64)
        parts = ([len(said), said.sum()], bins.ravel(), positive.sum(axis=1), positive @ said)
        return [float(value) for part in parts for value in part]

    def statistics(self, sums: Floats) -> dict[str, Floats]:
        """Return calibration error and thresholds, one for each row of sums."""
        bins = sums[:, 2 : 2 + 3 * BINS].reshape(-1, BINS, 3)
        yes, no, positive, right = self._counts(sums)
        # Balanced accuracy, times a constant: whole numbers, so equal ones are equal.
        accuracy = (right * no - (positive - right) * yes)[:, self._nearest]
        reaches = right >= (self._precision - _ROUNDING) * np.maximum(positive, _ROUNDING)
        best = self._tried[self._nearest][np.argmax(accuracy, axis=1)]
        lowest = self._tried[np.argmax(reaches, axis=1)]
        return {
            "error": np.abs(bins[:, :, 1] - bins[:, :, 2]).sum(axis=1) / sums[:, 0],
            "balanced": np.where((yes * no)[:, 0] > 0, best, np.nan),
            "precise": np.where(reaches.any(axis=1), lowest, 1.0),
        }

    def _counts(self, sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return yeses and noes, and positives and right positives at each threshold."""
        positive, right = np.split(sums[:, 2 + 3 * BINS :], 2, axis=1)
        return sums[:, 1:2], sums[:, :1] - sums[:, 1:2], positive, right

    def threshold(
        self, whole: Floats, name: str, found: Mapping[str, float], drawn: Mapping[str, Interval]
    ) -> Threshold:
        """Return a threshold with its results."""
        value = found[name]
        if not math.isfinite(value):
            return Threshold(undefined="one_class")
        place = min(int(np.searchsorted(self._tried, value)), len(self._tried) - 1)
        counts = np.broadcast_arrays(*self._counts(whole))
        yes, no, positive, right = (float(one[0, place]) for one in counts)
        precision = right / positive  # every threshold that is tried has a positive verdict
        if name == "precise" and precision < self._precision - _ROUNDING:
            return Threshold(undefined="not_reached")
        sensitivity = right / yes if yes else None
        specificity = 1 - (positive - right) / no if no else None
        accuracy = None
        if sensitivity is not None and specificity is not None:
            accuracy = (sensitivity + specificity) / 2
        return Threshold(
            value, drawn.get(name), sensitivity, specificity, precision, balanced_accuracy=accuracy
        )


def _bins(sums: Floats) -> Iterator[Bin]:
    for place, (count, stated, said) in enumerate(sums[2 : 2 + 3 * BINS].reshape(BINS, 3)):
        shares = (float(stated / count), float(said / count)) if count else (None, None)
        yield Bin(place / BINS, (place + 1) / BINS, int(count), *shares)


def _warnings(people: People, side: Side[Judged], kinds: Sequence[Reliability]) -> Iterator[str]:
    """Yield limits of the numbers."""
    for one in kinds:
        if one.verdicts < FEWEST:
            yield (
                f"{one.kind}: people judged {plural(one.verdicts, 'verdict')}; a threshold needs "
                f"{FEWEST} or more"
            )
    yield from mixed_labels(A=side.signatures)
    if people.matched.ties:
        yield f"left out, because people are tied: {plural(people.matched.ties, 'verdict')}"
