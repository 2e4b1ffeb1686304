"""Units of a certified metric: what one reads, its weight, and the judge's forecast of the answer.

A unit is a sentence, or all sentences of a record; :data:`CERTIFIABLE` has what a person answers.
Answers are yes (``True``) and no (``False``). For completeness, yes is a relevant sentence that the
response uses, no a relevant one that it does not use, and ``None`` an irrelevant one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from labeler.calculators import METRICS, tally
from labeler.calculators.rater_agreement import verdicts_of
from labeler.calculators.tally import claiming_keys
from labeler.comparing.calibration import FIELDS
from labeler.errors import UsageError
from labeler.evidence.looks import Floats
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.labels.signature import MAJORITY, Signature

if TYPE_CHECKING:
    from labeler.evidence.doubt import Doubt

Item: TypeAlias = tuple[str, str]
"""Record id and sentence key."""
Answer: TypeAlias = bool | None
Answers: TypeAlias = Mapping[Item, Answer]

_SURE = 0.8
"""Probability that stands for a verdict without one, until people have answered."""
_VOTED = 0.1
"""Probability of yes if all votes are no: few votes say so much and no more."""
_MANY_SURE, _SELDOM = 0.95, 0.3
"""Chances that a person finds a relevant sentence where the judge found some, or none."""


class Readings(NamedTuple):
    """People's answers, their second readings, and their names in order of appearance."""

    answers: Answers
    second: Answers
    who: tuple[str, ...] = ()


class Certifiable(NamedTuple):
    """How a metric is certified: the kind of verdict that forecasts an answer, and the question.

    ``whole`` if all sentences of a record are one unit; ``rate_of_no`` if the metric is the share
    of the answer no. ``None`` is an answer in a share of what people call relevant.
    """

    kind: str
    ask: str
    whole: bool = False
    rate_of_no: bool = False
    answers: tuple[Answer, ...] = (True, False)


_SUPPORTED = "Do the documents support the sentence?"
_USED = "Does the response use the sentence?"
_RELEVANT = f"{_USED} (not relevant, if it does not help to answer)"
CERTIFIABLE: Mapping[str, Certifiable] = {
    "adherence_fraction": Certifiable("support", _SUPPORTED),
    "hallucination_rate": Certifiable("support", _SUPPORTED, rate_of_no=True),
    "adherence": Certifiable("support", _SUPPORTED, whole=True),
    "relevance": Certifiable("relevance", "Does the sentence help to answer the question?"),
    "utilization": Certifiable("utilization", _USED),
    "completeness": Certifiable("utilization", _RELEVANT, whole=True, answers=(True, False, None)),
}


class Units:
    """The units of a metric over labels.

    Args:
        outcomes: labels; failures are counted only.
        metric: a metric of :data:`CERTIFIABLE`.
        doubt: forecasts answers instead of stored probabilities and bare verdicts.

    Attributes:
        units: the sentences that are read together, by unit.
        weights: share of each unit in the metric.
        forecasts: probability of the answer yes; for completeness the expected share.
        sizes: probability that the metric is defined; below 1 for completeness only.
        sentences: number of sentences of all units.

    Raises:
        UsageError: no label has a sentence to read, two labels have one id, or labels of several
            judge configurations are mixed.
    """

    def __init__(
        self, outcomes: Iterable[AnyOutcome], metric: str, doubt: Doubt | None = None
    ) -> None:
        self.metric, self.how, self.doubt = metric, CERTIFIABLE[metric], doubt
        if doubt and self.how.kind != "support":
            raise UsageError(f"doubts are about response sentences: certify {metric} without them")
        found: dict[str, LabelRecord] = {}
        every = list(outcomes)
        for one in of_one_judge(every):
            if found.setdefault(one.id, one) != one:
                raise UsageError(
                    f"two labels have the id {one.id!r:.80}; people's answers name records by id, "
                    "so give each row its own, or certify one judge configuration at a time"
                )
        # Sorted, so that the rounding of sums does not depend on the order of labels.
        self.records = dict(sorted(found.items()))
        self.failed = sum(not isinstance(one, LabelRecord) for one in every)
        self.readable = [one for one in self.records.values() if keys_of(one, self.how.kind)]
        if not self.readable:
            raise UsageError(f"no label has a sentence that {metric} is about; label rows first")
        doubted = doubt.of(self.readable).verdicts if doubt else ()
        doubts = {(one.id, one.sentence): one.doubt for one in doubted}
        self.units: list[list[Item]] = []
        numbers: list[tuple[float, float, float]] = []
        for record in self.readable:
            items = [(record.id, key) for key in keys_of(record, self.how.kind)]
            self.units += [items] if self.how.whole else [[item] for item in items]
            forecasts, size = self._forecasts(record, doubts)
            weight = 1 / (len(self.readable) * len(forecasts))
            numbers += [(weight, forecast, size) for forecast in forecasts]
        self.weights, self.forecasts, self.sizes = map(np.array, zip(*numbers, strict=True))
        self.sentences = sum(map(len, self.units))

    def _forecasts(
        self, record: LabelRecord, doubts: Mapping[Item, float]
    ) -> tuple[list[float], float]:
        """Return the forecast of each unit of a record, and the probability that they count."""
        verdicts, kind = verdicts_of(record), self.how.kind
        if None in self.how.answers:
            pairs = zip(verdicts["relevant"], verdicts["utilized"], strict=True)
            used = [bool(utilized) for relevant, utilized in pairs if relevant]
            size = _MANY_SURE if used else _SELDOM
            share = min(max(sum(used) / len(used), 1 - _SURE), _SURE) if used else 0.5
            return [share * size], size
        stated, said = stated_probabilities(record, kind), verdicts[FIELDS[kind]]
        items = [(record.id, key) for key in keys_of(record, kind)]
        both = zip(items, said, strict=True)
        found = [_probability(stated.get(one[1]), yes, doubts.get(one)) for one, yes in both]
        if self.how.whole:
            is_sure = stated or any(item in doubts for item in items)
            found = [math.prod(found) if is_sure else _probability(None, all(said), None)]
        return found, 1.0

    @cached_property
    def judged(self) -> float | None:
        """The judge's own value of the metric; ``None`` if no record defines it."""
        share = METRICS["adherence_fraction" if self.how.rate_of_no else self.metric]
        found = [share.ratio(tally(one), one.id).value for one in self.readable]
        defined = [value for value in found if value is not None]
        return self.value(fmean(defined)) if defined else None

    def value(self, share_of_yes: float) -> float:
        """Return the metric's value for a share of the answer yes."""
        return 1 - share_of_yes if self.how.rate_of_no else share_of_yes

    def answer(self, unit: int, answers: Answers) -> tuple[float, float] | None:
        """Return numerator and denominator of a unit; ``None`` if an answer is missing."""
        items = self.units[unit]
        given = [answers[item] for item in items if item in answers]
        if self.how.whole and None not in self.how.answers and False in given:
            return 0.0, 1.0
        if len(given) < len(items):
            return None
        relevant = [answer for answer in given if answer is not None]
        return (sum(relevant) / len(relevant), 1.0) if relevant else (0.0, 0.0)

    def order(self, seed: int, look: int) -> Floats:
        """Return a random number inside 0 to 1 for each unit, whatever the order of the labels.

        Source: R. Rivest, Consistent Sampling with Replacement, 2018: numbers from digests of
        names, which anybody can compute again.
        """
        names = ("\0".join((f"{seed}", f"{look}", *items[0])) for items in self.units)
        texts = (name.encode("utf-8", "backslashreplace") for name in names)
        numbers = [int.from_bytes(hashlib.sha256(text).digest()[:6]) for text in texts]
        return (np.array(numbers) + 0.5) / 2**48

    def digest(self) -> str:
        """Return the digest of the labels, whatever their order."""
        own = ((one.id, one.key, one.content(), repr(one.scores)) for one in self.records.values())
        return digest_of(sorted(map("\0".join, own)))


