"""A session of the review app: labels in review order, and the corrections that a person saves.

Blind review is enforced here and not in the page: until a person has judged a record, no response
contains the judge's label or anything computed from it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import get_args

from starlette.exceptions import HTTPException

from labeler.audit import CHECKS, examine
from labeler.calculators import measure
from labeler.data.corrections import (
    Correction,
    Judgment,
    Opinion,
    Queue,
    differences,
    drawn_at_random,
    judgment_of,
)
from labeler.data.corrections.file import CorrectionsFile, current
from labeler.labels.answers import in_order, judged_sentences
from labeler.labels.record import LabelRecord
from labeler.report.views import View, record_view
from labeler.review.access import ReviewAnswer
from labeler.review.label_set import LabelSet


@dataclass(frozen=True)
class ReviewSettings:
    """Settings of a review session.

    Attributes:
        name: name of the labels under review.
        annotator: the person who reviews.
        queue: order of the records.
        blind: whether the judge's verdicts are hidden until the person has judged.
    """

    name: str
    annotator: str
    queue: Queue = "order"
    blind: bool = False


ANSWER_FIELDS = {"opinion", "judgment", "comment", "at", "blind"}
"""Fields of a correction that the page shows to its author."""


class ReviewSession:
    """Labels in review order, and the log of corrections to them.

    Args:
        labels: the labels.
        places: places of the labels to review, in order.
        log: corrections so far; new ones are added to it.
        settings: settings of the session.

    Attributes:
        keys: keys of the labels to review, in order.
    """

    def __init__(
        self,
        labels: LabelSet,
        places: Sequence[int],
        log: CorrectionsLog,
        settings: ReviewSettings,
    ) -> None:
        self.labels, self.places = labels, tuple(places)
        self.log, self.settings = log, settings
        self.keys = tuple(labels.keys[place] for place in self.places)
        self._writing = threading.Lock()

    def overview(self) -> View:
        """Return the settings and the progress."""
        settings = self.settings
        return {
            "annotator": settings.annotator,
            "queue": settings.queue,
            "labels": len(self.labels),
            "blind": settings.blind,
            "checks": {one.id: {"title": one.title, "why": one.why} for one in CHECKS.values()},
            "counts": self._counts(self.log.snapshot(), len(self.places) - 1),
        }

    def show(self, position: int) -> View:
        """Return a record without what the annotator must not see yet.

        Returns:
            ``hidden`` is true if the judge's verdicts are hidden; then ``judge``, the judge's label
            as a judgment, is ``None``. ``mine`` is the person's saved answer, see
            :data:`ANSWER_FIELDS`; ``None`` without one.

        Raises:
            HTTPException: the position does not exist.
        """
        return self._view(position, self._record(position))

    def save(self, position: int, answer: ReviewAnswer) -> View:
        """Save an answer to a record, or withdraw it; it is durable when this method returns.

        Raises:
            HTTPException: the answer does not fit the record, there is none to withdraw, or the
                page is outdated.
        """
        if (answer.judgment is not None) != (answer.answer == "judged"):
            raise HTTPException(422, "a judgment goes with the answer 'judged', and with no other")
        record = self._record(position, answer.key)
        key = (record.key, self.settings.annotator)
        with self._writing:
            snapshot = self.log.snapshot()
            latest = _latest(snapshot, key, answer)
            at, hidden = _time_of_answer(snapshot, key), self._hides(snapshot, key)
            if answer.answer is None:
                if latest is None:
                    raise HTTPException(409, "there is nothing to take back here")
                changes = {"at": at, "judgment": None, "comment": "", "withdrawn": True}
                self.log.add(latest.model_copy(update=changes))
                return self._view(position, record)
            opinion, judgment = _opinion(answer, record, hidden=hidden)
            self.log.add(
                Correction(
                    key=record.key,
                    id=record.id,
                    annotator=self.settings.annotator,
                    at=at,
                    opinion=opinion,
                    judgment=judgment,
                    comment=answer.comment,
                    blind=hidden,
                    queue="random" if record.key in snapshot.drawn else self.settings.queue,
                )
            )
        return self._view(position, record)

    def hidden_keys(self, snapshot: Snapshot) -> frozenset[str]:
        """Return keys of the labels whose verdicts the session's annotator must not see yet."""
        name = self.settings.annotator
        return frozenset(key for key in self.keys if self._hides(snapshot, (key, name)))

    def _hides(self, snapshot: Snapshot, key: KeyAndAnnotator) -> bool:
        """Return whether verdicts are hidden; once seen, they stay visible."""
        return self.settings.blind and key not in snapshot.seen

    def _is_done(self, correction: Correction) -> bool:
        """Return whether a correction answers a record in this queue.

        A record that was reviewed as suspicious is reviewed again if it is drawn at random:
        otherwise the sample would lack suspicious records.
        """
        return self.settings.queue != "random" or correction.queue == "random"

    def _record(self, position: int, key: str | None = None) -> LabelRecord:
        """Return the record at a position, and check its key if one is given."""
        if not 0 <= position < len(self.places):
            raise HTTPException(404, f"there is no such record; there are {len(self.places)}")
        record = self.labels.record(self.places[position])
        if key not in {None, record.key}:
            raise HTTPException(409, "another label is at this position now; load the page again")
        return record

    def _view(self, position: int, record: LabelRecord) -> View:
        snapshot = self.log.snapshot()
        key = (record.key, self.settings.annotator)
        hidden = self._hides(snapshot, key)
        view = _without_verdicts(record)
        if not hidden:
            findings, doubt = examine(record)
            metrics = measure(record, self.labels.metrics).metrics
            view = record_view(record, metrics=metrics, findings=findings, doubt=doubt)
        return {
            "position": position,
            "key": record.key,
            "hidden": hidden,
            "record": view,
            "judge": None if hidden else judgment_of(record.label).model_dump(mode="json"),
            "mine": _own_answer(snapshot.current.get(key), record),
            "counts": self._counts(snapshot, position),
        }

    def _counts(self, snapshot: Snapshot, position: int) -> View:
        latest = (snapshot.current.get((key, self.settings.annotator)) for key in self.keys)
        opinions = [one.opinion if one and self._is_done(one) else None for one in latest]
        counts = Counter(opinions)
        following = chain(range(position + 1, len(opinions)), range(position + 1))
        return {
            "size": len(opinions),
            **{opinion: counts[opinion] for opinion in get_args(Opinion)},
            "next_open": next((place for place in following if opinions[place] is None), None),
        }


