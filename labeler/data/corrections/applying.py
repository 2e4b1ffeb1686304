"""Labels as people corrected them: what most of them say, decision by decision. Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from labeler.data.corrections.correction import Correction, Judgement
from labeler.data.corrections.differences import Differences, differences, judgement_of
from labeler.data.corrections.majority import Majority, quoted
from labeler.data.corrections.overlay import current
from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput, in_order, judged_sentences, lowered
from labeler.labels.contract import check_label
from labeler.labels.profiles import DEFAULT_PROFILE, PROFILES
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    ReplyFacts,
    label_key,
)
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Artifact, Signature, digest

FACT = "corrections"
"""The fact of a signature that tells corrected labels from those of the judge alone."""


@dataclass(frozen=True)
class Change:
    """What people changed in one label.

    Attributes:
        id: the row's id.
        key: key of the judge's label.
        differences: the decisions that are others now.
        annotators: whose judgements counted, sorted.
        reasons: their comments, each after its annotator's name.
    """

    id: str
    key: str
    differences: Differences
    annotators: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Ignored:
    """A correction that counts for nothing.

    Attributes:
        correction: the correction.
        why: a code: ``no_label``, ``unsure``, ``no_judgement`` or ``does_not_fit``.
        detail: what does not fit.
    """

    correction: Correction
    why: str
    detail: str = ""


@dataclass
class Applied:
    """What became of corrections; complete when all records were read.

    Attributes:
        fact: what the signatures of the records say of the corrections.
        records: labels that were read.
        changed: the labels that people changed.
        confirmed: labels that people judged, and that stay as they are.
        used: corrections that counted.
        ignored: those that did not, each with the reason.
    """

    fact: str
    records: int = 0
    changed: list[Change] = field(default_factory=list)
    confirmed: int = 0
    used: int = 0
    ignored: list[Ignored] = field(default_factory=list)

    @property
    def by_field(self) -> Counter[str]:
        """How many decisions are others now, by field."""
        return sum((Counter(c.differences.counts()) for c in self.changed), Counter[str]())

    @property
    def annotators(self) -> tuple[str, ...]:
        """Whose judgements counted in labels that changed."""
        return tuple(sorted({name for change in self.changed for name in change.annotators}))


def apply_corrections(
    outcomes: Callable[[], Iterable[Outcome]], corrections: Iterable[Correction]
) -> tuple[Applied, Iterator[Outcome]]:
    """Correct the labels of a file; those that nobody judged are signed alike, to stay together.

    Args:
        outcomes: gives the labels and failures, each time anew: they are read twice.
        corrections: all events; of one person on one label, the last counts.

    Returns:
        What becomes of the corrections, and the corrected outcomes, during whose reading that is
        found out.

    Raises:
        UsageError: labels are corrected already, or two that differ have one key.
    """
    last = current(corrections)
    there = spoken_of(outcomes(), {correction.key for correction in last})
    counted, ignored = _sorted_out(last, there)
    applied = Applied(fact_of(each for some in counted.values() for each in some))
    applied.used = sum(map(len, counted.values()))
    applied.ignored = ignored
    return applied, _applied(outcomes(), counted, applied)


def spoken_of(outcomes: Iterable[AnyOutcome], keys: Container[str]) -> dict[str, LabelRecord]:
    """The labels of some keys; few, for they are what people judged.

    Raises:
        UsageError: two of one key differ in a decision: no correction says which it means.
    """
    found: dict[str, LabelRecord] = {}
    for outcome in outcomes:
        if isinstance(outcome, LabelRecord) and outcome.key in keys:
            first = found.setdefault(outcome.key, outcome)
            if first is not outcome and not _confirms(outcome.label, first.label):
                raise UsageError(
                    f"record {outcome.id!r:.80} stands there twice under one key with different "
                    "labels, and its corrections do not say which they mean: take files that hold "
                    "one label of each"
                )
    return found


def fact_of(counted: Iterable[Correction]) -> str:
    """Name the corrections that counted, in whatever order they come."""
    said = sorted(digest(correction.model_dump(mode="json")) for correction in counted)
    return digest(said)[:12]


def _sorted_out(
    last: Iterable[Correction], there: Mapping[str, LabelRecord]
) -> tuple[dict[str, list[Correction]], list[Ignored]]:
    """The corrections that count, by key of their label, and the others."""
    counted: dict[str, list[Correction]] = {}
    ignored = []
    for correction in last:
        why, detail = _fate(correction, there.get(correction.key))
        if why:
            ignored.append(Ignored(correction, why, detail))
        else:
            counted.setdefault(correction.key, []).append(correction)
    return counted, ignored


def _fate(correction: Correction, record: LabelRecord | None) -> tuple[str, str]:
    """Why a correction does not count; nothing where it does."""
    if record is None:
        return "no_label", ""
    if correction.opinion == "unsure":
        return "unsure", ""
    if correction.verdict is None:
        return "no_judgement", ""
    faults = correction.check_against(record)
    return ("does_not_fit", "; ".join(faults)) if faults else ("", "")


def usable(
    corrections: Iterable[Correction], record: LabelRecord
) -> tuple[tuple[Correction, Judgement], ...]:
    """The judgements of a record that count, sorted by annotator: one a person, the last."""
    fitting = [
        (correction, correction.verdict)
        for correction in current(each for each in corrections if each.key == record.key)
        if correction.verdict is not None and not correction.check_against(record)
    ]
    return tuple(sorted(fitting, key=lambda pair: pair[0].annotator))


def _applied(
    outcomes: Iterable[Outcome], counted: Mapping[str, Sequence[Correction]], applied: Applied
) -> Iterator[Outcome]:
    changed: set[str] = set()
    for outcome in outcomes:
        if isinstance(outcome, LabelFailure):
            yield _failure(outcome, applied.fact)
            continue
        applied.records += 1
        said = counted.get(outcome.key, ())
        made = corrected(outcome, said, fact=applied.fact)
        if said and outcome.key not in changed:
            changed.add(outcome.key)
            _note(applied, outcome, made, said)
        yield made


def _note(
    applied: Applied, record: LabelRecord, made: LabelRecord, said: Sequence[Correction]
) -> None:
    found = differences(record.label, judgement_of(made.label))
    added = judged_sentences(made.label).keys() - judged_sentences(record.label).keys()
    if added:  # the judge left them out, people did not
        found = replace(found, supported=in_order({*found.supported, *added}))
    if not found:
        applied.confirmed += 1
        return
    names = tuple(sorted(each.annotator for each in said))
    reasons = tuple(quoted(each) for each in _by_name(said) if each.comment.strip())
    applied.changed.append(Change(record.id, record.key, found, names, reasons))


def _failure(failure: LabelFailure, fact: str) -> LabelFailure:
    """A failure among corrected labels: counted with them, and nothing to ask for again."""
    if failure.signature is None:
        return failure
    signature = corrected_signature(failure.signature, fact)
    return failure.model_copy(update={"signature": signature, "key": None, "lasting": False})


def corrected(
    record: LabelRecord, corrections: Iterable[Correction], *, fact: str | None = None
) -> LabelRecord:
    """The label that most people agree with, decision by decision.

    A sentence is relevant, utilized or supported where more of them say so than not; where as many
    say yes as no, the judge's verdict stays. The keys that support a sentence are those that more
    than half name of the people who call it supported and name keys, the judge deciding ties; where
    nobody names any, the judge's. The label is of the profile ``trace``: claims were not corrected.

    Args:
        record: the judge's label.
        corrections: of any labels; those of this one count, of each person the last.
        fact: what the signature says of the corrections, so that all labels of a file say the same;
            by default it names those of this record.

    Raises:
        UsageError: the label is corrected already.
    """
    said = usable(corrections, record)
    fact = fact_of(each for each, _ in said) if fact is None else fact
    signature = corrected_signature(record.signature, fact)
    key = label_key(record.example, signature)
    if not said:
        return _kept(record, key, signature)
    made = Majority(record, said).label()
    if _confirms(made, record.label):
        return _reviewed(record, made, key, signature)
    checked = check_label(made, record.example)
    return LabelRecord(
        key=key,
        example=record.example,
        label=checked.label,
        violations=checked.violations,
        signature=signature,
        reply=ReplyFacts(attempts=0, labeler_version=record.reply.labeler_version),
    )


def _kept(record: LabelRecord, key: str, signature: Signature) -> LabelRecord:
    """The judge's label as it is, among corrected ones."""
    lowest = lowered(record.label, GPTLabelingOutput)
    verbatim = record.verbatim if lowest is record.label else None
    facts = {"key": key, "signature": signature, "label": lowest, "verbatim": verbatim}
    return record.model_copy(update=facts)