def checked_answers(kind: str, given: object, allowed: Sequence[Answer] = (True, False)) -> Answers:
    """Return answers or corrections of people, and reject what is neither yes nor no."""
    words = " or ".join(map(str, allowed))
    if not isinstance(given, Mapping):
        raise UsageError(f"{kind}s are a mapping of (id, sentence) to {words}, got {given!r:.40}")
    for item, yes in given.items():
        if not isinstance(yes, int | float | np.generic | None) or yes not in allowed:
            raise UsageError(f"{kind} {item!r:.120} is {yes!r:.40}; it is {words}")
    return {item: None if yes is None else bool(yes) for item, yes in given.items()}


def of_one_judge(outcomes: Iterable[AnyOutcome]) -> Iterator[LabelRecord]:
    """Yield the labels among outcomes, and reject two judge configurations."""
    first: LabelRecord | None = None
    for one in outcomes:
        if isinstance(one, LabelRecord):
            first = first or one
            if apart := differing(first.signature, one.signature):
                raise UsageError(
                    f"{first.id!r:.80} and {one.id!r:.80} were labeled by two judge configurations "
                    f"({', '.join(apart)}); give one configuration at a time"
                )
            yield one


def differing(first: Signature, second: Signature) -> list[str]:
    """Return the facts of two judge configurations that are not facts of both."""
    return sorted({*str(first).split("|")} ^ {*str(second).split("|")})


def keys_of(record: LabelRecord, kind: str) -> Sequence[str]:
    """Return the keys of the sentences that a kind of verdict is about."""
    example = record.example
    return claiming_keys(example) if kind == "support" else example.document_keys()


def stated_probabilities(record: LabelRecord, kind: str) -> dict[str, float]:
    """Return the stored probabilities of the answer yes: the judge's, or shares of votes.

    There are none for a label without, or with scores of another scale.
    """
    scores = record.scores
    shares: dict[str, float] = getattr(scores, kind) if scores else {}
    if scores and record.signature.judge == MAJORITY:  # they leave out sentences without a vote
        keys = keys_of(record, kind)
        return {key: _VOTED + (1 - 2 * _VOTED) * shares.get(key, 0.0) for key in keys}
    if scores is None or scores.adherence is None:
        return {}
    return {key: min(max(share, 0.0), 1.0) for key, share in shares.items()}


def digest_of(lines: Iterable[str]) -> str:
    """Return the SHA-256 digest of lines, with lone surrogates escaped."""
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode("utf-8", "backslashreplace") + b"\n")
    return found.hexdigest()


def _probability(stated: float | None, verdict: bool | None, doubt: float | None) -> float:
    if doubt is not None and verdict is not None:
        return 1 - doubt if verdict else doubt
    if stated is not None:
        return stated
    return 0.5 if verdict is None else _SURE if verdict else 1 - _SURE
