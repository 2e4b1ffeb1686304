"""Exams: which errors a judge sees, by kind, on copies of sentences that it called supported.

A copy is damaged, and the judge should call its sentence unsupported; or harmless, and the judge
should still call it supported; or its evidence is gone, and so should be the support. An exam finds
blind spots. It certifies nothing: real errors are other ones than planted ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from labeler.calculators.statistics.intervals import Interval, Undefined, wilson_ends
from labeler.calculators.statistics.paired import paired_interval
from labeler.data.options import keywords
from labeler.errors import UsageError
from labeler.evidence import damage
from labeler.evidence.asking import as_example, ask
from labeler.evidence.damage import Copy, Target, targets_of
from labeler.evidence.options import AskOptions, ExamOptions
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import TaskOptions
from labeler.labels.answers import judged_sentences
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import digest
from labeler.sentences.display import Column, Display, Displayed, Grid, in_percent, percent
from labeler.sentences.example import Example

if TYPE_CHECKING:
    from labeler.data.options import RowSource
    from labeler.data.rows import Rows

DAMAGED, HARMLESS, EVIDENCE = "damaged", "harmless", "evidence"


class Kind(NamedTuple):
    """One kind of copy.

    Attributes:
        group: damaged, harmless or evidence.
        name: its name in tables.
        says: what was done, in words.
        copy: makes the copy.
    """

    group: str
    name: str
    says: str
    copy: Copy

    @property
    def stays_supported(self) -> bool:
        """True if the sentence should still be called supported."""
        return self.group == HARMLESS


KINDS = (
    Kind(DAMAGED, "number", "a number is another one", damage.number),
    Kind(DAMAGED, "name", "a name is another one", damage.name),
    Kind(DAMAGED, "negation", "it says the contrary", damage.negation),
    Kind(DAMAGED, "swap", "a number or name from elsewhere in the documents", damage.swap),
    Kind(DAMAGED, "foreign", "a sentence of another answer", damage.foreign),
    Kind(DAMAGED, "invented", "a detail is added", damage.invented),
    Kind(EVIDENCE, "deletion", "the supporting sentences are removed", damage.without_evidence),
    Kind(HARMLESS, "again", "asked again, nothing changed", damage.unchanged),
    Kind(HARMLESS, "order", "documents in the reverse order", damage.reordered),
    Kind(HARMLESS, "citations", "the support is cited", damage.cited),
    Kind(HARMLESS, "padding", "two sentences without content are added", damage.padded),
)
AGAIN = "again"
"""The kind whose errors are the judge's own noise."""
ENOUGH = {DAMAGED: 0.8, EVIDENCE: 0.5}
"""Share of right verdicts below which a kind is a blind spot. Removed evidence may be elsewhere in
the documents in other words, so less is expected of it."""
_QUANTILE = 1.959963984540054
_SLIGHT = 30
"""Copies of a kind below which nothing is said about it."""


