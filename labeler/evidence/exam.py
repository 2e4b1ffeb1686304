"""Exams: which errors a judge sees, by kind, on copies of sentences that it called supported.

A copy is damaged, and the judge should call its sentence unsupported; or harmless, and the judge
should still call it supported; or its evidence is gone, and so should be the support. An exam finds
blind spots. It certifies nothing: real errors are other ones than planted ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice, zip_longest
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from labeler.calculators.significance import wilson_ends
from labeler.data.options import keywords
from labeler.errors import FatalJudgeError, UsageError
from labeler.evidence import copies
from labeler.evidence.copies import AGAIN, DAMAGED, EVIDENCE, HARMLESS, KINDS, Difference, Kind
from labeler.judges.opening import open_judge
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import AskOptions, ExamOptions, TaskOptions
from labeler.labels.answers import judged_sentences
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.sentences.display import Column, Display, Displayed, Grid, in_percent, percent
from labeler.sentences.example import Example

if TYPE_CHECKING:
    from labeler.data.options import RowSource

_ENOUGH = {DAMAGED: 0.8, EVIDENCE: 0.5}
"""Share of right verdicts below which a kind is a blind spot; other texts may be evidence too."""
_QUANTILE = 1.959963984540054
_SLIGHT = 30
"""Copies of a kind below which nothing is said about it."""
_LIMITS = (
    "An exam finds blind spots; it does not measure how often the judge is wrong about real "
    "answers: labeler certify does."
)


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
        value: share of right verdicts; ``None`` without copies.
        interval: Wilson's interval of the share, 95 %; ``None`` without copies.
        is_blind_spot: True if the judge surely misses more than a fifth of damaged copies, half of
            removed evidence, or, of harmless ones, more than when it is asked the same again.
    """

    kind: str
    group: str
    says: str
    right: int
    copies: int
    failed: int
    value: float | None
    interval: tuple[float, float] | None
    is_blind_spot: bool = False


