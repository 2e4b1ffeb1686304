"""Doubt: the probability that a stored verdict on a response sentence is wrong.

A logistic model over facts of the label: the judge's own probability, audit findings, a second
opinion, length, and words that the sentence shares with its evidence. Priors are fixed. Without
corrections it orders verdicts by what the audit found; corrections move it, few of them a little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, FiniteFloat, NonNegativeInt, ValidationError

from labeler.audit import Audit, SecondJudge, examine
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.evidence.betting import Floats
from labeler.evidence.logistic import fit_logistic, sigmoid
from labeler.evidence.plan_files import majorities, read_labels
from labeler.evidence.units import Item, check_same_judge, stated_probabilities
from labeler.labels.answers import SPECIAL_SUPPORT, judged_sentences
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import Column, Display, Displayed, Grid, number
from labeler.sentences.words import stems, surface_words

_FEW = 30
"""Corrections from which the model is worth more than its priors."""
_LEAST = 1 / (1 + math.exp(7))
"""Least stated probability that counts: its log odds are -7."""


class Feature(NamedTuple):
    """A fact of a verdict, and the prior of its coefficient."""

    name: str
    mean: float
    deviation: float


FEATURES = (
    Feature("every verdict", 0.0, 0.5),
    Feature("no stated probability", -2.0, 1.0),
    Feature("log odds of the judge's probability of its verdict", -0.9, 0.35),
    Feature("verdict: not supported", 0.0, 0.7),
    Feature("suspicion score of the record", 3.0, 1.0),
    Feature("audit finding about the sentence", 1.0, 1.0),
    Feature("second opinion disagrees", 3.0, 1.0),
    Feature("words", 0.0, 0.5),
    Feature("support without a sentence", 0.0, 0.7),
    Feature("words of its own that its evidence lacks", 0.0, 2.0),
    Feature("words of its own that all documents lack", 0.0, 2.0),
)
_NAMES = [one.name for one in FEATURES]
_MEANS = np.array([one.mean for one in FEATURES])
_DEVIATIONS = np.array([one.deviation for one in FEATURES])


class _Stored(BaseModel):
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


@dataclass(frozen=True, repr=False)
class Doubt(Displayed):
    """A fitted model, and the doubt of each verdict of some labels.

    Attributes:
        coefficients: one for each of :data:`FEATURES`.
        corrections: number of verdicts that people confirmed or corrected.
        verdicts: the doubted verdicts, in the order of the labels.
    """

    coefficients: tuple[float, ...]
    corrections: int
    verdicts: tuple[Verdict, ...] = field(default=(), repr=False)

    def by_sentence(self) -> dict[Item, float]:
        """Return the doubts by record id and sentence key."""
        return {(one.id, one.sentence): one.doubt for one in self.verdicts}

    def by_record(self) -> dict[str, float]:
        """Return the probability that a verdict of a record is wrong, by record id."""
        right: dict[str, float] = {}
        for one in self.verdicts:
            right[one.id] = right.get(one.id, 1.0) * (1 - one.doubt)
        return {name: round(1 - chance, 6) for name, chance in right.items()}

    def ranks(self, found: Audit) -> Audit:
        """Return an audit whose suspicion scores are these probabilities."""
        doubts = self.by_record()
        records = (replace(one, suspicion=doubts.get(one.id, 0.0)) for one in found.records)
        return replace(found, records=tuple(records))

    def of(
        self, outcomes: Iterable[AnyOutcome], second_opinion: SecondJudge | None = None
    ) -> Doubt:
        """Return the model with the doubts of other labels.

        Args:
            outcomes: the labels.
            second_opinion: returns another judge's opinion of a label.

        Raises:
            UsageError: the labels are of several judge configurations.
        """
        records = _of_one_judge(outcomes)
        found = [fact for one in records for fact in facts_of(one, second_opinion)]
        return _doubted(self.coefficients, self.corrections, found)

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON, without texts and doubts.

        Raises:
            UsageError: the file cannot be written.
        """
        named = dict(zip(_NAMES, self.coefficients, strict=True))
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
        try:
            facts = _Stored.model_validate_json(Path(path).read_bytes())
            values = tuple(facts.coefficients[name] for name in _NAMES)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
        except (ValidationError, KeyError) as error:
            raise UsageError(
                f"{path}: not a model that this version's 'labeler doubt -o' wrote; fit it again"
            ) from error
        return cls(values, facts.corrections)

    def _display(self) -> Display:
        ranked = sorted(self.verdicts, key=lambda one: -one.doubt)
        title = f"{len(ranked):,} verdicts by what the audit found in them; nobody corrected any"
        if 0 < self.corrections < _FEW:
            title = f"{len(ranked):,} verdicts, the most doubtful first, by {self.corrections} "
            title += "corrections: too few to say how many are wrong"
        elif self.corrections:
            wrong = sum(one.doubt for one in ranked)
            title = f"about {wrong:.0f} of {len(ranked):,} verdicts are wrong"
            title += f", by {self.corrections:,} corrections"
        columns = [Column("id", words=True), Column("sentence", words=True)]
        columns += [Column("verdict", words=True), Column("doubt")]
        rows = [
            (one.id, one.sentence, _SAID[one.supported], number(one.doubt, ".3f")) for one in ranked
        ]
        few = f"fewer than {_FEW} corrections: an order to read in, no probability"
        notes = [few] if self.corrections < _FEW else []
        return Display(title, Grid(columns, rows), notes)