@dataclass(frozen=True)
class Rate:
    """How often a judge was right about one kind of copy.

    Attributes:
        kind: name of the kind.
        group: ``damaged``, ``harmless`` or ``evidence``.
        says: what was done, in words.
        right: copies with the right verdict.
        copies: copies that the judge labeled.
        failed: copies that got no label.
        is_blind_spot: True if the judge surely misses too much of it: of damaged copies more than
            a fifth, of removed evidence more than half, of harmless ones more than when it is
            asked the same again.
    """

    kind: str
    group: str
    says: str
    right: int
    copies: int
    failed: int
    is_blind_spot: bool = False

    @property
    def value(self) -> float | None:
        """Share of right verdicts; ``None`` without copies."""
        return self.right / self.copies if self.copies else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval of the share, 95 %; ``None`` without copies."""
        if not self.copies:
            return None
        return wilson_ends(self.right / self.copies, self.copies, _QUANTILE)

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        ends = self.interval
        return vars(self) | {"value": self.value, "interval": ends and list(ends)}


@dataclass(frozen=True, repr=False)
class Exam(Displayed):
    """A judge's table of blind spots.

    Attributes:
        judge: name of the judge.
        rates: one for each kind.
        against: the same of the other judge, on the same copies; empty without one.
        differences: by kind, how much more often the first judge is right, with the interval;
            empty without another judge.
        sentences: sentences that copies were made of.
    """

    judge: str
    rates: tuple[Rate, ...]
    sentences: int
    other: str = ""
    against: tuple[Rate, ...] = ()
    differences: tuple[tuple[float, Interval | Undefined] | None, ...] = ()

    def __getitem__(self, kind: str) -> Rate:
        """Return the rate of a kind.

        Raises:
            KeyError: there is no such kind.
        """
        return {one.kind: one for one in self.rates}[kind]

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """Names of the kinds that the judge surely misses too often."""
        return tuple(one.kind for one in self.rates if one.is_blind_spot)

    @property
    def sentence(self) -> str:
        """The conclusion, in one sentence."""
        caught = [one for one in self.rates if one.group == DAMAGED]
        right, copies = sum(one.right for one in caught), sum(one.copies for one in caught)
        if not copies:
            return f"{self.judge} called no sentence supported that an error could be planted in."
        some = any(one.copies >= _SLIGHT for one in caught)
        none = "none found" if some else f"too few copies to tell, {_SLIGHT} of a kind are needed"
        spots = ", ".join(self.blind_spots) or none
        return (
            f"{self.judge} caught {right} of {copies} planted errors ({percent(right / copies)}). "
            f"Blind spots: {spots}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        value: dict[str, Any] = {
            "judge": self.judge,
            "sentence": self.sentence,
            "blind_spots": list(self.blind_spots),
            "sentences": self.sentences,
            "rates": [one.as_json() for one in self.rates],
        }
        if self.other:
            value |= {"against": self.other, "against_rates": [o.as_json() for o in self.against]}
            value["differences"] = [
                one and {"value": one[0], "interval": _ends(one[1])} for one in self.differences
            ]
        return value

    def _display(self) -> Display:
        heads = [Column("kind", words=True), Column("of", drop=2), Column("right"), Column("95 %")]
        if self.other:
            heads += [Column("other"), Column("difference"), Column("95 %", drop=1)]
        heads.append(Column("what was done", words=True, drop=3))
        rows = []
        for place, one in enumerate(self.rates):
            mark = " *" if one.is_blind_spot else ""
            cells = [f"{one.kind}{mark}", str(one.copies), *_share(one)]
            if self.other:
                cells += [_share(self.against[place])[0], *_change(self.differences[place])]
            rows.append([*cells, one.says])
        notes = ["* blind spot", _LIMITS] if self.blind_spots else [_LIMITS]
        failed = sum(one.failed for one in self.rates)
        if failed:
            notes.append(f"{failed} copies got no label and are left out")
        return Display(self.sentence, Grid(heads, rows), notes)


_LIMITS = (
    "An exam finds blind spots; it does not measure how often the judge is wrong about real "
    "answers: labeler certify does."
)


def _share(rate: Rate) -> list[str]:
    ends = rate.interval
    if rate.value is None or ends is None:
        return ["-", "-"]
    return [percent(rate.value), _span(ends)]


def _change(found: tuple[float, Interval | Undefined] | None) -> list[str]:
    if found is None:
        return ["-", "-"]
    ends = _ends(found[1])
    return [percent(found[0], signed=True), _span(ends, signed=True) if ends else "-"]


def _span(ends: Sequence[float], *, signed: bool = False) -> str:
    low, high = (in_percent(end, signed=signed) for end in ends)
    return f"{low} to {high} %"


def _ends(interval: Interval | Undefined) -> list[float] | None:
    return None if isinstance(interval, Undefined) else [interval.low, interval.high]


def sample_rows(rows: Rows, n: int) -> list[Example]:
    """Return n rows, chosen by their content alone; rows are read once.

    Raises:
        UsageError: n is below 1, or no row can be read.
    """
    if n < 1:
        raise UsageError(f"an exam needs 1 row or more, got n={n}")
    found: dict[str, Example] = {}
    failed: list[str] = []
    for row in rows:
        if isinstance(row.content, LabelFailure):
            failed = failed or [f": {row.content.message}"]
        else:
            example = row.content
            texts = [example.question, example.documents, example.response]
            found.setdefault(digest(texts), example)
            if len(found) > 4 * n:  # no more in memory than may be chosen
                found = dict(heapq.nsmallest(n, found.items()))
    if not found:
        raise UsageError(
            "an exam needs rows with question, documents and response, and none could be read"
            + "".join(failed)
        )
    return [example for _, example in heapq.nsmallest(n, found.items())]


@keywords(ExamOptions)
def exam(rows: RowSource, options: ExamOptions) -> Exam:
    """Label rows, then copies of the sentences that the judge calls supported.

    Every answer is stored: the same exam costs nothing the second time.

    Args:
        rows: as for :func:`labeler.open_rows`; ``n`` of them are used.
        options: those of one judge in :func:`labeler.label`; ``n`` copies of each kind, as far as
            sentences allow it; ``against`` is another judge, compared on copies
            of the sentences that both call supported.

    Returns:
        How often the judge is right about each kind of copy, with 95 % intervals.

    Raises:
        UsageError: an option is wrong, or no row can be read.
        FatalJudgeError: no row can be labeled.

    Example:
        >>> found = labeler.exam("examples/rows.jsonl", judge="embedded", n=5)
        >>> found["foreign"].copies
        5
    """
    chosen = sample_rows(options.open(rows), options.n)
    shared = [one.name for kind in (AskOptions, TaskOptions) for one in fields(kind)]
    every = [{name: getattr(options, name) for name in (*shared, "splitter")}]
    if options.against is not None:
        every.append(every[0] | vars(JudgeOptions()) | {"judge": options.against})
    judged = [ask(chosen, one) for one in every]
    targets = list(_shared(judged))
    plan = _plan(targets, options.n)
    tables = [_verdicts(plan, one) for one in every]
    names, rates = [_name(one) for one in judged], [_rates(plan, one) for one in tables]
    if options.against is None:
        return Exam(names[0], rates[0], len(targets))
    differences = tuple(_difference(kind, plan, *tables) for kind in KINDS)
    return Exam(names[0], rates[0], len(targets), names[1], rates[1], differences)


def most_requests(n: int) -> int:
    """Return the most requests of an exam by one judge: rows, then copies of each kind."""
    return n * (1 + len(KINDS))


def _name(outcomes: Iterable[Outcome]) -> str:
    """Return the model that answered; the judge where there is no answer."""
    return next((one.signature.model for one in outcomes if isinstance(one, LabelRecord)), "judge")


def _shared(judged: Sequence[Sequence[Outcome]]) -> Iterator[Target]:
    """Yield the sentences that every judge calls supported: one a record first, then others."""
    by_record = []
    for outcomes in zip(*judged, strict=True):
        records = [one for one in outcomes if isinstance(one, LabelRecord)]
        if len(records) < len(outcomes):
            continue
        keys = [{one.key for one in targets_of(record)} for record in records]
        common = set.intersection(*keys)
        by_record.append([one for one in targets_of(records[0]) if one.key in common])
    for place in range(max(map(len, by_record), default=0)):
        yield from (each[place] for each in by_record if place < len(each))


_Planned = tuple[Kind, Target, Example]


def _plan(targets: Sequence[Target], n: int) -> list[_Planned]:
    """Return up to n copies of each kind."""
    plan: list[_Planned] = []
    for kind in KINDS:
        made = 0
        for target in targets:
            if made == n:
                break
            random = Random(f"{kind.name} {target.record.key} {target.key}")  # noqa: S311 - copies, no secrets
            copy = kind.copy(target, targets, random)
            if copy is not None:
                name = f"{target.record.id}#{target.key}#{kind.name}"
                plan.append((kind, target, as_example(copy, name)))
                made += 1
    return plan


def _verdicts(plan: Sequence[_Planned], options: dict[str, Any]) -> list[bool | None]:
    """Return for each copy whether its sentence is called supported; ``None`` without a label."""
    trial = int(options.get("trial", 0))
    again = [place for place, (kind, _, _) in enumerate(plan) if kind.name == AGAIN]
    once = [place for place, (kind, _, _) in enumerate(plan) if kind.name != AGAIN]
    found: list[bool | None] = [None] * len(plan)
    for places, asked in ((once, trial), (again, trial + 1)):
        outcomes = ask([plan[place][2] for place in places], options | {"trial": asked})
        for place, outcome in zip(places, outcomes, strict=True):
            if isinstance(outcome, LabelRecord):
                judged = judged_sentences(outcome.label).get(plan[place][1].key)
                found[place] = None if judged is None else bool(judged.fully_supported)
    return found


def _rates(plan: Sequence[_Planned], verdicts: Sequence[bool | None]) -> tuple[Rate, ...]:
    """Return one rate for each kind."""
    counted = []
    for kind in KINDS:
        own = [v for (one, _, _), v in zip(plan, verdicts, strict=True) if one is kind]
        given = [one for one in own if one is not None]
        right = sum(one == kind.stays_supported for one in given)
        counted.append(
            Rate(kind.name, kind.group, kind.says, right, len(given), len(own) - len(given))
        )
    again = next(one for one in counted if one.kind == AGAIN)
    return tuple(Rate(**vars(one) | {"is_blind_spot": _is_blind(one, again)}) for one in counted)


def _is_blind(rate: Rate, again: Rate) -> bool:
    """Return True if the rate is surely too low; see :attr:`Rate.is_blind_spot`."""
    own, noise = rate.interval, again.interval
    if own is None or rate.copies < _SLIGHT or noise is None:
        return False
    return own[1] < ENOUGH.get(rate.group, noise[0])


def _difference(
    kind: Kind, plan: Sequence[_Planned], ours: Sequence[bool | None], theirs: Sequence[bool | None]
) -> tuple[float, Interval | Undefined] | None:
    """Return how much more often the first judge is right about a kind, with the interval."""
    wanted = kind.stays_supported
    pairs = [
        float(a == wanted) - float(b == wanted)
        for (one, _, _), a, b in zip(plan, ours, theirs, strict=True)
        if one is kind and a is not None and b is not None
    ]
    return (sum(pairs) / len(pairs), paired_interval(pairs)) if pairs else None
