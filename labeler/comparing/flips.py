"""The decisions on which two labels of the same sentences differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from labeler.calculators import Tally
from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
)
from labeler.sentences.display import Brief
from labeler.sentences.example import KeyedExample

Field = Literal[
    "relevant",
    "utilized",
    "supported",
    "supporting_keys",
    "overall_supported",
    "claims",
    "reference_claims",
]
"""The subject of a decision: a document sentence (``relevant``, ``utilized``), a response sentence
(``supported``: its verdict; ``supporting_keys``: the keys alone, where both verdicts are the same)
or the whole record."""
FIELDS: tuple[Field, ...] = get_args(Field)

Direction = Literal["gained", "lost", "changed"]
"""``gained``: yes in B only; ``lost``: yes in A only; ``changed``: neither a yes nor a no."""
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True, repr=False)
class DecisionFlip(Brief):
    """One decision that differs between A's label and B's.

    Attributes:
        field: the subject of the decision.
        key: the sentence; empty where the decision is about the whole record.
        direction: how it changed from A to B.
        gained: supporting keys of a response sentence that only B names.
        lost: supporting keys that only A names.
    """

    field: Field
    key: str
    direction: Direction
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "field": self.field,
            "key": self.key or None,
            "direction": self.direction,
            "keys_gained": list(self.gained),
            "keys_lost": list(self.lost),
        }


def decision_flips(
    example: KeyedExample,
    labels: tuple[GPTLabelingOutput, GPTLabelingOutput],
    tallies: tuple[Tally, Tally],
) -> Iterator[DecisionFlip]:
    """Yield the flips in reading order.

    Args:
        example: the sentences of both labels.
        labels: A's label and B's.
        tallies: their tallies.
    """
    yield from _document_flips(example, *tallies)
    yield from _response_flips(example, labels, tallies)
    yield from _record_flips(*labels)


def _document_flips(example: KeyedExample, a: Tally, b: Tally) -> Iterator[DecisionFlip]:
    relevant, utilized = a.relevant ^ b.relevant, a.utilized ^ b.utilized
    if not relevant and not utilized:
        return
    for sentence in example.document_sentences():
        key = sentence.key
        if key in relevant:
            yield DecisionFlip("relevant", key, _direction(key in b.relevant))
        if key in utilized:
            yield DecisionFlip("utilized", key, _direction(key in b.utilized))


def _response_flips(
    example: KeyedExample,
    labels: tuple[GPTLabelingOutput, GPTLabelingOutput],
    tallies: tuple[Tally, Tally],
) -> Iterator[DecisionFlip]:
    before, after = map(_support, labels)
    for key in example.response_keys():
        was, now = (_verdict(tally, key) for tally in tallies)
        if was == now and before.get(key) == after.get(key):
            continue
        named = [frozenset[str]().union(*side.get(key, ())) for side in (before, after)]
        yield DecisionFlip(
            "supporting_keys" if was == now else "supported",
            key,
            "changed" if was == now else _direction(now > was),
            gained=_in_reading_order(example, named[1] - named[0]),
            lost=_in_reading_order(example, named[0] - named[1]),
        )


def _support(label: GPTLabelingOutput) -> Mapping[str, list[list[str]]]:
    """Return the supporting keys by response sentence; imported labels may judge one twice."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for entry in label.sentence_support_information:
        found[entry.response_sentence_key].append(sorted({*entry.supporting_sentence_keys}))
    return {key: sorted(entries) for key, entries in found.items()}


def _verdict(tally: Tally, key: str) -> int:
    """Return 2 for a supported response sentence, 1 for one without a judgment, else 0."""
    if key in tally.supported:
        return 2
    return 0 if key in tally.unsupported else 1


def _in_reading_order(example: KeyedExample, keys: frozenset[str]) -> tuple[str, ...]:
    """Sort keys in reading order, special strings last."""
    if not keys:
        return ()
    known = [key for key in example.document_keys() if key in keys]
    return (*known, *sorted(keys.difference(known)))


def _record_flips(a: GPTLabelingOutput, b: GPTLabelingOutput) -> Iterator[DecisionFlip]:
    if a.overall_supported != b.overall_supported:
        yield DecisionFlip("overall_supported", "", _direction(b.overall_supported))
    if (
        isinstance(a, ClaimsLabelingOutput)
        and isinstance(b, ClaimsLabelingOutput)
        and _claims_differ(a.response_claims, b.response_claims)
    ):
        yield DecisionFlip("claims", "", "changed")
    if (
        isinstance(a, ReferenceLabelingOutput)
        and isinstance(b, ReferenceLabelingOutput)
        and _claims_differ(a.reference_claims, b.reference_claims)
    ):
        yield DecisionFlip("reference_claims", "", "changed")


_Claim = ResponseClaim | ComparedClaim | ReferenceClaim


def _claims_differ(a: Sequence[_Claim], b: Sequence[_Claim]) -> bool:
    """Compare two lists of claims by verdicts and keys; order and wording do not count."""
    fields = [type(claim).model_fields.keys() for claim in (*a, *b)]
    names = sorted(set(fields[0]).intersection(*fields) - {"claim"}) if fields else []
    return _facts(a, names) != _facts(b, names)


def _facts(claims: Iterable[_Claim], names: Sequence[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(_fact(getattr(claim, name)) for name in names) for claim in claims)


def _fact(value: Any) -> Any:  # noqa: ANN401 - of any field of a claim
    return tuple(sorted(value)) if isinstance(value, tuple) else value


def _direction(is_gain: bool) -> Direction:
    return "gained" if is_gain else "lost"
