"""Corrected labels: what most people decided, or else the judge, with a signature."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from labeler.catalog import named_keywords
from labeler.data.corrections import (
    Change,
    Correction,
    Ignored,
    Judgment,
    decided,
    differences,
    drawn_at_random,
    judgment_of,
)
from labeler.data.corrections.file import current
from labeler.errors import UsageError
from labeler.labels.answers import (
    BY_FAMILY,
    DEFAULT_PROFILE,
    PROFILES,
    GPTLabelingOutput,
    SentenceSupport,
    family_of,
    in_order,
    is_majority,
    judged_sentences,
    lacks_relevance,
    lowered,
    majority_keys,
)
from labeler.labels.contract import check_label
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import (
    CORRECTIONS,
    JUDGED,
    Artifact,
    ReviewCounts,
    Signature,
    digest,
    label_key,
    load_schema,
)
from labeler.sentences.characters import normalized

UNNAMED_SUPPORT = "supported_without_sentence"
"""Support of a supported sentence for which neither people nor the judge named a key."""
_LONGEST_QUOTE = 1_000
"""Most characters of a comment that an explanation quotes."""


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


@named_keywords
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
    labels = Counter[tuple[str, str]]()
    keys = {correction.key for correction in last}
    named = dict.fromkeys((normalized("NFC", correction.id) for correction in last), False)
    judged = labels_by_key(_counted(outcomes(), keys, labels, named), keys)
    applied = Applied("")
    counts: dict[str, list[Correction]] = {}
    for correction in last:
        is_labeled = named[normalized("NFC", correction.id)]
        why, detail = _rejection(correction, judged.get(correction.key), is_labeled=is_labeled)
        if why:
            applied.ignored.append(Ignored(correction, why, detail))
        else:
            counts.setdefault(correction.key, []).append(correction)
            applied.used += 1
    applied.fact = corrections_digest(each for some in counts.values() for each in some)
    applied.selections = _selections(labels, counts, drawn_at_random(events))
    return applied, _applied(outcomes(), counts, applied)


def _counted(
    outcomes: Iterable[AnyOutcome],
    keys: Container[str],
    labels: Counter[tuple[str, str]],
    named: dict[str, bool],
) -> Iterator[AnyOutcome]:
    """Yield outcomes, count labels by printed signature and given keys, and mark their ids."""
    for outcome in outcomes:
        if isinstance(outcome, LabelRecord):
            labels[str(outcome.signature), outcome.key if outcome.key in keys else ""] += 1
            if (name := normalized("NFC", outcome.id)) in named:
                named[name] = True
        yield outcome


def _selections(
    labels: Mapping[tuple[str, str], int], judged: Container[str], random: Container[str]
) -> dict[str, ReviewCounts]:
    """Return how people selected labels, by printed signature.

    Args:
        labels: number of labels by printed signature and key; unjudged ones may share a key.
        judged: keys of the judged labels.
        random: keys of the labels that were drawn at random.
    """
    of_signature = defaultdict[str, dict[str, int]](dict)
    for (printed, key), count in labels.items():
        of_signature[printed][key] = count
    found: dict[str, ReviewCounts] = {}
    for printed, counts in of_signature.items():
        seen = {key: count for key, count in counts.items() if key in judged}
        drawn = sum(count for key, count in seen.items() if key in random)
        if seen:
            found[printed] = ReviewCounts(sum(seen.values()), sum(counts.values()), drawn)
    return found


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


def _rejection(
    correction: Correction, record: LabelRecord | None, *, is_labeled: bool
) -> tuple[str, str]:
    """Return why a correction does not count, with details; empty if it counts.

    ``is_labeled`` is True if a label has the id of the correction, under whatever key.
    """
    if record is None:
        other = "the record has another label: of other texts, other Unicode forms or another judge"
        return "no_label", other if is_labeled else ""
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
    outcomes: Iterable[Outcome], counts: Mapping[str, Sequence[Correction]], applied: Applied
) -> Iterator[Outcome]:
    noted: set[str] = set()
    for outcome in outcomes:
        applied.rows += 1
        if isinstance(outcome, LabelFailure):
            yield _failure(outcome, applied)
            continue
        applied.records += 1
        judged = counts.get(outcome.key, ())
        made = _corrected(outcome, usable(judged, outcome), applied.signed(outcome.signature))
        if judged and outcome.key not in noted:
            noted.add(outcome.key)
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
    applied.changed.append(Change(record.id, record.key, found, names, _quoted(by_name)))


def _failure(failure: LabelFailure, applied: Applied) -> LabelFailure:
    """Return a failure with the signature of corrected labels; it cannot be retried."""
    if failure.signature is None:
        return failure
    changes = {"signature": applied.signed(failure.signature), "key": None, "lasting": False}
    return failure.model_copy(update=changes)


def corrected(record: LabelRecord, corrections: Iterable[Correction]) -> LabelRecord:
    """Return the label that most people agree on, decision by decision.

    A sentence is relevant, utilized or supported if more people say yes than no; on a tie the
    judge's verdict stays. The response as a whole too, unless that alone contradicts its sentences:
    then it follows from them. The supporting keys are those that more than half of the people name
    who call the sentence supported and name keys; the judge decides ties. If nobody names keys, the
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
    made = _Majority(record, judged).label() if judged else record.label
    if not _confirms(made, record.label):
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
    # People's comments stand in the overall explanation. The judge's probabilities go: people give
    # none, and a mean over the confirmed labels alone would be one over those that it had right.
    lowest = lowered(record.label, GPTLabelingOutput)
    texts = (lowest, record.verbatim if lowest is record.label else None)
    said = {"overall_supported_explanation": made.overall_supported_explanation} if judged else {}
    label, verbatim = (text and text.model_copy(update=said) for text in texts)
    facts = {"key": key, "signature": signature, "label": label, "verbatim": verbatim}
    return record.model_copy(update={**facts, "scores": None})


