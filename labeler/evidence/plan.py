"""Plans: which sentences people read next, so that a metric can be certified.

A plan has no hidden state. It follows from the labels, the goal, the seed, and the answers of the
looks before: chances and stakes of a look are fixed before its answers are known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, takewhile
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from labeler.calculators import METRICS
from labeler.calculators.intervals import BoundedMean
from labeler.calculators.registry import plain_name
from labeler.errors import UsageError
from labeler.evidence.certificate import Certificate, Goal
from labeler.evidence.looks import Design, Looks
from labeler.evidence.units import Answers, Item, Readings, Units, checked_answers, digest_of
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import Display, Displayed, in_percent, percent, plural

if TYPE_CHECKING:
    from labeler.evidence.doubt import Doubt

FEWEST_CHECKS = 50
"""Sentences that a certificate rests on at least, unless all are read."""
_SECOND = 10
"""One of so many sentences is read a second time."""
_LEFT = 0.1
"""Least share of a stream's margin that the design leaves to the records."""
_DIGITS = 12
"""Digits of values: sums of weights err in later ones, and 0.9 must not seem below 0.9."""
_WORTH = 2
"""Questions by squares for one as large as the largest, from which squares say more."""


class ToRead(NamedTuple):
    """A sentence to read.

    Attributes:
        id: the record's id.
        sentence: key of the sentence.
        probability: chance that its unit was drawn next, among those unread before it.
    """

    id: str
    sentence: str
    probability: float


