"""The review desk: which record comes next, what a person may see of it, and what they said.

Blindness is kept here and not in the page: as long as a person has not judged a record, nothing of
the judge's label leaves the desk, nor anything that was worked out from it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from labeler.audit import CHECKS, doubt_of, findings_of
from labeler.calculators import Metric, measure
from labeler.data.corrections.correction import Correction, Judgement, Opinion, Queue
from labeler.data.corrections.differences import differences, judgement_of
from labeler.labels.answers import in_order, judged_sentences
from labeler.labels.record import LabelRecord
from labeler.report.views import RecordView, record_view
from labeler.review.access import Refused
from labeler.review.collection import Collection
from labeler.review.messages import Said, TakenBack
from labeler.review.saving import Ledger, Standing, Who
from labeler.review.views import CountsView, JudgementView, MineView, OverviewView, TurnView


@dataclass(frozen=True)
class Terms:
    """How a desk is run.

    Attributes:
        name: what is reviewed.
        annotator: who judges.
        fixed: whether nobody else may; so it is where verdicts are hidden.
        queue: how records come.
        blind: whether the judge's verdicts are hidden until a person has judged.
    """

    name: str
    annotator: str
    fixed: bool = False
    queue: Queue = "order"
    blind: bool = False


class Desk:
    """Records in the order in which they are judged, and the file that keeps what people say.

    Args:
        collection: the labels.
        places: those to judge, in order.
        ledger: where corrections are kept.
        terms: how the desk is run.
        metrics: what is shown of each record.
    """

    def __init__(
        self,
        collection: Collection,
        places: Sequence[int],
        ledger: Ledger,
        terms: Terms,
        metrics: Sequence[Metric],
    ) -> None:
        self.collection = collection
        self.places = tuple(places)
        self.ledger = ledger
        self.terms = terms
        self.metrics = tuple(metrics)
        self.stored = 0
        """Corrections that were stored since the desk was opened."""
        self.keys = tuple(collection.keys[place] for place in self.places)
        """Of the labels to judge, in order."""
        self._writing = threading.Lock()

    def overview(self) -> OverviewView:
        """What the page is told first."""
        terms = self.terms
        return {
            "annotator": terms.annotator,
            "fixed": terms.fixed,
            "queue": terms.queue,
            "labels": len(self.collection),
            "blind": terms.blind,
            "checks": {one.id: {"title": one.title, "why": one.why} for one in CHECKS.values()},
            "counts": self._counts(self.ledger.standing(), terms.annotator, len(self.places) - 1),
        }

    def turn(self, position: int, annotator: str) -> TurnView:
        """A record, as far as a person may see it.

        Raises:
            Refused: there is no such position, or the desk is somebody else's.
        """
        self._check_annotator(annotator)
        return self._turn(position, annotator, self._record(position))

    def judge(self, position: int, said: Said) -> TurnView:
        """Store what a person says of a record; it is durable when this returns.

        Raises:
            Refused: it does not fit the record, or the desk is somebody else's.
        """
        self._check_annotator(said.annotator)
        record = self._named(position, said.key)
        with self._writing:
            standing = self.ledger.standing()
            who = (record.key, said.annotator)
            hidden = self._hides(standing, who)
            opinion, judgement = _opinion(said, record, hidden=hidden)
            self._store(
                Correction(
                    key=record.key,
                    id=record.id,
                    annotator=said.annotator,
                    at=_now(),
                    opinion=opinion,
                    judgement=judgement,
                    comment=said.comment,
                    blind=hidden,
                    queue=self._came_by(standing.current.get(who)),
                )
            )
        return self._turn(position, said.annotator, record)

    def take_back(self, position: int, taken: TakenBack) -> TurnView:
        """Withdraw what a person said of a record.

        Raises:
            Refused: they said nothing of it.
        """
        self._check_annotator(taken.annotator)
        record = self._named(position, taken.key)
        with self._writing:
            said = self.ledger.standing().current.get((record.key, taken.annotator))
            if said is None:
                raise Refused(409, "there is nothing to take back here")
            taken_back = {"at": _now(), "judgement": None, "comment": "", "withdrawn": True}
            self._store(said.model_copy(update=taken_back))
        return self._turn(position, taken.annotator, record)

    def hidden(self, standing: Standing) -> frozenset[str]:
        """Keys of the labels to judge whose verdicts are kept from the desk's person still."""
        name = self.terms.annotator
        return frozenset(key for key in self.keys if self._hides(standing, (key, name)))

    def _hides(self, standing: Standing, who: Who) -> bool:
        """Whether the judge's verdicts are kept from a person; one who has seen them, has."""
        return self.terms.blind and who not in standing.seen

    def _came_by(self, before: Correction | None) -> Queue:
        """How a record came before a person: what was drawn at random once, stays so."""
        return before.queue if before and before.queue == "random" else self.terms.queue

    def _is_done(self, said: Correction | None) -> bool:
        """Whether a person has judged a record in its turn.

        Who judged it as one of the most doubtful judges it again where it is drawn at random: left
        out of the sample, the doubtful would be missing from it.
        """
        return said is not None and (self.terms.queue != "random" or said.queue == "random")

    def _store(self, correction: Correction) -> None:
        self.ledger.add(correction)
        self.stored += 1

    def _record(self, position: int) -> LabelRecord:
        if not 0 <= position < len(self.places):
            raise Refused(404, f"there is no such record; there are {len(self.places)}")
        return self.collection.record(self.places[position])

    def _named(self, position: int, key: str) -> LabelRecord:
        record = self._record(position)
        if record.key != key:
            raise Refused(409, "another label stands at this place now; load the page anew")
        return record

    def _check_annotator(self, annotator: str) -> None:
        if self.terms.fixed and annotator != self.terms.annotator:
            raise Refused(
                403,
                "this desk is opened for one annotator; somebody else opens their own with "
                "--annotator",
            )

    def _turn(self, position: int, annotator: str, record: LabelRecord) -> TurnView:
        standing = self.ledger.standing()
        who = (record.key, annotator)
        hidden = self._hides(standing, who)
        return {
            "position": position,
            "key": record.key,
            "hidden": hidden,
            "record": _bare(record) if hidden else self._whole(record),
            "judge": None if hidden else _judgement_view(judgement_of(record.label)),
            "mine": _mine(standing.current.get(who), record),
            "counts": self._counts(standing, annotator, position),
        }

    def _whole(self, record: LabelRecord) -> RecordView:
        findings = findings_of(record)
        metrics = measure(record, self.metrics).metrics
        return record_view(record, metrics=metrics, findings=findings, doubt=doubt_of(findings))

    def _counts(self, standing: Standing, annotator: str, position: int) -> CountsView:
        found = (standing.current.get((key, annotator)) for key in self.keys)
        said = [one.opinion if one and self._is_done(one) else None for one in found]
        counted = Counter(said)
        after = chain(range(position + 1, len(said)), range(position + 1))
        return {
            "size": len(said),
            "agree": counted["agree"],
            "disagree": counted["disagree"],
            "unsure": counted["unsure"],
            "next_open": next((place for place in after if said[place] is None), None),
        }


