"""Statistics of a review: agreement of judge and people, and means corrected by people.

The functions of ``labeler agree`` and ``labeler corrections apply`` compute the numbers. Values
that depend on the judge alone are computed once, so each further judgment costs little.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean

from labeler.calculators import measure
from labeler.calculators.bias_correction import Corrected
from labeler.calculators.rater_agreement import UNITS, is_yes_or_no
from labeler.calculators.registry import plain_name
from labeler.comparing.agreement import compare_with_people
from labeler.comparing.human_labels import HumanLabels, labels_of_corrections
from labeler.comparing.human_matching import (
    Estimates,
    Judged,
    People,
    combine,
    estimate,
    record_fields,
)
from labeler.comparing.sides import read_side
from labeler.data.corrections import Correction
from labeler.data.corrections.applying import corrected
from labeler.data.corrections.file import independent
from labeler.labels.record import LabelRecord
from labeler.labels.signature import ReviewCounts
from labeler.report.views import View
from labeler.review.session import ReviewSession, Snapshot

ByKey = Mapping[str, list[Correction]]
"""Corrections by label key."""


class ReviewStatistics:
    """The statistics of a session, computed again only after the corrections have changed.

    While verdicts are hidden from the annotator, there are no means, which would include them, and
    no statistics of the hidden labels.

    Args:
        session: the review session.
    """

    def __init__(self, session: ReviewSession) -> None:
        self._session, self._labels = session, session.labels
        self._drawn = session.keys if session.settings.queue == "random" else ()
        metrics = session.labels.metrics
        self._words = {one.id: plain_name(one) for one in metrics}
        self._lock = threading.Lock()
        self._latest: tuple[Snapshot, View] | None = None
        self._records: dict[str, LabelRecord] = {}
        self._values: dict[
            tuple[str, str | None], tuple[list[Correction], dict[str, float | None]]
        ] = {}

    def view(self) -> View:
        """Return the statistics as of now.

        Means and agreements have the form that ``labeler agree`` publishes. In ``metrics``,
        ``judge`` is the judge's mean over all rows, ``estimate`` the PPI++ mean (``None`` if
        nothing was drawn at random), ``overlaid`` the mean with people's verdicts where they
        judged. ``among`` compares people with each other.
        """
        snapshot = self._session.log.snapshot()
        with self._lock:
            if self._latest is None or self._latest[0] is not snapshot:
                hidden = self._session.hidden_keys(snapshot)
                latest = [one for one in snapshot.current.values() if one.key not in hidden]
                unaided = [one for one in independent(snapshot.events) if one.key not in hidden]
                view = self._view(latest, unaided, snapshot.drawn, is_blind=bool(hidden))
                self._latest = snapshot, view
            return self._latest[1]

    def _view(
        self,
        latest: Sequence[Correction],
        unaided: Sequence[Correction],
        random: frozenset[str],
        *,
        is_blind: bool,
    ) -> View:
        """Compute the statistics.

        Args:
            latest: each person's latest answer, which corrects the labels.
            unaided: each person's answer without knowing the verdicts, compared with the judge.
            random: keys of the labels that were drawn at random.
            is_blind: whether means must not be shown yet.
        """
        corrections, compared = self._by_key(latest), self._by_key(unaided)
        drawn = {key: some for key, some in compared.items() if key in random}
        records = [self._record(key) for key in compared]
        agreement = compare_with_people(records, self._human(compared)) if records else None
        estimates = {} if is_blind else self._estimates(drawn)
        notes = [_BLIND] if is_blind else self._notes(corrections, drawn, estimates)
        return {
            "judged": len(corrections),
            "drawn": len(drawn),
            "rows": len(self._labels.rows),
            "fields": [one.as_json() for one in agreement.fields if one.field in UNITS]
            if agreement
            else [],
            "metrics": [] if is_blind else self._metric_means(corrections, estimates),
            "among": [one.as_json() for one in agreement.among] if agreement else [],
            "notes": [*self._notes_on_all(drawn), *notes],
        }

    def _by_key(self, corrections: Sequence[Correction]) -> dict[str, list[Correction]]:
        """Return the judgments of these labels, by label key."""
        by_key: dict[str, list[Correction]] = defaultdict(list)
        for one in corrections:
            if (
                one.key in self._labels.places
                and one.verdict is not None
                and not one.check_against(self._record(one.key))
            ):
                by_key[one.key].append(one)
        return by_key

    def _notes(
        self, judged: ByKey, drawn: ByKey, estimates: Mapping[str, Corrected]
    ) -> Iterator[str]:
        """Yield the warnings of the means, each once, with the metrics that it concerns."""
        keys = [self._labels.keys[place] for place in self._labels.rows]
        own = [key for key in keys if key in judged]
        selection = ReviewCounts(len(own), len(keys), sum(key in drawn for key in own))
        if selection.is_biased:
            yield selection.warning()
        concerned: dict[str, list[str]] = defaultdict(list)
        for name, one in estimates.items():
            for warning in one.warnings:
                concerned[warning].append(name)
        for warning, names in concerned.items():
            yield f"{', '.join(names)}: {warning}"

    def _notes_on_all(self, drawn: ByKey) -> Iterator[str]:
        """Note labels of several signatures, and skipped records, which spoil a random sample."""
        if (signatures := len(self._labels.signatures)) > 1:
            yield (
                f"these labels were made in {signatures} ways, and every figure is over "
                "all of them together: review a file of one way for figures of that way"
            )
        last = max((n for n, key in enumerate(self._drawn) if key in drawn), default=0)
        if skipped := sum(key not in drawn for key in self._drawn[:last]):
            noun = "record was" if skipped == 1 else "records were"
            yield (
                f"{skipped} {noun} drawn before the last judged one and not judged, left for later "
                "or unsure: if those are the hard ones, what is carried over is off"
            )

    def _record(self, key: str) -> LabelRecord:
        """Return a record with its key as id: rows may share an id."""
        if key not in self._records:
            record = self._labels.record(self._labels.places[key])
            example = record.example.model_copy(update={"id": key})
            self._records[key] = record.model_copy(update={"example": example})
        return self._records[key]

    def _human(self, by_key: ByKey) -> HumanLabels:
        corrections = [one for some in by_key.values() for one in some]
        return labels_of_corrections(corrections, [self._record(key) for key in by_key]).human

    # Means.

    @cached_property
    def _judge_means(self) -> dict[str, View]:
        """The judge's means; their intervals take long, and no judgment changes them."""
        return {
            name: self._estimated(name, {}, random_sample=False).plain.as_json()
            for name in self._words
        }

    def _estimated(
        self, name: str, verdicts: Mapping[str, float | None], *, random_sample: bool
    ) -> Estimates:
        """Estimate a mean; rows of equal questions are one observation."""
        return estimate(
            name,
            None,
            self._of_rows(name),
            verdicts,
            questions={str(row): asked or None for row, asked in enumerate(self._labels.questions)},
            random_sample=random_sample,
        )

    def _of_rows(self, name: str) -> dict[str, float | None]:
        """Return a metric's values by row number."""
        values = self._labels.values[name]
        return {str(row): values[place] for row, place in enumerate(self._labels.rows)}

    def _metric_means(self, by_key: ByKey, estimates: Mapping[str, Corrected]) -> list[View]:
        changed = {key: self._corrected(key, some) for key, some in by_key.items()}
        return [
            {
                "metric": name,
                "words": words,
                "judge": self._judge_means[name],
                "estimate": estimates[name].as_json() if name in estimates else None,
                "overlaid": self._overlaid(name, changed),
            }
            for name, words in self._words.items()
        ]

    def _corrected(
        self, key: str, corrections: list[Correction], by: str | None = None
    ) -> dict[str, float | None]:
        """Return a record's values as all people or one of them corrected it, from a cache."""
        known = self._values.get((key, by))
        if known is None or known[0] != corrections:
            record = corrected(self._record(key), corrections)
            found = measure(record, self._labels.metrics).metrics
            known = corrections, {name: ratio.value for name, ratio in found.items()}
            self._values[key, by] = known
        return known[1]

    def _overlaid(
        self, name: str, changed: Mapping[str, Mapping[str, float | None]]
    ) -> float | None:
        values = [*self._labels.values[name]]
        for key, found in changed.items():
            values[self._labels.places[key]] = found[name]
        defined = _defined([values[place] for place in self._labels.rows])
        return fmean(defined) if defined else None

    def _estimates(self, drawn: ByKey) -> dict[str, Corrected]:
        """Return PPI++ means by metric from the randomly drawn labels; empty without any."""
        if not drawn:
            return {}
        human = self._human(drawn)
        fields = record_fields(human)
        records = [self._record(key) for key in drawn]
        side = read_side(records, lambda record: Judged.of(record, fields, in_full=True))
        people = People(human, side)
        keys, found = self._labels.keys, {}
        for name in self._words:
            # From people's own verdicts where these define the metric, as labeler agree has it;
            # otherwise from each person's corrected labels.
            verdicts = people.of_records(name) if name in fields else self._of_people(name, drawn)
            by_row = {
                str(row): verdicts[keys[place]]
                for row, place in enumerate(self._labels.rows)
                if keys[place] in verdicts
            }
            found[name] = self._estimated(name, by_row, random_sample=True).ppi
        return found

    def _of_people(self, name: str, drawn: ByKey) -> dict[str, float | None]:
        found = {}
        for key, some in drawn.items():
            own = [self._corrected(key, [one], one.annotator)[name] for one in some]
            if defined := _defined(own):
                found[key] = combine(defined, yes_or_no=is_yes_or_no(name))
        return found


def _defined(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


_BLIND = (
    "Means follow when you have judged every record of this queue: verdicts in them "
    "are still hidden."
)