class Plan(Displayed):
    """The sentences to read next, and what is known so far.

    Args:
        goal: what is to be certified.
        units: the units of the metric.
        readings: all answers so far, of one look after the other.

    Attributes:
        looks: number of units that were read at each look; the last one may be incomplete.
        look: number of the last look, from 1.
        sentences: the sentences to read now, in the order to read them; none if the answers so far
            allow a certificate.
        value: the estimate so far; before the first look the value that the judge's forecasts give.
        interval: the interval so far; it holds at every look.
        is_finished: True if the answers so far allow a certificate.

    Raises:
        UsageError: an answer is about a sentence that was not drawn, or follows a missing one.
    """

    issued: ClassVar[bool] = False
    """False for a plan, True for a certificate."""

    def __init__(self, goal: Goal, units: Units, readings: Readings) -> None:
        self.goal, self.units = goal, units
        self.answers, self.second, self.who = readings
        error = (1 - goal.level) / (2 if goal.population else 1)
        self._looks = Looks(units.weights, units.forecasts / units.sizes, units.sizes, error=error)
        self.looks: tuple[int, ...] = ()
        self._read: set[Item] = set()
        self._asked: dict[Item, float] = {}
        self._conclude()
        # What was drawn is read before anything else is drawn: a sentence that a reader saw and
        # left out would be missing from the interval.
        while not (self._asked or self.is_finished):
            self._look()
        if unread := self.answers.keys() - self._read:
            if not unread <= self._asked.keys():
                raise UsageError("answers of an earlier look were changed; begin a new plan")
            raise _missing(next(item for item in self._asked if item not in unread))
        if self.is_finished:
            self._asked = {}
        self.sentences = tuple(ToRead(*item, chance) for item, chance in self._asked.items())

    def _look(self) -> None:
        """Draw the units of a look, take in their answers, and ask for those that lack one."""
        self.look = len(self.looks) + 1
        design, size, _ = self._next()
        order = self.units.order(self.goal.seed, len(self.looks))
        drawn, chances = self._looks.draw(design, order, size)
        known = list(takewhile(bool, (self.units.answer(unit, self.answers) for unit in drawn)))
        units = drawn[: len(known)]
        for unit, chance in zip(drawn[len(known) :], chances[len(known) :], strict=True):
            self._asked |= dict.fromkeys(self.units.units[unit], chance)
        if units:
            self._looks.learn(units, design, *np.array(known).T)
            self.looks += (len(units),)
            items = chain.from_iterable(self.units.units[unit] for unit in units)
            self._last = [item for item in items if item in self.answers]
            self._read.update(self._last)
            self._conclude()

    def _conclude(self) -> None:
        """Set the estimate and the interval, and whether they allow a certificate."""
        goal, looks = self.goal, self._looks
        value, *ends = (
            round(self.units.value(one), _DIGITS) for one in (looks.value, looks.low, looks.high)
        )
        self.value, (low, high) = value, sorted(ends)
        self.interval = (low, high)
        if goal.population:
            self.interval = stream_interval(self._defined(), low, high, looks.error)
        enough = len(self._read) >= FEWEST_CHECKS and goal.met(*self.interval)
        self.is_finished = enough or not looks.unread.any()

    def _next(self) -> tuple[Design, int, int]:
        """Return the design of a look, how many units it reads, and about how many are needed."""
        value = self.units.value(self._looks.value)
        margin = self.goal.margin(value)
        if self.goal.population:  # the records' own interval must leave room for the stream's
            low, high = stream_interval(self.units.readable, value, value, self._looks.error)
            margin = max(margin - (high - low) / 2, _LEFT * margin)
        return self._looks.next(margin, self.units.sentences / len(self.units.units))

    def _defined(self, *, are: bool = True) -> list[LabelRecord]:
        """Return the records that surely have the metric, or surely lack it."""
        units = self.units
        if None not in units.how.answers:
            return units.readable if are else []
        read = {item: self.answers[item] for item in self._read}
        both = ((one, units.answer(unit, read)) for unit, one in enumerate(units.readable))
        return [one for one, found in both if found and (found[1] > 0) == are]

    @cached_property
    def again(self) -> tuple[Item, ...]:
        """A tenth of the sentences of this look, which a person reads a second time."""
        items = self._last if self.is_finished else [*self._asked]
        ranked = sorted(items, key=lambda item: digest_of([str(self.goal.seed), "again", *item]))
        return tuple(ranked[: -(-len(items) // _SECOND)])

    @property
    def needed(self) -> int:
        """About how many more sentences must be read, with the sentences of this plan."""
        units = self._next()[2] if self._looks.unread.any() else 0
        least = min(FEWEST_CHECKS, self.units.sentences) - len(self.answers)
        each = self.units.sentences / len(self.units.units)
        return max(round(units * each), least, len(self.sentences))

    def certificate(
        self, answers: Answers, *, second: Answers | None = None, who: str | Sequence[str] = ()
    ) -> Certificate | Plan:
        """Return the certificate that the answers allow, or the plan of the next look.

        Args:
            answers: yes or no by record id and sentence key, for the sentences of this plan, or
                for its first ones up to any: the next plan begins with the others. Those of
                earlier looks may be repeated. See :mod:`labeler.evidence.units` for what is asked.
            second: second readings of some of the sentences, best of :attr:`again`.
            who: names of the people who answered.

        Returns:
            A certificate if the goal is met or everything is read; else the next plan.

        Raises:
            UsageError: an answer is about a sentence that was not drawn, changed, missing between
                others, or neither yes nor no; or the metric turns out to be undefined.
        """
        people = tuple(who) if isinstance(who, list | tuple) else (who,)
        if not all(isinstance(one, str) for one in people):
            raise UsageError(f"who is a name or a list of names, got {who!r:.80}")
        following = self.after(Readings(answers, second or {}, people))
        return following.issue() if following.is_finished else following

    def after(self, readings: Readings) -> Plan:
        """Return the plan with more answers, which may be finished; see :meth:`certificate`."""
        given = self._merged(readings.answers, self.answers)
        again = self._merged(readings.second, self.second)
        new = given.keys() - self.answers.keys()
        for item in (one for one in given if one in new and one not in self._asked):
            place = next((n for n, own in enumerate(self.units.units) if item in own), None)
            why = "the plan is finished" if self.is_finished else "the plan did not draw it"
            if place is None:
                why = "no label has it (keep ids as text)"
            elif not (self.is_finished or self._looks.unread[place]):
                why = "another answer has settled its record"
            why += "; leave it out, or begin a new plan"
            raise UsageError(f"answer about {item!r:.120}, but {why}")
        if not (new or again.keys() - self.second.keys() or self.is_finished):
            asked, count = self.sentences[0][:2], plural(len(self.sentences), "other sentence")
            raise UsageError(f"no new answer: the plan asks for {count} now, first {asked!r:.120}")
        if alone := [item for item in again if item not in given]:
            raise UsageError(f"second answer about {alone[0]!r:.120}, which has no first one")
        who = dict.fromkeys([*self.who, *filter(None, readings.who)])
        return Plan(self.goal, self.units, Readings(given, again, tuple(who)))

    def issue(self) -> Certificate:
        """Return the certificate of a finished plan.

        Raises:
            UsageError: no record has the metric.
        """
        units, goal, answers = self.units, self.goal, self.answers
        undefined = len(self._defined(are=False))
        if undefined == len(units.readable):
            found = f"no relevant sentence in any of the {undefined} records"
            raise UsageError(f"{goal.metric} is undefined: people found {found}; certify relevance")
        signature = units.readable[0].signature
        read = [f"{name}\0{key}\0{answers[name, key]}" for name, key in sorted(answers)]
        doubted = units.doubt.coefficients if units.doubt else ()
        return Certificate(
            goal=goal,
            value=self.value,
            interval=self.interval,
            judged=units.judged,
            checked=len(answers),
            looks=self.looks,
            sentences=units.sentences,
            records=len(units.readable) - undefined,
            failed=units.failed,
            undefined=len(units.records) - len(units.readable) + undefined,
            who=self.who,
            second_read=len(self.second),
            second_agreed=sum(answers[item] == said for item, said in self.second.items()),
            signature=str(signature),
            digests={
                "labels": units.digest(),
                "prompt": None if signature.prompt is None else digest_of([str(signature.prompt)]),
                "plan": digest_of(map(repr, (goal, doubted, self.looks))),
                "answers": digest_of(read),
            },
        )

    def _merged(self, given: Answers, known: Answers) -> Answers:
        """Return known answers and those given, if these are answers and change none."""
        found = dict(known)
        for item, answer in checked_answers("answer", given, self.units.how.answers).items():
            if found.setdefault(item, answer) is not answer:
                raise UsageError(
                    f"answer to {item!r:.120} was {found[item]} in an earlier look and is {answer} "
                    "now; draws and certificates rest on it, so begin a new plan to change it; a "
                    "second reading has 2 in the column 'reading'"
                )
        return found

    @property
    def conclusion(self) -> str:
        """What is known, and how much is to be read."""
        goal, (low, high) = self.goal, self.interval
        name = plain_name(METRICS[goal.metric])
        if not self.looks:
            now, every = len(self.sentences), plural(self.units.sentences, "sentence")
            some = f"all {every}" if now == self.units.sentences else f"{now:,} of {every} first"
            more = f", about {self.needed:,} in all" if self.needed > now else ""
            return f"Read {some}{self.twice}{more}, to certify {name} {goal}."
        return (
            f"Not yet: about {plural(self.needed, 'more sentence')}. {name.capitalize()}: "
            f"{percent(self.value, 1)} ({in_percent(low, 1)} to {percent(high, 1)}) after "
            f"{plural(len(self.answers), 'sentence')}."
        )

    @property
    def twice(self) -> str:
        """How many of the sentences to read are read twice, such as ``, 6 of them twice``."""
        count = sum(item not in self.second for item in self.again)
        return f", {count:,} of them twice" if count else ""

    def _display(self) -> Display:
        next_ = "next: read plan.sentences, then plan.certificate({(id, sentence): True or False})"
        return Display(self.conclusion, notes=[next_])


def make_plan(outcomes: Iterable[AnyOutcome], goal: Goal, doubt: Doubt | None = None) -> Plan:
    """Return the first plan of a certificate, and reject a width that a stream cannot reach."""
    units = Units(outcomes, goal.metric, doubt)
    if goal.population and goal.within is not None:
        value = 0.5 if units.judged is None else units.judged
        low, high = stream_interval(units.readable, value, value, (1 - goal.level) / 2)
        if (least := (high - low) / 2) > goal.within:
            raise UsageError(
                f"{len(units.readable)} records say what the stream's {goal.metric} is within "
                f"{least:.3f} at best, however much is read: label more records, ask for within "
                f"{math.ceil(100 * least) / 100:.2f} or more, or leave out population"
            )
    return Plan(goal, units, Readings({}, {}))


def _missing(item: Item) -> UsageError:
    return UsageError(
        f"no answer for {item!r:.120}: answer in the order of the plan; you may stop after any "
        "record, and leave out none; put the answers of several people into one file"
    )


def stream_interval(
    records: Sequence[LabelRecord], low: float, high: float, error: float
) -> tuple[float, float]:
    """Return the interval of the stream that the records were drawn from, by whole questions.

    The records have the metric; ``low`` and ``high`` are the ends of their own interval, and
    ``error`` is the chance that they lie farther from the stream. Values of 0 and 1 say least about
    it. If questions have several records, all count as large as the largest, or by their squares:
    their sizes alone choose, for a choice by the values would miss up to twice as often.

    Source: :mod:`labeler.calculators.intervals`; W. Hoeffding, Probability
    Inequalities for Sums of Bounded Random Variables, JASA 1963, theorem 2.
    """
    if not records:
        return 0.0, 1.0
    sizes = Counter(record.example.question for record in records).values()
    squares = sum(size**2 for size in sizes)
    count = len(records) // max(sizes)
    if len(records) ** 2 > _WORTH * squares * count:
        margin = math.sqrt(math.log(2 / error) / 2 * squares) / len(records)
        return max(0.0, low - margin), min(1.0, high + margin)
    return _lower_end(low, count, error), 1 - _lower_end(1 - high, count, error)


def _lower_end(mean: float, count: int, error: float) -> float:
    """Return the lower end of an interval by so many questions, all but one with 0 or 1."""
    ones, part = divmod(mean * count, 1)
    values = [1.0] * int(ones) + [part] + [0.0] * (count - int(ones) - 1)
    return BoundedMean.of(values[:count], None, 0.0, 1.0).ends(1 - error)[0]