@dataclass(frozen=True, repr=False)
class Exam(Displayed):
    """A judge's table of blind spots.

    Attributes:
        judge: name of the judge.
        sentences: sentences that copies were made of.
        rates: one for each kind.
        against: name of the other judge; empty without one.
        against_rates: its rates, on the same copies.
        differences: how much more often the first judge is right, for each kind; ``None`` for
            fewer than 2 copies that both labeled.
        why: message of the first row or copy without a label; empty if all have one.
    """

    judge: str
    sentences: int
    rates: tuple[Rate, ...]
    against: str = ""
    against_rates: tuple[Rate, ...] = ()
    differences: tuple[Difference | None, ...] = ()
    why: str = ""

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
        right, made = sum(one.right for one in caught), sum(one.copies for one in caught)
        if not made:
            return f"{self.judge} called no sentence supported that an error could be planted in."
        few = [one.kind for one in self.rates if one.copies < _SLIGHT]
        spots, untold = ", ".join(self.blind_spots) or "none found", ""
        if len(few) == len(self.rates):
            spots = f"unknown, as {_SLIGHT} copies of a kind are needed to tell"
        elif few:
            untold = f" Too few copies to tell, {_SLIGHT} are needed: {', '.join(few)}."
        return (
            f"{self.judge} caught {right} of {made} planted errors ({percent(right / made)}). "
            f"Blind spots: {spots}.{untold}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the published form; facts of another judge are there if one was asked."""
        own = {name: value for name, value in asdict(self).items() if value not in ("", ())}
        return own | {"sentence": self.sentence, "blind_spots": list(self.blind_spots)}

    def _display(self) -> Display:
        heads = [Column("kind", words=True), Column("of", drop=2), Column("right"), Column("95 %")]
        if self.against:
            heads += [Column("other"), Column("difference"), Column("95 %", drop=1)]
        rows = []
        for one, theirs, change in zip_longest(self.rates, self.against_rates, self.differences):
            cells = [one.kind + " *" * one.is_blind_spot, f"{one.copies}", *_cells(one)]
            if self.against:
                cells += [_cells(theirs)[0], *_cells(change, signed=True)]
            rows.append([*cells, one.says])
        notes = ["* blind spot", _LIMITS] if self.blind_spots else [_LIMITS]
        if failed := sum(one.failed for one in self.rates):
            notes.append(f"{failed} copies got no label and are left out: {self.why}")
        columns = [*heads, Column("what was done", words=True, drop=3)]
        return Display(self.sentence, Grid(columns, rows), notes)


def _cells(found: Rate | Difference | None, *, signed: bool = False) -> list[str]:
    """Return a share and its interval as cells."""
    if found is None or found.value is None or found.interval is None:
        return ["-", "-"]
    low, high = (in_percent(end, signed=signed) for end in found.interval)
    return [percent(found.value, signed=signed), f"{low} to {high} %"]


def _sample(rows: RowSource, options: ExamOptions) -> list[Example]:
    """Return the rows of an exam, chosen by their content alone; rows are read once."""
    sample, failed = copies.Sample[Example](options.n), ""
    for row in options.open(rows):
        one = row.content
        if isinstance(one, LabelFailure):
            failed = failed or f": {one.message}"
        else:
            sample.add([one.question, one.documents, one.response], one)
    if chosen := sample.least():
        return [one for _, one in chosen]
    raise UsageError(
        "an exam needs rows with question, documents and response, and none could be read"
        f"{failed or ': there is no row'}"
    )


@keywords(ExamOptions)
def exam(rows: RowSource, options: ExamOptions) -> Exam:
    """Label rows, then copies of the sentences that the judge calls supported.

    Every answer is stored: the same exam costs nothing the second time. Answers about copies are in
    a folder of their own inside the store, and count as labels of no row.

    Args:
        rows: as for :func:`labeler.open_rows`; ``n`` of them are used.
        options: as for one judge in :func:`labeler.label`; ``n`` copies of each kind, as far as
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
    chosen = _sample(rows, options)
    shared = [one.name for kind in (AskOptions, TaskOptions) for one in fields(kind)]
    every = [{name: getattr(options, name) for name in (*shared, "splitter")}]
    if options.against is not None:
        against = open_judge(JudgeOptions(judge=options.against))  # before the first one is paid
        every.append(every[0] | vars(JudgeOptions()) | {"judge": against})
    ask = copies.Asking(options.budget)
    judged = [ask(chosen, one, are_copies=False) for one in every]
    names = [_model_of(one) for one in judged]
    targets = _targets(judged)
    asked = [one for kind in KINDS for one in islice(_copies(kind, targets), options.n)]
    verdicts = [_verdicts(ask, asked, one) for one in every]
    found = Exam(names[0], len(targets), _rates(verdicts[0]), why=ask.why)
    if options.against is None:
        return found
    pairs = [zip(*(one[kind] for one in verdicts), strict=True) for kind in KINDS]
    differences = tuple(map(copies.paired_difference, pairs))
    rates = _rates(verdicts[1])
    return replace(found, against=names[1], against_rates=rates, differences=differences)


def _model_of(outcomes: Iterable[Outcome]) -> str:
    """Return the model that answered, and reject outcomes without a label."""
    message = reason = ""
    for one in outcomes:
        if isinstance(one, LabelRecord):
            return one.signature.model
        message, reason = one.message, one.reason
    raise FatalJudgeError(f"no row of the exam got a label: {message}", reason=reason)


def _targets(judged: Sequence[Sequence[Outcome]]) -> list[copies.Target]:
    """Return the sentences that every judge calls supported: one a record first, then others."""
    by_record = []
    for outcomes in zip(*judged, strict=True):
        labels = [one for one in outcomes if isinstance(one, LabelRecord)]
        found = [{each.key: each for each in copies.targets_of(one)} for one in labels]
        if len(found) == len(judged):
            common = found[0].keys() & found[-1].keys()
            by_record.append([one for key, one in found[0].items() if key in common])
    return copies.in_turn(by_record)


class _Copy(NamedTuple):
    """A copy that a judge is asked about, and the key of the sentence that it was made of."""

    kind: Kind
    key: str
    example: Example


_Verdicts: TypeAlias = dict[Kind, list[bool | None]]
"""By kind, whether the judge is right about each copy; ``None`` without a label."""


def _copies(kind: Kind, targets: Sequence[copies.Target]) -> Iterator[_Copy]:
    for one in targets:
        random = Random(f"{kind.name} {one.record.key} {one.key}")  # noqa: S311 - no secrets
        if copy := kind.copy(one, targets, random):
            name = f"{one.record.id}#{one.key}#{kind.name}"
            yield _Copy(kind, one.key, copies.as_example(copy, name))


def _verdicts(ask: copies.Asking, every: Sequence[_Copy], options: dict[str, Any]) -> _Verdicts:
    """Ask about all copies; about unchanged ones again, under another trial."""
    found: _Verdicts = {kind: [] for kind in KINDS}
    for again in (False, True):
        asked = [one for one in every if (one.kind.name == AGAIN) == again]
        trial = {"trial": int(options["trial"]) + again}
        outcomes = ask([one.example for one in asked], options | trial)
        for (kind, key, _), outcome in zip(asked, outcomes, strict=True):
            judged = judged_sentences(outcome.label) if isinstance(outcome, LabelRecord) else {}
            expected = kind.group == HARMLESS
            found[kind].append(judged[key].fully_supported == expected if key in judged else None)
    return found


def _rates(verdicts: _Verdicts) -> tuple[Rate, ...]:
    found, steady = [], 0.0
    for kind, own in verdicts.items():
        right, failed = own.count(True), own.count(None)
        made = len(own) - failed
        ends = wilson_ends(right / made, made, _QUANTILE) if made else None
        found.append(Rate(*kind[:3], right, made, failed, right / made if made else None, ends))
        if ends and kind.name == AGAIN:
            steady = ends[0]
    return tuple(
        replace(one, is_blind_spot=one.interval[1] < _ENOUGH.get(one.group, steady))
        if one.interval and one.copies >= _SLIGHT
        else one
        for one in found
    )
