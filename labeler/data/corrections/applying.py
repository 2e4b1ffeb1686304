"""Corrected labels: the majority of the judge's and people's decisions, with a signature."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from labeler.data.corrections.correction import (
    Correction,
    Differences,
    Judgment,
    LabelCounts,
    differences,
    drawn_at_random,
    judgment_of,
)
from labeler.data.corrections.file import current
from labeler.data.corrections.majority import Majority, quoted
from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput, in_order, judged_sentences, lowered
from labeler.labels.contract import check_label
from labeler.labels.profiles import BY_FAMILY, DEFAULT_PROFILE, PROFILES, family_of, lacks_relevance
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.schemas import load_schema
from labeler.labels.signature import (
    CORRECTIONS,
    JUDGED,
    Artifact,
    ReviewCounts,
    Signature,
    digest,
    label_key,
)


@dataclass(frozen=True)
class Change:
    """People's changes of one label.

    Attributes:
        id: the row's id.
        key: key of the judge's label.
        differences: the changed decisions.
        annotators: the people whose judgments counted, sorted.
        reasons: their comments, each after the annotator's name.
    """

    id: str
    key: str
    differences: Differences
    annotators: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Ignored:
    """A correction that does not count.

    Attributes:
        correction: the correction.
        why: a code: ``no_label``, ``unsure``, ``no_judgment`` or ``does_not_fit``.
        detail: the keys that do not fit.
    """

    correction: Correction
    why: str
    detail: str = ""


@dataclass
class Applied:
    """The effect of corrections; complete once all records were read.

    Attributes:
        fact: digest of the corrections in the signatures of corrected labels.
        selections: how people selected the labels that they judged, by the printed signature of
            the judge's labels; signatures without a judged label are left out.
        rows: number of labels and failures.
        records: number of labels.
        changed: the labels that people changed.
        confirmed: number of labels that people judged and left unchanged.
        used: number of corrections that counted.
        ignored: corrections that did not count, with reasons.
    """

    fact: str
    selections: Mapping[str, ReviewCounts] = field(default_factory=dict)
    rows: int = 0
    records: int = 0
    changed: list[Change] = field(default_factory=list)
    confirmed: int = 0
    used: int = 0
    ignored: list[Ignored] = field(default_factory=list)

    @property
    def by_field(self) -> Counter[str]:
        """The number of changed decisions by field."""
        return sum((Counter(c.differences.counts()) for c in self.changed), Counter[str]())

    def signed(self, signature: Signature) -> Signature:
        """Return the signature of a corrected label, from the judge's."""
        return corrected_signature(signature, self.fact, self.selections.get(str(signature)))

    @property
    def annotators(self) -> tuple[str, ...]:
        """The people whose judgments counted in changed labels."""
        return tuple(sorted({name for change in self.changed for name in change.annotators}))


def apply_corrections(
    outcomes: Callable[[], Iterable[Outcome]], corrections: Iterable[Correction]
) -> tuple[Applied, Iterator[Outcome]]:
    """Correct the labels of a file; unjudged labels get the same signature.

    Args:
        outcomes: starts reading the labels and failures; called twice.
        corrections: all events; each person's latest on a label counts.

    Returns:
        The effect of the corrections, and the corrected outcomes. The effect is complete once the
        outcomes were read.

    Raises:
        UsageError: labels are corrected already, or two different labels have one key.

    Example:
        >>> events = labeler.data.CorrectionsFile(folder / "none.jsonl").read().events
        >>> applied, corrected = labeler.data.apply_corrections(lambda: labels, events)
        >>> len(list(corrected)), len(applied.changed)
        (14, 0)
    """
    events = tuple(corrections)
    last = current(events)
    keys = {correction.key for correction in last}
    counts = LabelCounts(keys)
    counted, ignored = _split(last, labels_by_key(counts.watch(outcomes()), keys))
    applied = Applied(
        corrections_digest(each for some in counted.values() for each in some),
        selections=counts.selections(counted, drawn_at_random(events)),
        used=sum(map(len, counted.values())),
        ignored=ignored,
    )
    return applied, _applied(outcomes(), counted, applied)


def labels_by_key(outcomes: Iterable[AnyOutcome], keys: Container[str]) -> dict[str, LabelRecord]:
    """Return the labels with the given keys.

    Raises:
        UsageError: two labels with one key differ in a decision, so corrections are ambiguous.
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


def corrections_digest(counted: Iterable[Correction]) -> str:
    """Return a digest of the corrections that count, independent of their order."""
    digests = sorted(digest(correction.model_dump(mode="json")) for correction in counted)
    return digest(digests)[:12]


def _split(
    last: Iterable[Correction], labels: Mapping[str, LabelRecord]
) -> tuple[dict[str, list[Correction]], list[Ignored]]:
    """Return the corrections that count, by label key, and the others."""
    counted: dict[str, list[Correction]] = {}
    ignored = []
    for correction in last:
        why, detail = _rejection(correction, labels.get(correction.key))
        if why:
            ignored.append(Ignored(correction, why, detail))
        else:
            counted.setdefault(correction.key, []).append(correction)
    return counted, ignored


def _rejection(correction: Correction, record: LabelRecord | None) -> tuple[str, str]:
    """Return why a correction does not count, with details; empty if it counts."""
    if record is None:
        return "no_label", ""
    if correction.opinion == "unsure":
        return "unsure", ""
    if correction.verdict is None:
        return "no_judgment", ""
    faults = correction.check_against(record)
    return ("does_not_fit", "; ".join(faults)) if faults else ("", "")


def usable(
    corrections: Iterable[Correction], record: LabelRecord
) -> tuple[tuple[Correction, Judgment], ...]:
    """Return each person's latest judgment of a record if it counts, sorted by annotator."""
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
        applied.rows += 1
        if isinstance(outcome, LabelFailure):
            yield _failure(outcome, applied)
            continue
        applied.records += 1
        judged = counted.get(outcome.key, ())
        made = _corrected(outcome, usable(judged, outcome), applied.signed(outcome.signature))
        if judged and outcome.key not in changed:
            changed.add(outcome.key)
            _note(applied, outcome, made, judged)
        yield made


