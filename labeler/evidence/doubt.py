"""Doubt: the probability that a stored verdict on a response sentence is wrong.

A logistic model over facts of the label: the judge's own probability, audit findings, a second
opinion, length, and words that the sentence shares with its evidence. Priors are fixed. Without
corrections it orders verdicts by what the audit found; corrections move it, few of them a little.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from annotated_types import Len
from pydantic import FiniteFloat, NonNegativeInt, ValidationError

from labeler.audit import Audit, Finding, SecondJudge, Severity, Subject, examine
from labeler.comparing.human_labels import judgments_in, majorities
from labeler.data.label_files import replaced
from labeler.data.lines import file_errors
from labeler.errors import UsageError, path_in
from labeler.evidence.looks import Floats, fit_logistic, sigmoid
from labeler.evidence.units import Item, checked_answers, of_one_judge, stated_probabilities
from labeler.labels.answers import SPECIAL_SUPPORT, judged_sentences
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import Column, Display, Displayed, Grid, plural, shortened
from labeler.sentences.example import Frozen
from labeler.sentences.words import read_table

_FEW = 30
"""Corrections from which the model is worth more than its priors."""
_LIKELY = 0.5
"""Least doubt of a verdict that looks suspicious."""
_SHOWN = 20
"""Verdicts in the table."""
_LEAST = 1 / (1 + math.exp(7))
"""Least stated probability that counts: its log odds are -7."""
SEEN = 0.25
"""What facts of the text count next to a stated probability, whose judge has seen them."""
PRIORS: Mapping[str, Sequence[float]] = read_table(__file__, "priors")["priors"]
"""Facts of a verdict, with mean and standard deviation of the prior of each one's coefficient."""
MEANS, DEVIATIONS = np.array([*PRIORS.values()]).T
Coefficients: TypeAlias = Annotated[tuple[FiniteFloat, ...], Len(len(PRIORS), len(PRIORS))]


class _Stored(Frozen):
    """A model in a file."""

    version: Literal["doubt/v1"]
    corrections: NonNegativeInt
    coefficients: dict[str, FiniteFloat]


class Verdict(NamedTuple):
    """A stored verdict and its doubt.

    Attributes:
        id: the record's id.
        sentence: key of the response sentence.
        supported: the verdict.
        doubt: probability that it is wrong.
    """

    id: str
    sentence: str
    supported: bool
    doubt: float

    @property
    def said(self) -> str:
        """The verdict in words."""
        return "supported" if self.supported else "not supported"


@dataclass(frozen=True, repr=False)
class Doubt(Displayed):
    """A fitted model, and the doubt of each verdict of some labels.

    Attributes:
        coefficients: one for each of :data:`PRIORS`.
        corrections: number of verdicts that people confirmed or corrected.
        verdicts: the doubted verdicts, in the order of the labels.
    """

    coefficients: Coefficients
    corrections: int = 0
    verdicts: tuple[Verdict, ...] = ()

    def by_record(self) -> dict[str, float]:
        """Return the probability that a verdict of a record is wrong, by record id."""
        right: dict[str, float] = {}
        for one in self.verdicts:
            right[one.id] = right.get(one.id, 1.0) * (1 - one.doubt)
        return {name: round(1 - chance, 6) for name, chance in right.items()}

    def ranks(self, found: Audit) -> Audit:
        """Return an audit that finds each verdict's doubt, and ranks all records by theirs."""
        doubts, findings = self.by_record(), defaultdict[str, list[Finding]](list)
        for one in self.verdicts:
            severity: Severity = "suspicion" if one.doubt >= _LIKELY else "note"
            message = f"the verdict '{one.said}' has the doubt {one.doubt:.2f}"
            findings[one.id].append(Finding("doubt", severity, message, (one.sentence,), one.doubt))
        records = []
        for record in found.records:
            own = (*record.findings, *findings[record.id])
            records.append(replace(record, suspicion=doubts.get(record.id, 0.0), findings=own))
        return replace(found, records=tuple(records))

    def of(self, outcomes: Iterable[AnyOutcome]) -> Doubt:
        """Return the model with the doubts of other labels.

        Raises:
            UsageError: the labels are of several judge configurations, or there is none.
        """
        return self._of([fact for one in _labels(outcomes) for fact in facts_of(one)])

    def _of(self, facts: list[Facts]) -> Doubt:
        doubts = sigmoid(_values(facts) @ np.array(self.coefficients)).tolist()
        both = zip(facts, doubts, strict=True)
        verdicts = tuple(Verdict(*one.item, one.supported, round(doubt, 6)) for one, doubt in both)
        return replace(self, verdicts=verdicts)

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON, without texts and doubts.

        Raises:
            UsageError: the file cannot be written.
        """
        named = dict(zip(PRIORS, self.coefficients, strict=True))
        facts = _Stored(version="doubt/v1", corrections=self.corrections, coefficients=named)
        with replaced(Path(path)) as file:
            file.write(facts.model_dump_json(indent=2) + "\n")
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model.

        Raises:
            UsageError: the file cannot be read, or is not a model of this version.
        """
        with file_errors(str(path)):
            text = path_in("doubt", path).read_bytes()
        try:
            facts = _Stored.model_validate_json(text)
            return cls(tuple(facts.coefficients[name] for name in PRIORS), facts.corrections)
        except (ValidationError, KeyError) as error:
            raise UsageError(
                f"{path}: not a model that this version's 'labeler doubt -o' wrote; fit it again"
            ) from error

    def _display(self) -> Display:
        count, checked = plural(len(self.verdicts), "verdict"), plural(self.corrections, "verdict")
        if not self.verdicts:
            return Display(f"A model from {checked} that people checked; it has no labels to doubt")
        ranked = sorted(self.verdicts, key=lambda one: -one.doubt)
        title = (
            f"Check {shortened(ranked[0].id)}, sentence {ranked[0].sentence}, first: of {count} "
            f"none looks more likely to be wrong; people have checked {self.corrections or 'none'}."
        )
        notes = [f"doubt is an order to read in until people have checked {_FEW} verdicts"]
        if self.corrections >= _FEW:
            wrong = f"About {sum(one.doubt for one in ranked):.0f} of {count} are wrong"
            title = f"{wrong}, judging by {self.corrections:,} that people checked."
            notes = ["so many are wrong if those that people checked were drawn at random"]
        heads = [Column("id", words=True), Column("sentence", words=True)]
        heads += [Column("verdict", drop=1, words=True), Column("doubt")]
        first = ranked[:_SHOWN]
        rows = [(shortened(one.id), one.sentence, one.said, f"{one.doubt:.3f}") for one in first]
        if len(ranked) > _SHOWN:
            notes.append(f"{len(ranked) - _SHOWN:,} more verdicts: --rows, or verdicts in Python")
        return Display(title, Grid(heads, rows), notes)