_SAID = {True: "supported", False: "not supported"}


def fit_doubt(
    outcomes: Iterable[AnyOutcome],
    corrections: str | Path | Mapping[Item, bool] | None = None,
    second_opinion: SecondJudge | None = None,
) -> Doubt:
    """Fit the model to what people said about verdicts, and doubt all verdicts with it.

    Args:
        outcomes: the labels.
        corrections: a file of corrections or of human labels, or what people said about response
            sentences: True is supported. Of several people the majority counts, and ties do not.
        second_opinion: returns another judge's opinion of a label.

    Raises:
        UsageError: the file cannot be read, or says nothing about a response sentence of these
            labels, or these are of several judge configurations.
    """
    records = _of_one_judge(outcomes)
    if isinstance(corrections, str | Path):
        corrections = majorities(read_labels(corrections, records), "supported")
    said = corrections or {}
    found = [fact for one in records for fact in facts_of(one, second_opinion)]
    judged = [(one, said[one.item]) for one in found if one.item in said]
    if corrections is not None and not judged:
        raise UsageError(
            "no correction is about a response sentence of these labels; judge some first: "
            "labeler review LABELS"
        )
    wrong = np.array([float(one.supported != yes) for one, yes in judged])
    coefficients = fit_logistic(_values([one for one, _ in judged]), wrong, _MEANS, _DEVIATIONS)
    return _doubted(tuple(map(float, coefficients)), len(judged), found)


def _of_one_judge(outcomes: Iterable[AnyOutcome]) -> list[LabelRecord]:
    """Return the labels, if one judge configuration made them: doubts are by id and sentence."""
    records = [one for one in outcomes if isinstance(one, LabelRecord)]
    for one in records:
        check_same_judge(records[0], one)
    return records


def _doubted(coefficients: tuple[float, ...], corrections: int, found: list[Facts]) -> Doubt:
    """Return a model with the doubts of the verdicts that facts are about."""
    doubts = sigmoid(_values(found) @ np.array(coefficients))
    verdicts = tuple(
        Verdict(*one.item, one.supported, round(float(doubt), 6))
        for one, doubt in zip(found, doubts, strict=True)
    )
    return Doubt(coefficients, corrections, verdicts)


def _values(found: list[Facts]) -> Floats:
    return np.array([one.values for one in found]).reshape(-1, len(FEATURES))


class Facts(NamedTuple):
    """The facts of a verdict.

    Attributes:
        item: record id and sentence key.
        supported: the verdict.
        values: one number for each of :data:`FEATURES`.
    """

    item: Item
    supported: bool
    values: tuple[float, ...]


def facts_of(record: LabelRecord, second_opinion: SecondJudge | None = None) -> Iterator[Facts]:
    """Yield the facts of each verdict on a response sentence.

    Args:
        record: the label.
        second_opinion: returns another judge's opinion of a label.
    """
    opinion = second_opinion(record) if second_opinion else None
    findings, suspicion = examine(record)
    named = {key for finding in findings for key in finding.keys}
    contrary = opinion.disagreements(record.label) if opinion else {}
    texts = {one.key: one.text for one in record.example.response}
    sources = {
        one.key: frozenset(stems(surface_words(one.text)))
        for one in record.example.evidence_sentences()
    }
    every = frozenset[str]().union(*sources.values())
    probabilities = stated_probabilities(record, "support")
    for key, entry in judged_sentences(record.label).items():
        words = stems(surface_words(texts.get(key, "")))
        side = 1.0 if entry.fully_supported else -1.0
        stated = probabilities.get(key)
        named_by_judge = (sources.get(one) for one in entry.supporting_sentence_keys)
        evidence = frozenset[str]().union(*filter(None, named_by_judge))
        values = (
            1.0,
            float(stated is None),
            0.0 if stated is None else side * _log_odds(stated),
            float(not entry.fully_supported),
            suspicion,
            float(key in named),
            contrary.get(key, 0.0) ** 2,
            math.log((len(words) + 1) / 16),
            float(any(one in SPECIAL_SUPPORT for one in entry.supporting_sentence_keys)),
            side * (_lacking(words, evidence) - 0.5) if evidence else 0.0,
            side * (_lacking(words, every) - 0.25),
        )
        yield Facts((record.id, key), entry.fully_supported is True, values)


def _log_odds(probability: float) -> float:
    inside = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(inside / (1 - inside))


def _lacking(words: list[str], known: frozenset[str]) -> float:
    """Return the share of words that are not known."""
    return sum(word not in known for word in words) / len(words) if words else 0.0