def _note(
    applied: Applied, record: LabelRecord, made: LabelRecord, judged: Sequence[Correction]
) -> None:
    found = differences(record.label, judgment_of(made.label))
    added = judged_sentences(made.label).keys() - judged_sentences(record.label).keys()
    if added:  # the judge left them out, people did not
        found = replace(found, supported=in_order({*found.supported, *added}))
    if not found:
        applied.confirmed += 1
        return
    by_name = sorted(judged, key=lambda each: each.annotator)
    names = tuple(each.annotator for each in by_name)
    reasons = tuple(quoted(each) for each in by_name if each.comment.strip())
    applied.changed.append(Change(record.id, record.key, found, names, reasons))


def _failure(failure: LabelFailure, applied: Applied) -> LabelFailure:
    """Return a failure with the signature of corrected labels; it cannot be retried."""
    if failure.signature is None:
        return failure
    signature = applied.signed(failure.signature)
    return failure.model_copy(update={"signature": signature, "key": None, "lasting": False})


def corrected(record: LabelRecord, corrections: Iterable[Correction]) -> LabelRecord:
    """Return the label that most people agree on, decision by decision.

    A sentence is relevant, utilized or supported if more people say yes than no; on a tie the
    judge's verdict stays. The supporting keys are those that more than half of the people name who
    call the sentence supported and name keys; the judge decides ties. If nobody names keys, the
    judge's stay. The label has the profile ``trace``, because claims are not corrected. It keeps
    the facts of the judge's reply.

    Args:
        record: the judge's label.
        corrections: corrections of any labels; each person's latest on this label counts.

    Raises:
        UsageError: the label is corrected already.
    """
    judged = usable(corrections, record)
    fact = corrections_digest(each for each, _ in judged)
    return _corrected(record, judged, corrected_signature(record.signature, fact))


def _corrected(
    record: LabelRecord, judged: Sequence[tuple[Correction, Judgment]], signature: Signature
) -> LabelRecord:
    """Return the label that most people agree on, with its signature."""
    key = label_key(record.example, signature)
    if not judged:
        return _kept(record, key, signature)
    made = Majority(record, judged).label()
    if _confirms(made, record.label):
        return _reviewed(record, made, key, signature)
    checked = check_label(made, record.example)
    return LabelRecord(
        key=key,
        example=record.example,
        label=checked.answer,
        violations=checked.violations,
        signature=signature,
        # The answering model is in it: without, corrected labels would be summarized apart.
        reply=record.reply,
        not_measured=record.not_measured,
    )


def _kept(record: LabelRecord, key: str, signature: Signature) -> LabelRecord:
    """Return the judge's label with the signature of corrected labels.

    Its probabilities go: people give none, and a mean over the confirmed labels alone would be one
    over those that the judge had right.
    """
    lowest = lowered(record.label, GPTLabelingOutput)
    verbatim = record.verbatim if lowest is record.label else None
    facts = {"key": key, "signature": signature, "label": lowest, "verbatim": verbatim}
    return record.model_copy(update={**facts, "scores": None})


def _confirms(made: GPTLabelingOutput, judge: GPTLabelingOutput) -> bool:
    """Return True if people left every decision of the judge."""
    return not differences(judge, judgment_of(made)) and (
        judged_sentences(made).keys() == judged_sentences(judge).keys()
    )


def _reviewed(
    record: LabelRecord, made: GPTLabelingOutput, key: str, signature: Signature
) -> LabelRecord:
    """Return the judge's label with people's comments in its overall explanation."""
    kept = _kept(record, key, signature)
    explanation = {"overall_supported_explanation": made.overall_supported_explanation}
    given = kept.verbatim
    facts = {
        "label": kept.label.model_copy(update=explanation),
        "verbatim": None if given is None else given.model_copy(update=explanation),
    }
    return kept.model_copy(update=facts)


def corrected_signature(
    signature: Signature, fact: str, selection: ReviewCounts | None = None
) -> Signature:
    """Return the signature of a corrected label.

    Args:
        signature: the signature of the judge's label.
        fact: digest of the corrections.
        selection: how people selected the labels that they judged, in a file with such labels.

    Raises:
        UsageError: it is the signature of a corrected label already.
    """
    if CORRECTIONS in signature.sampling:
        raise UsageError(
            "the labels are corrected already (their signature says "
            f"{CORRECTIONS}:{signature.sampling[CORRECTIONS]!s:.40}); apply corrections to the "
            "judge's own labels"
        )
    facts = (
        {CORRECTIONS: fact} if selection is None else {CORRECTIONS: fact, JUDGED: str(selection)}
    )
    return signature.model_copy(
        update={
            "sampling": {**signature.sampling, **facts},
            "response_schema": _trace_schema(signature.response_schema),
        }
    )


def _trace_schema(schema: Artifact) -> Artifact:
    """Return the schema of a label with relevance and without claims; such a schema stays."""
    profile = BY_FAMILY.get(family_of(schema.name))
    is_richer = profile is not None and profile.output is not GPTLabelingOutput
    # People correct relevance too, wherever it came from.
    return _default_trace_schema() if is_richer or lacks_relevance(schema.name) else schema


@functools.cache
def _default_trace_schema() -> Artifact:
    return load_schema(PROFILES[DEFAULT_PROFILE].schema).artifact
