"""Plans: which sentences people read next, so that a metric can be certified.

A plan has no hidden state. It follows from the labels, the goal, the seed, and the answers of the
looks before: chances and stakes of a look are fixed before its answers are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from labeler.errors import UsageError
from labeler.evidence.betting import Design
from labeler.evidence.certificate import Certificate
from labeler.evidence.design import Looks
from labeler.evidence.goal import Goal
from labeler.evidence.stream import stream_interval
from labeler.evidence.units import COMPLETENESS, Answer, Answers, Item, Units, digest_of
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import Column, Display, Displayed, Grid, number

FEWEST_CHECKS = 50
"""Sentences that a certificate rests on at least, unless all are read."""
_SECOND = 10
"""One of so many sentences is read a second time."""


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


@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """The sentences to read next, and what is known so far.

    Attributes:
        goal: what is to be certified.
        units: the units of the metric.
        answers: people's answers of the looks before.
        second: second readings of them.
        looks: number of units that were read at each look before.
        who: names of the people.
    """

    issued: ClassVar[bool] = False
    """False for a plan, True for a certificate."""

    goal: Goal
    units: Units = field(repr=False)
    answers: Answers = field(default_factory=dict)
    second: Answers = field(default_factory=dict)
    looks: tuple[int, ...] = ()
    who: tuple[str, ...] = ()

    @cached_property
    def _state(self) -> _State:
        return _State(self)

    @cached_property
    def sentences(self) -> tuple[ToRead, ...]:
        """The sentences to read now, in the order to read them."""
        state = self._state
        return tuple(
            ToRead(*item, chance)
            for unit, chance in zip(state.drawn, state.chances, strict=True)
            for item in self.units.items(unit)
        )

    @cached_property
    def again(self) -> tuple[Item, ...]:
        """A tenth of :attr:`sentences`, which a person reads a second time."""
        items = [(one.id, one.sentence) for one in self.sentences]
        ranked = sorted(items, key=lambda item: digest_of([str(self.goal.seed), "again", *item]))
        return tuple(ranked[: -(-len(items) // _SECOND)])

    def first(self, units: int) -> list[Item]:
        """Return the sentences of the first units of :attr:`sentences`."""
        return [item for unit in self._state.drawn[:units] for item in self.units.items(unit)]

    @property
    def look(self) -> int:
        """Number of the look that :attr:`sentences` belong to, from 1."""
        return len(self.looks) + (not self._state.unfinished)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval so far; it holds at every look."""
        return self._state.interval

    @property
    def value(self) -> float:
        """The estimate so far; before the first look the middle of the interval."""
        return self._state.value

    @property
    def needed(self) -> int:
        """About how many more sentences must be read, those of this plan included."""
        return round(self._state.needed * self.units.sentences / len(self.units.units))

    def certificate(
        self, answers: Answers, *, second: Answers | None = None, who: str | Iterable[str] = ()
    ) -> Certificate | Plan:
        """Return the certificate that the answers allow, or the plan of the next look.

        Args:
            answers: yes or no by record id and sentence key, for the sentences of this plan, or
                for its first ones up to any: the next plan begins with the others. Those of
                earlier looks may be repeated. See :mod:`labeler.evidence.units` for what is asked.
            second: second readings of some of the sentences, best those of :attr:`again`.
            who: names of the people who answered.

        Returns:
            A certificate if the goal is met or everything is read; else the next plan.

        Raises:
            UsageError: an answer is about a sentence that was not drawn, changed, missing between
                others, or neither yes nor no.
        """
        given = self._checked(answers)
        added = self._answered(given)
        people = (who,) if isinstance(who, str) else tuple(who)
        again = {**self.second, **self._second(second or {}, given)}
        before = self.looks[: self.look - 1]
        following = replace(
            self,
            answers=given,
            second=again,
            looks=(*before, sum(self.looks[len(before) :]) + added),
            who=tuple(dict.fromkeys([*self.who, *filter(None, people)])),
        )
        found = following._issue()  # noqa: SLF001 - another plan's
        return found or following

    def _issue(self) -> Certificate | None:
        """Return the certificate if the answers so far allow one."""
        state, units, goal, answers = self._state, self.units, self.goal, self.answers
        enough = len(answers) >= FEWEST_CHECKS and goal.met(*state.interval)
        if not (state.complete or enough):
            return None
        signature = units.readable[0].signature
        read = [f"{name}\0{key}\0{answers[name, key]}" for name, key in sorted(answers)]
        design = [goal.metric, str(goal), str(goal.level), str(goal.seed), str(self.looks)]
        return Certificate(
            goal=goal,
            value=state.value,
            interval=state.interval,
            records_interval=state.records_interval,
            judged=units.judged,
            checked=len(answers),
            looks=self.looks,
            sentences=units.sentences,
            records=len(units.readable),
            failed=units.failed,
            who=self.who,
            second_read=len(self.second),
            second_agreed=sum(answers[item] == said for item, said in self.second.items()),
            signature=str(signature),
            digests={
                "labels": units.digest(),
                "prompt": None if signature.prompt is None else digest_of([str(signature.prompt)]),
                "plan": digest_of(design),
                "answers": digest_of(read),
            },
        )

    def _checked(self, answers: Answers) -> dict[Item, Answer]:
        """Return all answers so far."""
        allowed = {(one.id, one.sentence) for one in self.sentences} | self.answers.keys()
        found = dict(self.answers)
        for item, answer in answers.items():
            if item not in allowed:
                raise UsageError(
                    f"answer about {_shown(item)}, which the plan did not draw; answer only the "
                    "sentences of the plan, or the certificate would not hold"
                )
            known = self._known(item, answer)
            if found.setdefault(item, known) is not known:
                raise UsageError(
                    f"answer to {_shown(item)} was {found[item]} in an earlier look and is "
                    f"{known} now; later draws rest on it, so begin a new plan to change it"
                )
        return found

    def _known(self, item: Item, answer: Answer) -> Answer:
        if answer is None and self.goal.metric == COMPLETENESS:
            return None
        if answer not in (True, False):
            raise UsageError(f"answer to {_shown(item)} is {answer!r:.40}; it is True or False")
        return bool(answer)

    def _answered(self, answers: Answers) -> int:
        """Return how many units of this plan are answered; none is left out before another."""
        drawn = self._state.drawn
        complete = [self.units.answer(unit, answers) is not None for unit in drawn]
        count = complete.index(False) if False in complete else len(complete)
        known = self.answers.keys() | set(self.first(count))
        if not count or not answers.keys() <= known:
            first = next(item for item in self.units.items(drawn[count]) if item not in answers)
            raise UsageError(
                f"no answer for {_shown(first)}: answer the sentences in the order of the plan; "
                "you may stop after any record, and leave out none"
            )
        return count

    def _second(self, second: Answers, answers: Answers) -> dict[Item, Answer]:
        for item in second:
            if item not in answers:
                raise UsageError(f"second reading of {_shown(item)}, which has no first one")
        return {item: self._known(item, answer) for item, answer in second.items()}

    def _display(self) -> Display:
        goal = f"{self.goal.metric} {self.goal}"
        title = f"plan for {goal}: read {len(self.sentences)} sentences"
        low, high = self.interval
        so_far = f"so far {self.value:.3f}, {low:.3f} to {high:.3f} after {len(self.answers)}"
        notes = [f"not yet: about {self.needed} more", *([so_far] if self.looks else [])]
        notes.append("then plan.certificate({(id, sentence): True or False, ...})")
        columns = (Column("id", words=True), Column("sentence", words=True), Column("probability"))
        rows = [(one.id, one.sentence, number(one.probability, ".5f")) for one in self.sentences]
        return Display(title, Grid(columns, rows), notes)