def _confirms(made: GPTLabelingOutput, judge: GPTLabelingOutput) -> bool:
    """Whether people left every decision as the judge took it."""
    return not differences(judge, judgement_of(made)) and (
        judged_sentences(made).keys() == judged_sentences(judge).keys()
    )


def _reviewed(
    record: LabelRecord, made: GPTLabelingOutput, key: str, signature: Signature
) -> LabelRecord:
    """The judge's label as it is, also as it was given, with what people said of it."""
    kept = _kept(record, key, signature)
    words = {"overall_supported_explanation": made.overall_supported_explanation}
    given = kept.verbatim
    facts = {
        "label": kept.label.model_copy(update=words),
        "verbatim": None if given is None else given.model_copy(update=words),
    }
    return kept.model_copy(update=facts)


def corrected_signature(signature: Signature, fact: str) -> Signature:
    """The signature of a corrected label.

    Raises:
        UsageError: it is that of one already.
    """
    if FACT in signature.sampling:
        raise UsageError(
            "the labels are corrected already (their signature says "
            f"{FACT}:{signature.sampling[FACT]!s:.40}); apply corrections to the judge's own labels"
        )
    return signature.model_copy(
        update={
            "sampling": {**signature.sampling, FACT: fact},
            "response_schema": _trace_schema(signature.response_schema),
        }
    )


def _trace_schema(schema: Artifact) -> Artifact:
    """The schema of a label without claims; another version of it, or an importer's own, stays."""
    family = schema.name.partition("/")[0]
    richer = {p.family for p in PROFILES.values() if p.output is not GPTLabelingOutput}
    return _leanest() if family in richer else schema


@functools.cache
def _leanest() -> Artifact:
    return load_schema(PROFILES[DEFAULT_PROFILE].schema).artifact


def _by_name(corrections: Iterable[Correction]) -> list[Correction]:
    return sorted(corrections, key=lambda each: each.annotator)