def _confirms(made: GPTLabelingOutput, judge: GPTLabelingOutput) -> bool:
    """Return True if people left every decision of the judge."""
    return made is judge or (
        not differences(judge, judgment_of(made))
        and judged_sentences(made).keys() == judged_sentences(judge).keys()
    )


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
    facts = {CORRECTIONS: fact} | ({} if selection is None else {JUDGED: str(selection)})
    sampling, schema = signature.sampling | facts, _trace_schema(signature.response_schema)
    return signature.model_copy(update={"sampling": sampling, "response_schema": schema})


def _trace_schema(schema: Artifact) -> Artifact:
    """Return the schema of a label with relevance and without claims; such a schema stays."""
    profile = BY_FAMILY.get(family_of(schema.name))
    is_richer = profile is not None and profile.output is not GPTLabelingOutput
    if not is_richer and not lacks_relevance(schema.name):  # people correct relevance, too
        return schema
    return load_schema(PROFILES[DEFAULT_PROFILE].schema).artifact


def _quoted(corrections: Iterable[Correction]) -> tuple[str, ...]:
    """Return people's comments, each after the name, as explanations quote them."""
    said = ((each.annotator, each.comment.strip()) for each in corrections)
    return tuple(
        f"{name}: {text[:_LONGEST_QUOTE]}{'…' * (len(text) > _LONGEST_QUOTE)}"
        for name, text in said
        if text
    )


class _Majority:
    """The majority of several people's judgments of one label, given sorted by annotator."""

    def __init__(self, record: LabelRecord, judged: Sequence[tuple[Correction, Judgment]]) -> None:
        self._example, self._judge = record.example, record.label
        self._corrections = [correction for correction, _ in judged]
        self._judgments = [judgment for _, judgment in judged]
        self._decided = [decided(record, correction) for correction, _ in judged]

    def label(self) -> GPTLabelingOutput:
        """Return the label of the majority."""
        judge, judgments = self._judge, self._judgments
        relevant = self._keys([j.relevant for j in judgments], judge.all_relevant_sentence_keys)
        utilized = self._keys([j.utilized for j in judgments], judge.all_utilized_sentence_keys)
        sentences = tuple(self._sentences())
        overall, why = self._whole(sentences)
        notes = [] if overall == judge.overall_supported else [f"{_NAMES[overall]}, {why}"]
        notes += _changes(judge.all_utilized_sentence_keys, utilized, "utilized")
        reasons = _quoted(self._corrections)
        return GPTLabelingOutput(
            relevance_explanation=self._marked(
                _changes(judge.all_relevant_sentence_keys, relevant, "relevant"),
                judge.relevance_explanation,
            ),
            all_relevant_sentence_keys=relevant,
            overall_supported_explanation=self._marked(
                notes, judge.overall_supported_explanation, reasons
            ),
            overall_supported=overall,
            sentence_support_information=sentences,
            all_utilized_sentence_keys=utilized,
        )

    def _keys(self, named: Sequence[Sequence[str]], judge: Sequence[str]) -> tuple[str, ...]:
        """Return the document sentences that the majority names."""
        keys = self._example.document_keys()
        return tuple(k for k in keys if _decide([k in own for own in named], k in judge)[0])

    def _sentences(self) -> Iterator[SentenceSupport]:
        """Yield the entry of each response sentence that the judge or the majority decides on."""
        judged = judged_sentences(self._judge)
        for key in self._example.response_keys():
            entry = judged.get(key)
            votes = [
                key in judgment.support
                for judgment, own in zip(self._judgments, self._decided, strict=True)
                if key in own or key in judgment.support
            ]
            if entry is None and 2 * sum(votes) == len(votes):
                continue
            before = entry is not None and entry.fully_supported
            own_keys = () if entry is None else entry.supporting_sentence_keys
            supported, agreeing = _decide(votes, before)
            kept = self._support(key, own_keys) if supported else ()
            is_new = entry is None or supported != before
            notes = [f"{_NAMES[supported]}, say {agreeing} of {len(votes)}"] if is_new else []
            notes += _changes(own_keys, kept, "support") if supported else []
            yield SentenceSupport(
                response_sentence_key=key,
                explanation=self._marked(notes, "" if entry is None else entry.explanation),
                supporting_sentence_keys=kept,
                fully_supported=supported,
            )

    def _support(self, key: str, judge: Sequence[str]) -> tuple[str, ...]:
        """Return the supporting keys of a supported sentence."""
        named = [keys for j in self._judgments if (keys := j.support.get(key))]
        if not named:
            return tuple(judge) or (UNNAMED_SUPPORT,)
        majority = majority_keys(named, tied=judge)
        return tuple(judge) if {*majority} == {*judge} else majority

    def _whole(self, sentences: Sequence[SentenceSupport]) -> tuple[bool, str]:
        """Return the verdict on the whole response, and the reason to give for a change."""
        judgments = self._judgments
        votes = [each.overall_supported for each in judgments]
        verdict, agreeing = _decide(votes, self._judge.overall_supported)
        follows = all(entry.fully_supported for entry in sentences)
        # Each may vote consistently, and yet one majority contradict the others.
        is_consistent = all(
            each.overall_supported == (own <= each.support.keys())
            for each, own in zip(judgments, self._decided, strict=True)
        )
        is_whole = len(sentences) == len(self._example.response)
        if verdict != follows and is_consistent and is_whole:
            return follows, "as its sentences are" if follows else "as a sentence is not"
        return verdict, f"say {agreeing} of {len(judgments)}"

    def _marked(self, notes: Sequence[str], explanation: str, reasons: Sequence[str] = ()) -> str:
        """Return an explanation after a note of what people changed and why, if anything."""
        if not notes and not reasons:
            return explanation
        names = ", ".join(each.annotator for each in self._corrections)
        verb = "corrected" if notes else "reviewed"
        return f"[{verb} by {names}: {'; '.join([*notes, *reasons])}] {explanation}"


_NAMES = {True: "supported", False: "not supported"}


def _decide(votes: Sequence[bool], judge: bool) -> tuple[bool, int]:
    """Return the majority's verdict and its votes; the judge decides a tie."""
    yes = sum(votes)
    verdict = is_majority(yes, len(votes), tie=judge)
    return verdict, yes if verdict else len(votes) - yes


def _changes(before: Sequence[str], after: Sequence[str], field: str) -> list[str]:
    """Describe the keys that were added and removed; empty if there are none."""
    moves = [f"+{key}" for key in after if key not in before]
    moves += [f"-{key}" for key in before if key not in after]
    return [f"{field} {' '.join(moves)}"] if moves else []