def _opinion(said: Said, record: LabelRecord, *, hidden: bool) -> tuple[Opinion, Judgement | None]:
    """What a person thinks of the label, by what they say, and their judgement in reading order.

    Raises:
        Refused: the judgement is missing, or does not fit the record.
    """
    if (said.judgement is not None) != (said.answer == "judged"):
        raise Refused(422, "a judgement goes with the answer 'judged', and with no other")
    if said.answer == "unsure":
        return "unsure", None
    if said.judgement is None:
        if hidden:
            raise Refused(409, "nobody can agree with verdicts that are hidden; judge yourself")
        return "agree", judgement_of(record.label)
    if faults := said.judgement.check_against(record):
        raise Refused(422, f"the judgement does not fit the record: {'; '.join(faults)}")
    mine = _in_order(said.judgement)
    # Whoever judges decides on every sentence, also on one that the judge left out.
    judge_left_out = len(judged_sentences(record.label)) < len(record.example.response)
    differs = judge_left_out or differences(record.label, mine)
    return ("disagree" if differs else "agree"), mine


def _in_order(judgement: Judgement) -> Judgement:
    """The same judgement with its keys in reading order."""
    return Judgement(
        relevant=in_order(judgement.relevant),
        utilized=in_order(judgement.utilized),
        support={key: in_order(judgement.support[key]) for key in in_order(judgement.support)},
        overall_supported=judgement.overall_supported,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _bare(record: LabelRecord) -> RecordView:
    """The question and the texts alone.

    Whatever else there is may tell of the verdicts: published rows carry scores in other columns.
    """
    view = record_view(record)
    return {
        "id": view["id"],
        "key": view["key"],
        "signature": "",
        "question": view["question"],
        "documents": view["documents"],
        "response": view["response"],
        "reference": view["reference"],
        "label": None,
        "metrics": {},
        "findings": [],
        "doubt": None,
        "metadata": {},
        "made": {},
    }


def _judgement_view(judgement: Judgement) -> JudgementView:
    return {
        "relevant": list(judgement.relevant),
        "utilized": list(judgement.utilized),
        "support": {key: list(keys) for key, keys in judgement.support.items()},
        "overall_supported": judgement.overall_supported,
    }


def _mine(said: Correction | None, record: LabelRecord) -> MineView | None:
    """What a person said of a record; a judgement that was brought from elsewhere may not fit."""
    if said is None:
        return None
    fits = said.judgement is not None and not said.check_against(record)
    return {
        "opinion": said.opinion,
        "judgement": _judgement_view(said.judgement) if said.judgement and fits else None,
        "comment": said.comment,
        "at": said.at,
        "blind": said.blind,
    }
