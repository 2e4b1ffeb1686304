"""Small label records for tests of what keeps and moves them."""

from __future__ import annotations

from typing import Any

from labeler.labels.record import LabelFailure, LabelRecord, ReplyFacts, Usage
from labeler.labels.signature import Artifact, Signature, label_key
from labeler.sentences.example import KeyedExample, Sentence
from support.labeled import output


def sentence(key: str, text: str) -> Sentence:
    """A sentence that starts its text."""
    return Sentence(key=key, text=text, start=0, end=len(text))


def keyed_example(n: int = 0, *, filler: str = "", **changes: object) -> KeyedExample:
    """One document of two sentences and a response of one; every n asks something else."""
    facts: dict[str, Any] = {
        "id": f"row-{n}",
        "question": f"How high is tower {n}?",
        "documents": ((sentence("0a", f"It is high.{filler}"), sentence("0b", "It rains.")),),
        "response": (sentence("a", f"Tower {n} is {n} m high."),),
        "splitter": "general/1",
        "metadata": {"n": n, "tags": ["a", None, 0.5], "text": "naïve 日本\u2028\u0000 \r\n"},
    }
    return KeyedExample.model_validate(facts | changes)


def sample_record(
    n: int = 0, *, explanation: str = "It says so.", example: KeyedExample | None = None
) -> LabelRecord:
    """A sound record; every n has another key."""
    example = example or keyed_example(n)
    signature = Signature(
        judge="fake",
        model="none-1",
        sampling={"temperature": 0.0, "seed": 7},
        prompt=Artifact(name="trace/v1", digest="1" * 64),
        response_schema=Artifact(name="trace/v1", digest="0" * 64),
        splitter=example.splitter,
    )
    return LabelRecord(
        key=label_key(example, signature),
        example=example,
        label=output(support={"a": ["0a"]}, explanation=explanation),
        normalised={"spelling": 1},
        signature=signature,
        reply=ReplyFacts(usage=Usage(prompt_tokens=9), seconds=0.25, created_at="2026-11-22"),
    )


def sample_failure(n: int = 0, *, message: str = "It was refused.") -> LabelFailure:
    """A failure under the key that the record of the same n has."""
    record = sample_record(n)
    return LabelFailure(
        id=record.id,
        reason="refusal",
        message=message,
        attempts=1,
        usage=Usage(prompt_tokens=9),
        lasting=True,
        key=record.key,
        signature=record.signature,
        metadata=record.example.metadata,
    )
