"""Corrections: a person's judgment of one label, and how it differs from the judge's.

A correction is an event. It is kept forever and changes no stored label. ``file`` stores
corrections, ``applying`` makes corrected labels of the decisions of one or several people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput, in_order, judged_sentences
from labeler.labels.record import LabelRecord
from labeler.sentences.example import Frozen

Opinion = Literal["agree", "disagree", "unsure"]
Queue = Literal["random", "doubtful", "order", "chosen"]
"""How a record was selected for a person: at random, by suspicion, in file order, or by the person.
Only the random sample represents all records."""

LONGEST_COMMENT = 20_000
"""Largest length of a comment in characters."""
LONGEST_NAME = 200
"""Largest length of an annotator's name in characters."""
MOST_KEYS = 100_000
"""Largest number of sentences in one field."""
_SHOWN_KEYS = 5
"""Most keys that a fault lists."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|\+00:00)", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def _encodable(text: str) -> str:
    """Reject lone surrogates; pydantic does so only for texts of limited length."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must not hold a lone surrogate") from None
    return text


def one_line(text: str) -> str:
    """Return a name, checked to be one line of text.

    Raises:
        ValueError: it holds a control character, or space at an end.
    """
    if _CONTROL.search(text) or text.strip() != text:
        raise ValueError("must hold no control characters and no space at its ends")
    return text


def _utc_time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError("must be a time in UTC such as 2026-11-22T10:45:00+00:00")
    datetime.fromisoformat(text)
    return text


Key = Annotated[str, Field(min_length=1, max_length=64)]
"""A sentence key, or a special support string."""
Keys = Annotated[tuple[Key, ...], Field(max_length=MOST_KEYS)]


class Judgment(Frozen):
    """What a person says of the sentences of one record, in full."""  # in a published schema

    relevant: Keys
    """Keys of the document sentences that help to answer the question, in reading order."""
    utilized: Keys
    """Keys of the document sentences whose information the response uses, in reading order."""
    support: Annotated[dict[Key, Keys], Field(max_length=MOST_KEYS)]
    """For each fully supported response sentence its supporting document sentences or special
    strings; empty if the person named none."""
    overall_supported: bool
    """True if the response as a whole is supported."""

    def check_against(self, record: LabelRecord) -> tuple[str, ...]:
        """Return the keys that the record does not have, or that repeat, as messages."""
        documents = frozenset(record.example.document_keys())
        faults = [
            *_key_faults("relevant", self.relevant, documents),
            *_key_faults("utilized", self.utilized, documents),
            *_key_faults("support", self.support, frozenset(record.example.response_keys())),
        ]
        conversation = (s.key for s in record.example.conversation_sentences())
        supporting = documents.union(SPECIAL_SUPPORT, conversation)
        for key, keys in self.support.items():
            faults += _key_faults(f"support of {key!r}", keys, supporting)
        return tuple(faults)


def _key_faults(field: str, keys: Collection[str], known: frozenset[str]) -> Iterator[str]:
    unknown = dict.fromkeys(key for key in keys if key not in known)
    # A mapping would be taken for counts, so its keys are counted one by one.
    repeated = [key for key, count in Counter(iter(keys)).items() if count > 1 and key in known]
    for fault, found in (("which the record does not have", unknown), ("twice", repeated)):
        if found:
            shown = ", ".join(f"{key!r:.40}" for key in list(found)[:_SHOWN_KEYS])
            yield f"{field} names {shown}{', …' if len(found) > _SHOWN_KEYS else ''} {fault}"


