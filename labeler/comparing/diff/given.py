"""Answers as they were given, in parts that can be taken from either of two.

Some metrics read the verbatim answer, in which keys stand twice, in odd spellings or for no
sentence at all. What an answer says of a decision that flipped goes with the flip; all the rest is
one part of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from labeler.comparing.diff.decisions import SENTENCE_FIELDS, Field
from labeler.labels.answers import (
    GPTLabelingOutput,
    SentenceSupport,
    VerbatimLabel,
    VerbatimSupport,
)
from labeler.labels.contract import check_label
from labeler.sentences.example import KeyedExample

T = TypeVar("T")

Answer = GPTLabelingOutput | VerbatimLabel
Entry = SentenceSupport | VerbatimSupport


@dataclass(frozen=True)
class _Parts:
    """A list of one answer: what belongs to flipped sentences, and what is left."""

    flipped: Mapping[str, tuple[object, ...]]
    rest: tuple[object, ...]

    def of(self, key: str) -> tuple[object, ...]:
        return self.flipped.get(key, ())


@dataclass(frozen=True)
class Given:
    """Two answers as they were given, A's first, by their parts.

    Attributes:
        answers: the answers.
        relevant: their relevant keys.
        utilized: their utilized keys.
        support: their judgements of response sentences.
    """

    answers: tuple[Answer, Answer]
    relevant: tuple[_Parts, _Parts]
    utilized: tuple[_Parts, _Parts]
    support: tuple[_Parts, _Parts]

    @classmethod
    def of(
        cls,
        example: KeyedExample,
        answers: tuple[Answer, Answer],
        flipped: Mapping[Field, frozenset[str]],
    ) -> Given:
        """Part two answers.

        Args:
            example: the sentences of both.
            answers: A's and B's.
            flipped: by field, the sentences whose decisions differ.
        """
        names = _Names(example)
        judged = frozenset[str]().union(*(flipped.get(name, ()) for name in SENTENCE_FIELDS))
        relevant, utilized = flipped.get("relevant", ()), flipped.get("utilized", ())
        first, second = (
            (
                _parted(answer.all_relevant_sentence_keys, names.document, relevant),
                _parted(answer.all_utilized_sentence_keys, names.document, utilized),
                _parted(_entries(answer), names.response, judged),
            )
            for answer in answers
        )
        return cls(answers, *zip(first, second, strict=True))

    @property
    def differs(self) -> bool:
        """Whether the answers differ in what no flip takes along; explanations do not count."""
        keys = [
            sorted(map(str, pair[0].rest)) != sorted(map(str, pair[1].rest))
            for pair in (self.relevant, self.utilized)
        ]
        return any(keys) or _facts(self.support[0].rest) != _facts(self.support[1].rest)

    def mixed(
        self,
        *,
        relevant: Iterable[str],
        utilized: Iterable[str],
        judged: Iterable[str],
        overall: bool,
        rest: int,
    ) -> VerbatimLabel:
        """An answer of parts of both.

        Args:
            relevant: flipped sentences whose relevance is B's.
            utilized: those whose use is.
            judged: flipped response sentences whose judgement is.
            overall: the verdict on the whole.
            rest: whose answer what no flip takes along is of: 0 for A's, 1 for B's.
        """
        base = self.answers[rest]
        return VerbatimLabel.model_construct(
            relevance_explanation=base.relevance_explanation,
            all_relevant_sentence_keys=_joined(self.relevant, frozenset(relevant), rest),
            overall_supported_explanation=base.overall_supported_explanation,
            overall_supported=overall,
            sentence_support_information=_joined(self.support, frozenset(judged), rest),
            all_utilized_sentence_keys=_joined(self.utilized, frozenset(utilized), rest),
        )


class _Names:
    """Which sentence a text names, by the rules of the contract."""

    def __init__(self, example: KeyedExample) -> None:
        self._example = example
        self._document = {key: key for key in example.document_keys()}
        self._response = {key: key for key in example.response_keys()}

    def document(self, text: str) -> str | None:
        """The first document sentence that a text names; ``None`` where it names none."""
        if text not in self._document:
            named = self._read(relevant=(text,)).all_relevant_sentence_keys
            return named[0] if named else None
        return text

    def response(self, entry: Entry) -> str | None:
        """The response sentence that a judgement is of; ``None`` where there is none such."""
        text = entry.response_sentence_key
        if text not in self._response:
            given = VerbatimSupport(
                response_sentence_key=text,
                explanation="",
                supporting_sentence_keys=(),
                fully_supported=False,
            )
            named = self._read(support=(given,)).sentence_support_information
            return named[0].response_sentence_key if named else None
        return text

    def _read(
        self, relevant: tuple[str, ...] = (), support: tuple[VerbatimSupport, ...] = ()
    ) -> GPTLabelingOutput:
        answer = VerbatimLabel(
            relevance_explanation="",
            all_relevant_sentence_keys=relevant,
            overall_supported_explanation="",
            overall_supported=False,
            sentence_support_information=support,
            all_utilized_sentence_keys=(),
        )
        return check_label(answer, self._example).label


def _entries(answer: Answer) -> tuple[Entry, ...]:
    return answer.sentence_support_information


def _parted(
    given: Iterable[T], owner: Callable[[T], str | None], flipped: Collection[str]
) -> _Parts:
    own: dict[str, tuple[object, ...]] = {}
    rest: list[object] = []
    for item in given:
        key = owner(item)
        if key is not None and key in flipped:
            own[key] = (*own.get(key, ()), item)
        else:
            rest.append(item)
    return _Parts(own, tuple(rest))


def _joined(pair: tuple[_Parts, _Parts], from_b: frozenset[str], rest: int) -> tuple[object, ...]:
    keys = dict.fromkeys([*pair[0].flipped, *pair[1].flipped])
    flipped = [item for key in keys for item in pair[key in from_b].of(key)]
    return (*pair[rest].rest, *flipped)


def _facts(entries: Iterable[object]) -> list[tuple[str, tuple[str, ...], str]]:
    """What metrics may read of judgements."""
    return sorted(
        (e.response_sentence_key, tuple(sorted(e.supporting_sentence_keys)), str(e.fully_supported))
        for e in entries
        if isinstance(e, SentenceSupport | VerbatimSupport)
    )