def fit_doubt(
    outcomes: Iterable[AnyOutcome],
    corrections: str | Path | Mapping[Item, bool] | None = None,
    second_opinion: SecondJudge | None = None,
) -> Doubt:
    """Fit the model to what people said, and doubt all verdicts; see :meth:`Labels.doubt`.

    Of several people the majority counts, and ties do not. The second opinion returns another
    judge's opinion of a label.
    """
    records, place = _labels(outcomes), ""
    if isinstance(corrections, str | Path):
        place = f"{corrections}: "
        corrections = majorities(judgments_in(corrections, records), "supported")
    said = checked_answers("correction", corrections or {})
    keys = {one.id: {*one.example.response_keys()} for one in records}
    for item in said:  # corrections of other labels are left out
        match item:
            case (str(name), str(key)) if key in keys.get(name, {key}):
                continue
        raise UsageError(
            f"correction {item!r:.120} is not about a response sentence; name record and sentence, "
            "such as ('r1', 'a'): labeler show prints the keys"
        )
    facts = [fact for one in records for fact in facts_of(one, second_opinion)]
    judged = [one for one in facts if one.item in said]
    if corrections is not None and not judged:
        strange = f" (they name {next(iter(said))!r:.120}: keep ids as text)" if said else ""
        raise UsageError(
            f"{place}no correction is about a response sentence of these labels{strange}; judge "
            "some first, with 'labeler review'"
        )
    wrong = np.array([float(one.supported != said[one.item]) for one in judged])
    fitted = fit_logistic(_values(judged), wrong, MEANS, DEVIATIONS)
    return Doubt(tuple(map(float, fitted)), len(judged))._of(facts)  # noqa: SLF001 - of this module


def _labels(outcomes: Iterable[AnyOutcome]) -> list[LabelRecord]:
    """Return the labels; one judge configuration made them, as doubts are by id and sentence."""
    if records := list(of_one_judge(outcomes)):
        return records
    raise UsageError("no label to doubt; label rows first")


def _values(facts: list[Facts]) -> Floats:
    return np.array([one.values for one in facts]).reshape(-1, len(PRIORS))


class Facts(NamedTuple):
    """The facts of a verdict, one value for each of :data:`PRIORS`."""

    item: Item
    supported: bool
    values: tuple[float, ...]


def facts_of(record: LabelRecord, second_opinion: SecondJudge | None = None) -> Iterator[Facts]:
    """Yield the facts of each verdict on a response sentence."""
    subject = Subject(record, second_opinion(record) if second_opinion else None)
    findings, suspicion = examine(record)
    named = {key for finding in findings for key in finding.keys}
    probabilities = stated_probabilities(record, "support")
    for key, entry in judged_sentences(record.label).items():
        words, stated = subject.words(key), probabilities.get(key)
        inside = min(max(0.5 if stated is None else stated, _LEAST), 1 - _LEAST)
        side = 1.0 if entry.fully_supported else -1.0
        evidence = {word for one in subject.named(entry) for word in subject.words(one)}
        facts = (
            suspicion,
            float(key in named),
            subject.disagreements.get(key, 0.0) ** 2,
            math.log((len(words) + 1) / 16),
            float(any(one in SPECIAL_SUPPORT for one in entry.supporting_sentence_keys)),
            side * (_lacking(words, evidence) - 0.5) if evidence else 0.0,
            side * (_lacking(words, subject.everywhere) - 0.25),
        )
        values = (
            1.0,
            float(stated is None),
            side * math.log(inside / (1 - inside)),
            float(not entry.fully_supported),
            *(one if stated is None else SEEN * one for one in facts),
        )
        yield Facts((record.id, key), entry.fully_supported is True, values)


def _lacking(words: list[str], known: Container[str]) -> float:
    return sum(word not in known for word in words) / len(words) if words else 0.0