def _opinion(
    answer: ReviewAnswer, record: LabelRecord, *, hidden: bool
) -> tuple[Opinion, Judgment | None]:
    """Return a person's opinion of the label, and their judgment in reading order.

    Raises:
        HTTPException: the judgment does not fit the record.
    """
    if answer.answer == "unsure":
        return "unsure", None
    if answer.judgment is None:
        if hidden:
            raise HTTPException(
                409, "nobody can agree with verdicts that are hidden; judge yourself"
            )
        return "agree", judgment_of(record.label)
    if faults := answer.judgment.check_against(record):
        raise HTTPException(422, f"the judgment does not fit the record: {'; '.join(faults)}")
    given = answer.judgment
    own = Judgment(
        relevant=in_order(given.relevant),
        utilized=in_order(given.utilized),
        support={key: in_order(given.support[key]) for key in in_order(given.support)},
        overall_supported=given.overall_supported,
    )
    # A person's judgment decides every sentence, including those that the judge left out.
    judge_left_out = len(judged_sentences(record.label)) < len(record.example.response)
    differs = judge_left_out or differences(record.label, own)
    return ("disagree" if differs else "agree"), own


def _latest(snapshot: Snapshot, key: KeyAndAnnotator, change: ReviewAnswer) -> Correction | None:
    """Return a person's latest answer; ``None`` without one.

    Raises:
        HTTPException: it is not the answer that the page showed.
    """
    latest = snapshot.current.get(key)
    if change.before != (latest and latest.at):
        raise HTTPException(
            409, "your answer was changed elsewhere, as in another tab; load the page again"
        )
    return latest


def _time_of_answer(snapshot: Snapshot, key: KeyAndAnnotator) -> str:
    """Return the time; the time of the person's last event if the clock was set back since."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    earlier = (one.at for one in snapshot.events if (one.key, one.annotator) == key)
    return max([now, *earlier], key=datetime.fromisoformat)


def _without_verdicts(record: LabelRecord) -> View:
    """Return the question and the texts only.

    Anything else may reveal the verdicts: published rows have scores in other columns.
    """
    return record_view(record) | {"signature": "", "label": None, "metadata": {}, "made": {}}


def _own_answer(correction: Correction | None, record: LabelRecord) -> View | None:
    """Return a person's saved answer; the judgment of an imported one may not fit the record."""
    if correction is None:
        return None
    answer: View = correction.model_dump(mode="json", include=ANSWER_FIELDS)
    return answer | {"judgment": None} if correction.check_against(record) else answer


KeyAndAnnotator = tuple[str, str]
"""A label key and an annotator."""


class Snapshot:
    """The corrections of a file at one moment.

    Attributes:
        events: all corrections, in file order.
        current: the latest correction of each annotator on each label, without withdrawn ones.
        seen: annotators who ever answered a label, and so may have seen the judge's verdicts.
        drawn: keys of the labels that were ever drawn at random.
    """

    def __init__(self, events: Sequence[Correction]) -> None:
        self.events = events
        self.current: Mapping[KeyAndAnnotator, Correction] = {
            (event.key, event.annotator): event for event in current(events)
        }
        self.seen = frozenset((event.key, event.annotator) for event in events)
        self.drawn = drawn_at_random(events)


class CorrectionsLog:
    """A corrections file that is read again only if it has changed.

    Args:
        file: the corrections file.
    """

    def __init__(self, file: CorrectionsFile) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._read_at: tuple[int, int] | None = None
        """Size and modification time when the file was last read."""
        self._snapshot = Snapshot(())

    def snapshot(self) -> Snapshot:
        """Return the corrections of the file as it is now."""
        with self._lock:
            # Taken before reading, so a correction added meanwhile makes it differ again.
            state = self._state()
            if state != self._read_at:
                self._snapshot = Snapshot(self.file.read().events)
                self._read_at = state
            return self._snapshot

    def add(self, correction: Correction) -> None:
        """Store a correction; it is durable when this method returns."""
        size = len(correction.model_dump_json().encode()) + 1  # and the end of the line
        with self._lock:
            self.file.append(correction)
            before, after = self._read_at, self._state()
            if after is not None and after[0] == (before[0] if before else 0) + size:
                # Nobody else has written meanwhile, so the file need not be read again.
                self._snapshot = Snapshot((*self._snapshot.events, correction))
                self._read_at = after

    def _state(self) -> tuple[int, int] | None:
        try:
            found = self.file.path.stat()
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns
