"""Label records for tests, written as briefly as a worked example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, NamedTuple

from labeler.labels.answers import (
    PROFILES,
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    Profile,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    SentenceSupport,
    VerbatimLabel,
    VerbatimSupport,
    Verdict,
)
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.signature import Signature, label_key
from labeler.sentences.example import (
    KeyedExample,
    KeyedToolOutput,
    KeyedTurn,
    key_sentences,
    letters,
    position,
)
from support.samples import keyed_example, pieces, signature


def output(
    *,
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Mapping[str, Sequence[str]] | None = None,
    overall: bool | None = None,
    explanation: str = "because",
) -> GPTLabelingOutput:
    """An answer; a response sentence with no support is unsupported."""
    support = {"a": ["0a"], "b": ["0b"]} if support is None else support
    return GPTLabelingOutput(
        relevance_explanation=explanation,
        all_relevant_sentence_keys=tuple(relevant),
        overall_supported_explanation=explanation,
        overall_supported=all(support.values()) if overall is None else overall,
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=key,
                explanation=explanation,
                supporting_sentence_keys=tuple(keys),
                fully_supported=bool(keys),
            )
            for key, keys in support.items()
        ),
        all_utilized_sentence_keys=tuple(utilized),
    )


def says(
    sentence: str = "a",
    by: Sequence[str] = (),
    against: Sequence[str] = (),
    *,
    claim: str = "something",
    on_topic: bool = True,
) -> ResponseClaim:
    """A claim of the response; what the documents say of it follows from the keys.

    Args:
        sentence: key of the response sentence that makes it.
        by: keys that support it.
        against: keys that contradict it.
        claim: its text.
        on_topic: whether it helps to answer the question.
    """
    verdict: Verdict = "entailment" if by else "contradiction" if against else "neutral"
    return ResponseClaim(
        response_sentence_key=sentence,
        claim=claim,
        supporting_sentence_keys=tuple(by),
        contradicting_sentence_keys=tuple(against),
        verdict=verdict,
        relevant_to_question=on_topic,
    )


def compared(claim: ResponseClaim, reference: Verdict) -> ComparedClaim:
    """The same claim, and what the reference answer says of it."""
    return ComparedClaim(**vars(claim), reference_verdict=reference)


def right(sentence: str = "a", by: Sequence[str] = (), **more: Any) -> ComparedClaim:
    """A claim of the response that the reference answer entails; see :func:`says`."""
    return compared(says(sentence, by, **more), "entailment")


def wrong(sentence: str = "a", by: Sequence[str] = (), **more: Any) -> ComparedClaim:
    """A claim of the response that the reference answer does not entail; see :func:`says`."""
    return compared(says(sentence, by, **more), "neutral")


def expects(
    by: Sequence[str] = (),
    *,
    found: bool = False,
    sentence: str = "ref.a",
    claim: str = "something",
) -> ReferenceClaim:
    """A claim of the reference answer.

    Args:
        by: document keys that support it.
        found: whether the response entails it.
        sentence: key of the reference sentence that makes it.
        claim: its text.
    """
    return ReferenceClaim(
        reference_sentence_key=sentence,
        claim=claim,
        supporting_sentence_keys=tuple(by),
        response_verdict="entailment" if found else "neutral",
    )


def claims_output(
    claims: Sequence[ResponseClaim],
    *,
    relevant: Sequence[str] = (),
    utilized: Sequence[str] | None = None,
    silent: Sequence[str] = (),
) -> ClaimsLabelingOutput:
    """An answer of the profile ``claims``; the support of each sentence is that of its claims.

    Args:
        claims: those of the response, in the order of its sentences.
        relevant: relevant keys.
        utilized: utilized keys; by default those that support a claim.
        silent: keys of response sentences that make no claim.
    """
    return ClaimsLabelingOutput(
        **vars(_shared(claims, relevant, utilized, silent)),
        response_claims=tuple(claims),
        response_sentences_without_claims=tuple(silent),
    )


def reference_output(
    claims: Sequence[ComparedClaim],
    reference: Sequence[ReferenceClaim],
    *,
    relevant: Sequence[str] = (),
    utilized: Sequence[str] | None = None,
    silent: Sequence[str] = (),
    silent_reference: Sequence[str] = (),
) -> ReferenceLabelingOutput:
    """An answer of the profile ``reference``; see :func:`claims_output`.

    Args:
        claims: those of the response.
        reference: those of the reference answer.
        relevant: relevant keys.
        utilized: utilized keys; by default those that support a claim of the response.
        silent: keys of response sentences that make no claim.
        silent_reference: keys of reference sentences that make no claim.
    """
    return ReferenceLabelingOutput(
        **vars(_shared(claims, relevant, utilized, silent)),
        response_claims=tuple(claims),
        response_sentences_without_claims=tuple(silent),
        reference_claims=tuple(reference),
        reference_sentences_without_claims=tuple(silent_reference),
    )


def _shared(
    claims: Sequence[ResponseClaim],
    relevant: Sequence[str],
    utilized: Sequence[str] | None,
    silent: Sequence[str],
) -> GPTLabelingOutput:
    """What labels of all profiles have: a sentence is supported where all its claims are."""
    keys = sorted({*silent, *(claim.response_sentence_key for claim in claims)}, key=position)
    support = {key: _support(key, claims) for key in keys}
    cited = dict.fromkeys(key for c in claims for key in c.supporting_sentence_keys)
    real = [key for key in cited if key[0].isdigit()]
    return output(
        relevant=relevant, utilized=real if utilized is None else utilized, support=support
    )


def _support(key: str, claims: Sequence[ResponseClaim]) -> list[str]:
    own = [claim for claim in claims if claim.response_sentence_key == key]
    if any(claim.verdict != "entailment" for claim in own):
        return []
    return list(dict.fromkeys(k for c in own for k in c.supporting_sentence_keys)) or ["general"]


def verbatim(
    *,
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Sequence[tuple[str, Sequence[str], bool | None]] = (("a", ("0a",), True),),
    overall: bool = False,
) -> VerbatimLabel:
    """An answer as it was given: (response key, supporting keys, verdict) for each sentence."""
    return VerbatimLabel(
        relevance_explanation="because",
        all_relevant_sentence_keys=tuple(relevant),
        overall_supported_explanation="because",
        overall_supported=overall,
        sentence_support_information=tuple(
            VerbatimSupport(
                response_sentence_key=key,
                explanation="because",
                supporting_sentence_keys=tuple(keys),
                fully_supported=verdict,
            )
            for key, keys, verdict in support
        ),
        all_utilized_sentence_keys=tuple(utilized),
    )


def record(
    *,
    id: str = "r1",  # noqa: A002 - the field's name
    documents: Sequence[int | Sequence[str]] = (2, 1),
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Mapping[str, Sequence[str]] | None = None,
    response: int | None = None,
    stored: VerbatimLabel | None = None,
    answer: GPTLabelingOutput | None = None,
    citing: Sequence[str] = (),
    turns: int = 0,
    metadata: Mapping[str, Any] | None = None,
) -> LabelRecord:
    """A stored label.

    Args:
        id: the row's id.
        documents: the number of sentences of each document, or the sentences.
        relevant: relevant keys.
        utilized: utilized keys.
        support: supporting keys of each judged response sentence; none means unsupported.
        response: number of response sentences, where it is not the number of judged ones.
        stored: the answer as given, where it differs; the label is then made from it.
        answer: the whole answer, such as that of a richer profile; in place of what else it says.
        citing: what ends the first response sentences, such as `` [1]``.
        turns: earlier turns of two sentences each, and as many tool outputs of one.
        metadata: other columns.
    """
    if answer is None:
        support = {"a": ["0a"], "b": ["0b"]} if support is None else support
        answer = output(relevant=relevant, utilized=utilized, support=support)
    size = len(answer.sentence_support_information) if response is None else response
    reference = _reference_size(answer) if isinstance(answer, ReferenceLabelingOutput) else None
    sentences = tuple(part if isinstance(part, int) else tuple(part) for part in documents)
    ends = chain(citing, repeat(""))
    said = tuple(f"Statement {letters(place)}{next(ends)}." for place in range(size))
    asked = _asked(id, (sentences, said, turns), reference, _profile_of(answer).name)
    example = asked.example
    if metadata:
        example = example.model_copy(update={"metadata": dict(metadata)})
    checked = check_label(stored or answer, example)
    return LabelRecord(
        key=asked.key,
        example=example,
        label=checked.answer,
        verbatim=stored,
        normalised=dict(checked.repairs),
        violations=checked.violations,
        signature=asked.signature,
    )


class _Asked(NamedTuple):
    """What a label was asked for."""

    key: str
    example: KeyedExample
    signature: Signature


@lru_cache(maxsize=4096)  # tests that draw labels ask for few shapes, and very often
def _asked(
    name: str,
    shown: tuple[tuple[int | tuple[str, ...], ...], tuple[str, ...], int],
    reference: int | None,
    profile: str,
) -> _Asked:
    documents, response, turns = shown
    example = keyed_example(
        id=name,
        documents=[
            [f"Sentence {letters(s)} of document {d}." for s in range(part)]
            if isinstance(part, int)
            else part
            for d, part in enumerate(documents)
        ],
        response=response,
    )
    if reference is not None:
        truths = pieces([f"Truth {letters(s)}." for s in range(reference)])
        example = example.model_copy(update={"reference": key_sentences("ref.", truths)})
    spoken = tuple(
        KeyedTurn("user", key_sentences(f"h{n}", pieces(["Hello.", "Why?"]))) for n in range(turns)
    )
    returned = tuple(KeyedToolOutput(key_sentences(f"t{n}", pieces(["18"]))) for n in range(turns))
    example = example.model_copy(update={"history": spoken, "tool_outputs": returned})
    made_by = signature(prompt=f"{profile}/v1", schema=PROFILES[profile].schema)
    return _Asked(label_key(example, made_by), example, made_by)


def relabeled(
    label: LabelRecord, shown: Mapping[str, Any] | None = None, **made_by: Any
) -> LabelRecord:
    """The same label of changed texts or of another judge, under its own key.

    Args:
        label: the label.
        shown: changed fields of its example, such as the question.
        made_by: changed fields of its signature, such as the model.
    """
    example = label.example.model_copy(update=dict(shown or {}))
    signature = label.signature.model_copy(update=made_by)
    key = label_key(example, signature)
    return label.model_copy(update={"example": example, "signature": signature, "key": key})


def with_question(label: LabelRecord, question: str) -> LabelRecord:
    """The same label as of another question."""
    return relabeled(label, {"question": question})


def listing_sources(label: LabelRecord) -> LabelRecord:
    """The same label, whose last response sentence is a list of sources."""
    *texts, _ = (sentence.text for sentence in label.example.response)
    return relabeled(label, {"response": key_sentences("", pieces([*texts, "Sources: [1]"]))})


def failure(
    name: str = "f", reason: str = "refusal", *, made_by: LabelRecord | None = None, **facts: Any
) -> LabelFailure:
    """A row without a label, by nobody or by the judge of a label."""
    signature = made_by.signature if made_by else None
    return LabelFailure(id=name, reason=reason, message="No.", signature=signature, **facts)


def _reference_size(answer: ReferenceLabelingOutput) -> int:
    """How many sentences a reference answer has at least, by the keys that name them."""
    claiming = {claim.reference_sentence_key for claim in answer.reference_claims}
    named = claiming.union(answer.reference_sentences_without_claims)
    return max((position(key).sentence + 1 for key in named), default=0)


def _profile_of(answer: GPTLabelingOutput) -> Profile:
    return next(p for p in PROFILES.values() if p.output is type(answer))