class Correction(Frozen):
    """One judgment of one person on one label; a later one of the same person replaces it."""

    kind: Literal["correction"] = "correction"
    version: Literal[1] = 1
    key: str = Field(pattern="^[0-9a-f]{64}$")
    """Key of the label."""
    id: Annotated[str, AfterValidator(_encodable)]
    """The row's id."""
    annotator: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST_NAME),
        AfterValidator(one_line),
    ]
    """The person."""
    at: Annotated[str, AfterValidator(_utc_time)]
    """The time of the judgment, ISO 8601 in UTC."""
    opinion: Opinion
    """The person's opinion of the judge's label; ``disagree`` if the judgment differs."""
    judgment: Judgment | None = None
    """``None`` if the person did not judge, for example when unsure."""
    comment: str = Field(default="", max_length=LONGEST_COMMENT)
    """The person's reasons."""
    blind: bool = False
    """True if the judge's verdicts were hidden until the person had judged."""
    queue: Queue = "chosen"
    """How the record was selected."""
    withdrawn: bool = False
    """True if this event only takes back the person's earlier correction."""
    source: str = Field(default="review", min_length=1, max_length=LONGEST_NAME)
    """The tool: ``review`` is the review app, others are names of imported tools."""

    @property
    def verdict(self) -> Judgment | None:
        """The judgment that counts; ``None`` if the person is unsure or withdrew."""
        return None if self.withdrawn or self.opinion == "unsure" else self.judgment

    def check_against(self, record: LabelRecord) -> tuple[str, ...]:
        """Return what does not fit the record, as messages; empty if all fits."""
        if self.key != record.key:
            return ("it speaks of another label",)
        return () if self.judgment is None else self.judgment.check_against(record)


@dataclass(frozen=True)
class Differences:
    """The decisions in which a judgment differs from a label; false if there are none.

    Attributes:
        relevant: document sentences that only one of the two calls relevant.
        utilized: document sentences that only one calls utilized.
        supported: response sentences that only one calls supported.
        support: response sentences that both call supported, by different keys; not those for which
            the person named no keys.
        overall_supported: True if they differ on the response as a whole.
    """

    relevant: tuple[str, ...] = ()
    utilized: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    support: tuple[str, ...] = ()
    overall_supported: bool = False

    def __bool__(self) -> bool:
        return any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """Return the number of different decisions by field."""
        return {
            name: len(value) if isinstance(value, tuple) else int(value)
            for name, value in vars(self).items()
        }


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


def judgment_of(label: GPTLabelingOutput) -> Judgment:
    """Return a judge's label in the form of a judgment, from which a person starts."""
    return Judgment(
        relevant=in_order(label.all_relevant_sentence_keys),
        utilized=in_order(label.all_utilized_sentence_keys),
        support={
            key: in_order(entry.supporting_sentence_keys)
            for key, entry in judged_sentences(label).items()
            if entry.fully_supported
        },
        overall_supported=label.overall_supported,
    )


def decided(record: LabelRecord, correction: Correction) -> frozenset[str]:
    """Return the response sentences that a person decided on.

    A judgment names only the supported sentences. A person who disagrees decides against all
    others. A person who agrees decides only on sentences that the judge judged; imported labels may
    lack some.
    """
    if correction.opinion == "agree":
        return frozenset(judged_sentences(record.label))
    return frozenset(record.example.response_keys())


def differences(label: GPTLabelingOutput, judgment: Judgment) -> Differences:
    """Compare a person's judgment with a judge's label."""
    judge = judgment_of(label)
    return Differences(
        relevant=in_order({*judge.relevant} ^ {*judgment.relevant}),
        utilized=in_order({*judge.utilized} ^ {*judgment.utilized}),
        supported=in_order(judge.support.keys() ^ judgment.support.keys()),
        support=in_order(
            key
            for key in judge.support.keys() & judgment.support.keys()
            if judgment.support[key] and {*judge.support[key]} != {*judgment.support[key]}
        ),
        overall_supported=judge.overall_supported != judgment.overall_supported,
    )


def drawn_at_random(events: Iterable[Correction]) -> frozenset[str]:
    """Return the keys of the labels that were ever drawn at random.

    A person may judge such a label again from another queue, or take a judgment back: the label
    stays in the random sample.
    """
    return frozenset(event.key for event in events if event.queue == "random")
