"""Written questions and their cosines, for tests."""

from __future__ import annotations

from labeler.labels.signature import Artifact, Signature
from labeler.plugins.similarity.records import (
    EmbedderSpec,
    QuestionsAnswer,
    QuestionsRecord,
    Similarity,
    questions_key,
)
from support import samples

EMBEDDER = EmbedderSpec(embedder="openai", model="e")
SIGNATURE = Signature(
    judge="openai",
    model="m",
    prompt=Artifact(name="questions/v1", digest="0" * 64),
    response_schema=Artifact(name="questions/v1", digest="1" * 64),
    splitter="general/1",
)


def questions_record(
    *cosines: float | None,
    noncommittal: bool = False,
    embedder: EmbedderSpec = EMBEDDER,
    id: str = "r",  # noqa: A002 - the row's field
) -> QuestionsRecord:
    """A record whose questions have these cosines, or none."""
    example = samples.keyed_example(id=id)
    return QuestionsRecord(
        key=questions_key(example, SIGNATURE),
        example=example,
        answer=QuestionsAnswer(
            noncommittal_explanation="it says so",
            noncommittal=noncommittal,
            questions=("one?", "two?", "three?"),
        ),
        similarity=Similarity(embedder=embedder, cosines=cosines) if cosines else None,
        signature=SIGNATURE,
    )
