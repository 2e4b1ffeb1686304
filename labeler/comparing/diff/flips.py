"""Which decisions of two labels of the very same sentences differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from labeler.calculators import Tally
from labeler.comparing.diff.decisions import FIELDS, DecisionFlip, Direction, Field
from labeler.comparing.diff.given import Given
from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
)
from labeler.sentences.example import KeyedExample


@dataclass(frozen=True)
class Side:
    """One label of a pair, and what its metrics read."""

    label: GPTLabelingOutput
    tally: Tally

    def verdict(self, key: str) -> int:
        """Of a response sentence: 2 supported, 1 not judged, 0 unsupported."""
        if key in self.tally.supported:
            return 2
        return 0 if key in self.tally.unsupported else 1

    def support(self) -> dict[str, list[frozenset[str]]]:
        """Supporting keys by response sentence; imported labels may judge one twice."""
        found: dict[str, list[frozenset[str]]] = defaultdict(list)
        for entry in self.label.sentence_support_information:
            found[entry.response_sentence_key].append(frozenset(entry.supporting_sentence_keys))
        return found


def flips_between(
    example: KeyedExample, a: Side, b: Side
) -> tuple[tuple[DecisionFlip, ...], Given | None]:
    """What B decides otherwise than A, in reading order.

    Args:
        example: the sentences of both.
        a: the label that changes start from.
        b: the label that is compared with it.

    Returns:
        The flips; and how the answers as they were given are made of parts, ``None`` where both
        labels are the answers as they were given.
    """
    flips = [*_document_flips(example, a, b), *_response_flips(example, a, b), *_whole_flips(a, b)]
    if a.tally.stored is a.label and b.tally.stored is b.label:
        return tuple(flips), None
    given = Given.of(
        example, (a.tally.stored, b.tally.stored), {f: _keys(flips, f) for f in FIELDS}
    )
    if given.differs:
        flips.append(DecisionFlip("as_given", "", "changed"))
    return tuple(flips), given


def _keys(flips: Iterable[DecisionFlip], field: Field) -> frozenset[str]:
    return frozenset(flip.key for flip in flips if flip.field == field)


def _document_flips(example: KeyedExample, a: Side, b: Side) -> Iterator[DecisionFlip]:
    relevant = a.tally.relevant ^ b.tally.relevant
    utilized = a.tally.utilized ^ b.tally.utilized
    if not relevant and not utilized:
        return
    for sentence in example.document_sentences():
        key = sentence.key
        if key in relevant:
            yield DecisionFlip("relevant", key, _direction(key in b.tally.relevant))
        if key in utilized:
            yield DecisionFlip("utilized", key, _direction(key in b.tally.utilized))


def _response_flips(example: KeyedExample, a: Side, b: Side) -> Iterator[DecisionFlip]:
    before, after = a.support(), b.support()
    for sentence in example.response:
        key = sentence.key
        mine, theirs = a.verdict(key), b.verdict(key)
        if mine == theirs and _alike(before.get(key, ()), after.get(key, ())):
            continue
        named = [frozenset[str]().union(*side.get(key, ())) for side in (before, after)]
        yield DecisionFlip(
            "supporting_keys" if mine == theirs else "supported",
            key,
            "changed" if mine == theirs else _direction(theirs > mine),
            gained=_ordered(example, named[1] - named[0]),
            lost=_ordered(example, named[0] - named[1]),
        )


def _alike(mine: Sequence[frozenset[str]], theirs: Sequence[frozenset[str]]) -> bool:
    return sorted(map(sorted, mine)) == sorted(map(sorted, theirs))


def _ordered(example: KeyedExample, keys: frozenset[str]) -> tuple[str, ...]:
    """Reading order, special strings last."""
    if not keys:
        return ()
    known = [key for key in example.document_keys() if key in keys]
    return (*known, *sorted(keys.difference(known)))


def _whole_flips(a: Side, b: Side) -> Iterator[DecisionFlip]:
    mine, theirs = a.label, b.label
    if mine.overall_supported != theirs.overall_supported:
        yield DecisionFlip("overall_supported", "", _direction(theirs.overall_supported))
    if not isinstance(mine, ClaimsLabelingOutput) or not isinstance(theirs, ClaimsLabelingOutput):
        return
    if _claims(mine.response_claims, theirs.response_claims):
        yield DecisionFlip("claims", "", "changed")
    if (
        isinstance(mine, ReferenceLabelingOutput)
        and isinstance(theirs, ReferenceLabelingOutput)
        and _claims(mine.reference_claims, theirs.reference_claims)
    ):
        yield DecisionFlip("reference_claims", "", "changed")


_Claim = ResponseClaim | ComparedClaim | ReferenceClaim


def _claims(mine: Sequence[_Claim], theirs: Sequence[_Claim]) -> bool:
    """Whether two lists of claims say different things; their order and wording are no matter."""
    shared = {name for claim in (*mine, *theirs) for name in type(claim).model_fields}
    for claim in (*mine, *theirs):
        shared &= type(claim).model_fields.keys()
    names = sorted(shared - {"claim"})
    return _facts(mine, names) != _facts(theirs, names)


def _facts(claims: Sequence[_Claim], names: Sequence[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(_fact(getattr(claim, name)) for name in names) for claim in claims)


def _fact(value: Any) -> Any:  # noqa: ANN401 - of any field of a claim
    return tuple(sorted(value)) if isinstance(value, tuple) else value


def _direction(is_gain: bool) -> Direction:
    return "gained" if is_gain else "lost"