def _shown(item: object) -> str:
    return f"{item!r:.120}"


class _State:
    """The population after the looks of a plan, and the draw of the next one."""

    def __init__(self, plan: Plan) -> None:
        units, goal = plan.units, plan.goal
        error = (1 - goal.level) / (2 if goal.population else 1)
        self.looks = looks = Looks(
            units.weights, units.forecasts / units.sizes, units.sizes, error=error
        )
        self.drawn: list[int] = []
        self.chances: list[float] = []
        for look, count in enumerate(plan.looks):
            design = self._draw(plan, look)
            drawn = np.array(self.drawn[:count])
            values = [units.answer(unit, plan.answers) or (0.0, 0.0) for unit in self.drawn[:count]]
            tops, bottoms = np.array(values).T
            looks.learn(drawn, design, tops, bottoms)
            self.drawn, self.chances = self.drawn[count:], self.chances[count:]
        # What was drawn is read before anything else is drawn: a sentence that a reader saw and
        # left out would be missing from the interval.
        self.unfinished = bool(self.drawn)
        self.complete = not looks.population.unread.any()
        self.needed = 0 if self.complete else self._next(plan)[2]
        if not (self.unfinished or self.complete):
            self._draw(plan, len(plan.looks))
        self.value = units.value(looks.value)
        low, high = sorted((units.value(looks.low), units.value(looks.high)))
        self.records_interval = self.interval = (low, high)
        if goal.population:
            self.interval = stream_interval(_defined(plan), low, high, error)

    def _next(self, plan: Plan) -> tuple[Design, int, int]:
        """Return the design of a look, how many units it reads, and about how many are needed."""
        units = plan.units
        margin = plan.goal.margin(units.value(self.looks.expected))
        design = self.looks.design(margin)
        return design, *self.looks.size(design, margin, units.sentences / len(units.units))

    def _draw(self, plan: Plan, look: int) -> Design:
        """Draw the units of a look, and return its design."""
        design, size, _ = self._next(plan)
        order = plan.units.order(plan.goal.seed, look)
        drawn, chances = self.looks.population.draw(design.scales, order, size)
        self.drawn, self.chances = drawn.tolist(), chances.tolist()
        return design


def _defined(plan: Plan) -> list[LabelRecord]:
    """Return the records that surely have the metric."""
    units = plan.units
    if units.metric != COMPLETENESS:
        return units.readable
    read = (units.answer(unit, plan.answers) for unit in range(len(units.units)))
    return [one for one, found in zip(units.readable, read, strict=True) if found and found[1]]


def make_plan(
    outcomes: Iterable[AnyOutcome], goal: Goal, doubts: Mapping[Item, float] | None = None
) -> Plan:
    """Return the first plan of a certificate.

    Args:
        outcomes: labels of one judge configuration.
        goal: what is to be certified.
        doubts: probabilities that stored verdicts are wrong; see
            :mod:`labeler.evidence.doubt`.

    Raises:
        UsageError: as for :class:`Units`, or the stream's interval can never be so narrow.
        UnknownName: the metric cannot be certified.
    """
    units = Units(outcomes, goal.metric, doubts)
    if goal.population and goal.within is not None:
        value = 0.5 if units.judged is None else units.judged
        low, high = stream_interval(units.readable, value, value, (1 - goal.level) / 2)
        if (high - low) / 2 > goal.within:
            raise UsageError(
                f"{len(units.readable)} records say what the stream's {goal.metric} is within "
                f"{(high - low) / 2:.3f} at best, however many sentences are read: label more "
                f"records, ask for within {(high - low) / 2:.2f} or more, or leave out population"
            )
    return Plan(goal, units)
