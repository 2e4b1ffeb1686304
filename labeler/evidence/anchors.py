"""Anchors: records that the same judge is asked about again, to see whether it has changed.

Their texts are frozen, so a change of the system under test cannot move them. If the judge has not
changed, its answers about one record are exchangeable: any order of them is as likely as the one
that was seen. The test takes a record's answers apart into earlier and later ones, and compares the
number of verdicts that differ between both parts with every other way to take them apart.
Counts of records add up; their exact distribution is a convolution. The judge's own noise needs no
estimate: it makes all ways equally likely. Verdicts of one record may depend on each other in any
way; records must not.

Records are chosen by their first answer, so an error of the judge has put some among them, and the
next answers would differ without a change. Where other verdicts would have left a record out, only
ways count whose first answer is of the kind that it was chosen for.

Look k gets 6 / (π k)² of the error rate, so any number of looks together raises a false alarm at
most that often. Each kind of verdict and each candidate date gets an equal share (Bonferroni).

Source: permutation tests under exchangeability, Lehmann and Romano, Testing Statistical
Hypotheses, 15.2; spending over looks, Lan and DeMets 1983.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveInt, ValidationError

from labeler.calculators.measuring import metrics
from labeler.calculators.rater_agreement import verdicts_of
from labeler.calculators.registry import headline_metrics, plain_name, select_metrics
from labeler.comparing.calibration import FIELDS
from labeler.data.label_files import outcome_of, replaced
from labeler.data.lines import read_lines, with_checksum
from labeler.errors import JudgeError, UsageError, count_of
from labeler.evidence import copies
from labeler.evidence.units import differing, of_one_judge
from labeler.judges.opening import open_judge
from labeler.judges.options import JudgeOptions
from labeler.judges.task import MODE_FACTS
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import CORRECTIONS, MAJORITY, Signature, shown, shows_reference
from labeler.sentences.display import Column, Display, Displayed, Grid, figure, plural, shortened
from labeler.sentences.example import Frozen

LEVEL = 0.05
"""Probability of a false alarm, over all looks together."""
_NEAR = 3
"""First and last answers of a record that are compared, of more; also the most looks back at which
the change is looked for, besides that after the very first answer."""
Verdicts: TypeAlias = Sequence[bool]
"""Verdicts of one kind in one answer about a record, in a fixed order."""
_FEWEST = 2
"""Records at least: one alone does not vary."""
_MAY_DIFFER = ("judge", "trial", "splitter")
"""Facts of a judge configuration in which a check may differ from its anchors."""


class Change(NamedTuple):
    """Result of one look at one kind of verdict.

    Attributes:
        changed: True if the judge has changed, at this look's share of the error rate.
        p_value: smallest probability of as many differences from an unchanged judge, times the
            number of candidate dates, at most 1.
        level: error rate that the p-value is held against.
        differing: verdicts of the last answers that differ from the first ones.
        verdicts: verdicts compared.
    """

    changed: bool
    p_value: float
    level: float
    differing: int
    verdicts: int


@dataclass(frozen=True, repr=False)
class AnchorCheck(Displayed):
    """Result of one check.

    Attributes:
        look: number of the check, from 1.
        changes: result for each kind of verdict; see :class:`Change`.
        noise: verdicts of any kind that differ between the two answers of the first check.
        failed: ids of the records that the judge gave no label this time.
        models: the models that were asked; one, unless another judge was asked this time.
        requests: requests of this check; ``None`` if it is read from its file.
    """

    look: int
    changes: dict[str, Change]
    noise: int
    failed: tuple[str, ...]
    models: tuple[str, ...] = ()
    requests: int | None = field(default=None, compare=False)

    @property
    def changed(self) -> bool:
        """True if the judge has changed; false in 5 % of all series of checks, at most."""
        return any(one.changed for one in self.changes.values())

    @property
    def sentence(self) -> str:
        """The conclusion, in one sentence."""
        moved = [
            f"{one.differing} of {one.verdicts} verdicts on {kind}"
            for kind, one in self.changes.items()
            if one.changed
        ]
        head = f"The judge has changed: {', '.join(moved)}"
        if not moved:
            differing = sum(one.differing for one in self.changes.values())
            verdicts = sum(one.verdicts for one in self.changes.values())
            head = f"No sign that the judge has changed (check {self.look}): "
            head += f"{differing} of {verdicts} verdicts"
        lost = f" {plural(len(self.failed), 'anchor')} got no answer." if self.failed else ""
        if self.requests == 0:  # perhaps the file is a copy from before a check
            lost += " Nothing was asked: the store had all answers."
        twice = f"asked twice at the start, it differed in {self.noise}"
        return f"{head} differ from its first answers; {twice}.{lost}"

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        changes = {kind: one._asdict() for kind, one in self.changes.items()}
        more = {"changed": self.changed, "sentence": self.sentence}
        return vars(self) | more | {"changes": changes}

    def _display(self) -> Display:
        heads = [Column("verdicts on", words=True), *map(Column, ("differ", "of", "changed"))]
        rows = [
            [kind, f"{one.differing}", f"{one.verdicts}", "yes" if one.changed else "no"]
            for kind, one in self.changes.items()
        ]
        notes = []
        if len(self.models) > 1:
            notes.append(f"several judges were asked: {', '.join(self.models)}")
        if self.failed:
            notes.append(f"no answer this time: {', '.join(map(shortened, self.failed[:5]))}")
        return Display(self.sentence, Grid(heads, rows), notes)


class _Header(Frozen):
    """First line of a file of anchors."""

    kind: Literal["anchors"]
    version: Literal[1]
    records: PositiveInt
    free: NonNegativeInt
    made: NonNegativeInt


@dataclass(repr=False, eq=False)
class Anchors(Displayed):
    """Records with all answers that the judge gave about them.

    Attributes:
        rounds: answers by round, each with one outcome a record in one order; the first round has
            the labels that the anchors were made of.
        free: number of records, the first ones, that would have been chosen with any verdicts.
        made: milliseconds since 1970 when they were chosen; trials count from it, so a round that
            was interrupted finds its stored answers, and no other run has them.
        path: file to keep them in; see :meth:`save`.
    """

    rounds: list[list[Outcome]]
    free: int
    made: int
    path: str | Path | None = None

    @property
    def records(self) -> list[LabelRecord]:
        """The records, with the answers that they were chosen by."""
        return cast("list[LabelRecord]", self.rounds[0])

    @property
    def looks(self) -> int:
        """Checks so far; the first one has two rounds."""
        return max(0, len(self.rounds) - 2)

    @property
    def due(self) -> int:
        """Rounds of the next check: two of the first one, later one."""
        return 2 if len(self.rounds) == 1 else 1

    def check(self, **options: Any) -> AnchorCheck:  # noqa: ANN401 - as for labeler.label
        """Ask the judge again, and compare with all its earlier answers.

        Args:
            options: as for :func:`labeler.label`, such as ``judge`` and ``store``.

        Returns:
            The result. The answers are kept, here and in the file if there is one.

        Raises:
            UsageError: an option is wrong, or prompt or sampling differ from the anchors.
            JudgeError: no record was labeled; that is not a check, and nothing is kept of it.
        """
        rows = [copies.as_example(one.example) for one in self.records]
        given = LabelOptions(**copies.asked_like(self.records[0]) | options)
        if given.are_voting:
            raise UsageError("a check asks one judge once a round: leave out judges and repeat")
        judge = open_judge(given)
        task = label_tasks(judge, given).task(rows[0])
        self._require_same(task.signature, unknown=MODE_FACTS)  # before anything is paid
        asked = vars(given) | vars(JudgeOptions()) | {"judge": judge}
        ask = copies.Asking(given.budget)
        for _ in range(self.due):
            found = ask(rows, asked | {"trial": self.made + len(self.rounds)})
            for one in _labels(found):
                self._require_same(one.signature)
            if not any(map(answers_of, found)):
                lost = [(one.message, one.reason) for one in found if isinstance(one, LabelFailure)]
                cause, reason = lost[0] if lost else ("its labels have gaps", "no_answer")
                none = f"the judge labeled none of {plural(len(found), 'anchor')}, so this is not"
                raise JudgeError(f"{none} counted as a check: {cause}", reason=reason)
            self.rounds.append(found)
            if self.path is not None:
                self.save(self.path)
        return replace(self.result(), requests=ask.requests)

    def _require_same(self, asked: Signature, *, unknown: Iterable[str] = ()) -> None:
        """Require that nothing but the judge can have changed, as far as it is known."""
        free, own = {*_MAY_DIFFER, *unknown}, self.records[0].signature
        apart = [one for one in differing(own, asked) if one.partition(":")[0] not in free]
        if apart:
            known = str(own).split("|")
            then = ", ".join(one for one in apart if one in known) or "nothing"
            now = ", ".join(one for one in apart if one not in known) or "nothing"
            both = f"{then} then, {now} now; give the same ones"
            raise UsageError(f"the judge's options differ from the anchors': {both}")

    def result(self) -> AnchorCheck:
        """Return the result of the last check; nothing is asked.

        Raises:
            UsageError: nothing was asked yet.
        """
        if not self.looks:
            raise UsageError(
                "these anchors were never checked: run labeler anchors check, or call check()"
            )
        asked = list(zip(*self.rounds, strict=True))
        may_be_first = [
            [place < self.free or _kind_of(one) == _kind_of(own[0]) for one in own]
            for place, own in enumerate(asked)
        ]
        # Records of one question may rest on one request for relevance: it counts once.
        shared = [one.retrieval.key if one.retrieval else one.id for one in self.records]
        level, changes, noise = look_level(self.looks) / len(FIELDS), {}, 0
        answers = [[*map(answers_of, own)] for own in asked]
        for kind in FIELDS:
            all_count = kind != "relevance"
            chosen = [n for n, key in enumerate(shared) if all_count or shared.index(key) == n]
            verdicts = [[one[kind] if one else None for one in answers[place]] for place in chosen]
            changes[kind] = find_change(verdicts, level, [may_be_first[place] for place in chosen])
            noise += find_change([one[1:3] for one in verdicts], level).differing
        failed = tuple(one.id for one in self.rounds[-1] if not isinstance(one, LabelRecord))
        models = dict.fromkeys(one.signature.model for one in _labels(*self.rounds))
        return AnchorCheck(self.looks, changes, noise, failed, tuple(models))

    def shifts(self, ids: str | Iterable[str]) -> dict[str, copies.Difference]:
        """Return what the judge's change alone does to means of metrics, with intervals.

        Returns:
            Mean differences of the last answers from the first ones, over the :attr:`free` records;
            none before a check, and none for a metric with fewer than 2 values in both.

        Raises:
            UnknownName: there is no such metric.
        """
        names = [one.id for one in select_metrics(ids)]
        if not self.looks:
            return {}
        rounds = (metrics(own[: self.free], names) for own in (self.rounds[-1], self.records))
        rows = list(zip(*rounds, strict=True))
        pairs = {name: [(a[name].value, b[name].value) for a, b in rows] for name in names}
        found = {name: copies.paired_difference(own) for name, own in pairs.items()}
        return {name: one for name, one in found.items() if one}

    def explained(self, ids: str | Iterable[str] | None = None) -> str:
        """Return, in words, what the judge alone does to metrics, for next to a comparison.

        The ids come from a comparison; by default they are the metrics to show first.
        """
        chosen, moved = select_metrics(ids), []
        shifts = self.shifts([one.id for one in chosen])
        measured = [one for one in chosen if one.id in shifts]
        for metric in headline_metrics(measured) if ids is None else measured:
            found = shifts[metric.id]
            ends = (figure(one, signed=True) for one in (found.value, *found.interval))
            moved.append("{} by {} ({} to {})".format(plain_name(metric), *ends))
        effect = f"On {self.free} anchors the judge alone moved {', '.join(moved)}."
        return f"{self.result().sentence} {effect if moved else 'They measure no effect on these.'}"

    def require_judge(self, signatures: Iterable[str]) -> None:
        """Require that one of some printed signatures is of a judge that was asked about these."""
        own = {str(one.signature).partition("|")[0] for one in _labels(*self.rounds)}
        given = {one.partition("|")[0] for one in signatures}
        if own.isdisjoint(given):
            raise UsageError(
                f"the anchors are of {', '.join(sorted(own))}, and the compared labels of "
                f"{', '.join(sorted(given))}: make anchors of these labels"
            )

    def save(self, path: str | Path) -> None:
        """Write the anchors to a file of JSON Lines, which later checks keep up to date.

        Raises:
            UsageError: the file cannot be written.
        """
        self.path = path
        facts = {"records": len(self.records), "free": self.free, "made": self.made}
        header = _Header(kind="anchors", version=1, **facts).model_dump_json()
        texts = (one.model_dump_json().encode() for one in chain(*self.rounds))
        with replaced(Path(path)) as file:
            lines = (with_checksum(text).decode() for text in texts)
            file.writelines(f"{line}\n" for line in (header, *lines))

    @classmethod
    def load(cls, path: str | Path) -> Anchors:
        """Read anchors that :meth:`save` wrote.

        Raises:
            UsageError: the file holds no anchors, or a line was damaged.
        """
        lines = read_lines(path)
        try:
            header = _Header.model_validate_json(next(lines).content)
        except (StopIteration, ValidationError) as error:
            make = "make some by 'labeler anchors make LABELS'"
            raise UsageError(f"{path} holds no anchors: {make}") from error
        size, outcomes = header.records, [cast("Outcome", outcome_of(line)) for line in lines]
        rounds = [outcomes[at : at + size] for at in range(0, len(outcomes), size)]
        if not rounds or len(rounds[-1]) != size:
            found = f"{len(outcomes)} answers about {size} records"
            raise UsageError(f"{path}: {found}: lines are lost")
        for own in zip(*rounds, strict=True):
            texts = [shown(one.example, reference=True) for one in _labels(own)]
            is_label, ids = isinstance(own[0], LabelRecord), {one.id for one in own}
            if not is_label or len(ids) > 1 or texts.count(texts[0]) < len(texts):
                raise UsageError(
                    f"{path}: the answers about {own[0].id!r} are not all about one text: lines "
                    "were moved or replaced; restore the file, or make anchors again"
                )
        return cls(rounds, header.free, header.made, path)

    def _display(self) -> Display:
        size, checks = len(self.records), plural(self.looks, "check")
        return Display(f"{size} anchors, {checks}: check(judge=…) asks the same judge again")


def choose_anchors(outcomes: Iterable[AnyOutcome], n: int = 80) -> Anchors:
    """Choose records to ask about again, equally many of each kind as far as there are so many.

    Kinds are supported and not entirely supported responses, each with and without a doubtful
    probability of support. Labels with gaps are left out; records that a judge cannot
    distinguish count once. The choice does not depend on the order of the records.
    """
    count_of("n", n, least=_FEWEST)
    kinds = defaultdict[Any, copies.Sample[LabelRecord]](partial(copies.Sample, n))
    for one in of_one_judge(outcomes):
        if answers_of(one) is not None:
            seen = shown(one.example, reference=shows_reference(one.signature))
            kinds[_kind_of(one)].add(seen, one)
    turns = copies.in_turn(kinds[kind].least() for kind in sorted(kinds))
    least = min((key for key, _ in turns[n:]), default="none")  # after any digest
    chosen = [one for _, one in sorted(turns[:n], key=lambda one: one[0] >= least)]
    if len(chosen) < _FEWEST:
        raise UsageError("anchors need 2 complete labels or more: label rows first")
    signature = chosen[0].signature
    facts = signature.thresholds, signature.prompt is None, signature.judge == MAJORITY
    if any(facts) or CORRECTIONS in signature.sampling:
        raise UsageError(
            "no judge can be asked for these labels again: people corrected them, votes or moved "
            "thresholds made them, or they were imported; give the labels as a judge made them"
        )
    free = sum(key < least for key, _ in turns[:n])
    return Anchors([[*chosen]], free, time.time_ns() // 1_000_000)


def _labels(*rounds: Iterable[Outcome]) -> list[LabelRecord]:
    return [one for one in chain(*rounds) if isinstance(one, LabelRecord)]


def answers_of(outcome: Outcome) -> dict[str, Verdicts] | None:
    """Return the verdicts of a label by kind; ``None`` for a failure or a label with gaps."""
    found = verdicts_of(outcome) if isinstance(outcome, LabelRecord) else {"supported": ()}
    if None in found["supported"] or not found["supported"]:
        return None
    return {kind: [bool(one) for one in found[field]] for kind, field in FIELDS.items()}


def _kind_of(outcome: Outcome) -> tuple[bool, bool] | None:
    """Return whether everything is supported, and whether a probability of support is doubtful."""
    if not isinstance(outcome, LabelRecord):
        return None
    low, high = 0.2, 0.8
    stated = outcome.scores.support.values() if outcome.scores else ()
    return outcome.label.overall_supported, any(low < one < high for one in stated)


def look_level(look: int) -> float:
    """Return the share of :data:`LEVEL` that look 1, 2 … gets; all looks get all of it."""
    return LEVEL * 6 / (math.pi * look) ** 2


def find_change(
    records: Sequence[Sequence[Verdicts | None]],
    level: float,
    firsts: Sequence[Sequence[bool]] | None = None,
) -> Change:
    """Test whether the last answers come from another judge than the first ones.

    Args:
        records: for each record an entry for each round in order of time: the verdicts of that
            answer on the same sentences, or ``None`` if the judge gave none.
        level: error rate of this test.
        firsts: whether the record would be here if that answer had been the first one; by default
            with all of them.

    Returns:
        The result; no change where there are fewer than 2 rounds or no verdicts.
    """
    kept = [*map(_ends, records)]
    may_be_first = [*map(_ends, firsts)] if firsts else [[True] * len(one) for one in kept]
    rounds = min(map(len, kept), default=0)
    dates = {1, *range(max(1, rounds - _NEAR), rounds)} if rounds > 1 else set()
    p_value = min([1.0, *(len(dates) * _p_value(kept, may_be_first, date) for date in dates)])
    ends = [(one[0], one[-1]) for one in kept if rounds > 1]
    pairs = [pair for a, b in ends if a and b for pair in zip(a, b, strict=True)]
    return Change(p_value <= level, p_value, level, sum(a != b for a, b in pairs), len(pairs))


def _ends(answers: Sequence[Any]) -> Sequence[Any]:
    """Return the compared answers: a fixed choice by place keeps them exchangeable."""
    return answers if len(answers) <= 2 * _NEAR else [*answers[:_NEAR], *answers[-_NEAR:]]


def _p_value(
    records: Sequence[Sequence[Verdicts | None]], firsts: Sequence[Sequence[bool]], date: int
) -> float:
    """Return the probability of as many differences between answers before a round and later."""
    total, distribution = 0, np.ones(1)
    for answers, may_be_first in zip(records, firsts, strict=True):
        given = [place for place, one in enumerate(answers) if one is not None]
        earlier = sum(place < date for place in given)
        if 0 < earlier < len(given):
            verdicts = np.array([answers[place] for place in given], dtype=bool)
            apart = (verdicts[:, None] != verdicts[None]).sum(axis=2)
            ways = _ways(len(given), earlier)
            counts = ((ways @ apart) * (1 - ways)).sum(axis=1)
            excess = counts - counts.min()
            orders = ways @ np.array([may_be_first[place] for place in given])
            total += int(excess[0])
            distribution = np.convolve(distribution, np.bincount(excess, orders) / orders.sum())
    return float(distribution[total:].sum())


@lru_cache
def _ways(answers: int, earlier: int) -> NDArray[np.int_]:
    """Return the ways to take answers apart, the order of time first: 1 for the earlier part."""
    chosen = combinations(range(answers), earlier)
    return np.array([[place in one for place in range(answers)] for one in chosen], dtype=int)
