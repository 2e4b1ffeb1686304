"""Keyed examples and requests for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.judges.judge import JudgeSpec
from labeler.judges.prompting import DEFAULT_PROMPT, load_prompt
from labeler.judges.task import Task, judged_task
from labeler.labels.signature import DEFAULT_SCHEMA, Signature, load_schema
from labeler.sentences.example import KeyedExample, Piece, key_sentences

SPLITTER = "given/1"


def pieces(sentences: Sequence[str]) -> list[Piece]:
    """Sentences with the offsets that they have when joined by one space."""
    found, start = [], 0
    for text in sentences:
        found.append(Piece(text=text, start=start, end=start + len(text)))
        start += len(text) + 1
    return found


def keyed_example(
    *,
    id: str = "r1",  # noqa: A002 - the field's name
    question: str = "What is the capital of France?",
    documents: Sequence[Sequence[str]] = (
        ("Paris is the capital of France.", "It lies on the Seine."),
        ("Lyon is in the south.",),
    ),
    response: Sequence[str] = ("Paris is the capital.", "It lies on the Seine."),
    reference: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> KeyedExample:
    """An example whose sentences are given: documents ``0a 0b``, ``1a``; response ``a b``."""
    return KeyedExample(
        id=id,
        question=question,
        documents=tuple(key_sentences(str(d), pieces(one)) for d, one in enumerate(documents)),
        response=key_sentences("", pieces(response)),
        reference=None if reference is None else key_sentences("ref.", pieces(reference)),
        splitter=SPLITTER,
        metadata=dict(metadata or {}),
    )


def signature(
    spec: JudgeSpec | None = None,
    *,
    prompt: str = DEFAULT_PROMPT,
    schema: str = DEFAULT_SCHEMA,
    trial: int = 0,
) -> Signature:
    """The signature of a judgment with given sentences."""
    spec = spec or JudgeSpec(judge="test", model="test-1")
    return Signature(
        judge=spec.judge,
        model=spec.model,
        sampling=spec.sampling(),
        prompt=load_prompt(prompt).artifact,
        response_schema=load_schema(schema).artifact,
        splitter=SPLITTER,
        trial=trial,
    )


def request(
    example: KeyedExample | None = None,
    spec: JudgeSpec | None = None,
    *,
    prompt: str = DEFAULT_PROMPT,
    schema: str = DEFAULT_SCHEMA,
    trial: int = 0,
) -> Task:
    """The request that the pipeline makes of an example."""
    example = example or keyed_example()
    made_by = signature(spec, prompt=prompt, schema=schema, trial=trial)
    return judged_task(example, made_by, load_prompt(prompt), load_schema(schema))
