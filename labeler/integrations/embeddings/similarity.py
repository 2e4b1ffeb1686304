"""Answer relevancy by similarity: a judge writes questions, then an embedder compares them.

All questions are written and stored before any text is embedded. Each vector is stored too: a run
with another embedder pays for no questions, and a repeated run pays for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from tempfile import SpooledTemporaryFile

from labeler.data.label_files import to_line
from labeler.data.rows import Rows
from labeler.errors import JudgeError, UsageError
from labeler.integrations.embeddings.cache import EmbeddingCache, Found
from labeler.integrations.embeddings.questioning import QuestionsTasks
from labeler.integrations.embeddings.records import QuestionsOutcome, QuestionsRecord, Similarity
from labeler.integrations.embeddings.vectors import Vector, cosine
from labeler.judges.judge import require_answers
from labeler.judges.pace import Pace
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.run import Run
from labeler.labels.record import LabelFailure, outcome_adapter, records_of

_ROWS_PER_BATCH = 32
"""Rows embedded together: their texts fill about one request."""
_REQUESTS = 4
"""Embedding requests in flight at most: each carries a hundred texts and takes a moment."""
_IN_MEMORY = 32 * 2**20
"""Bytes of questions records kept in memory; more go to a temporary file."""


def compare_rows(
    run: Run, rows: Rows, factory: QuestionsTasks, cache: EmbeddingCache
) -> Generator[QuestionsOutcome, None, None]:
    """Compare each row's question with those that its response answers, in input order.

    Args:
        run: the run, which the caller ends; judge and embedder share its budget.
        rows: rows to compare.
        factory: builds the tasks for questions.
        cache: makes and stores vectors.

    Raises:
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the limits allow.
        StoreError: a store cannot be read or written.
        UsageError: the rows cannot be read.
    """
    require_answers(factory.judge, factory.kind)
    if run.limits is not None and run.limits.budget is not None and cache.embedder.price is None:
        raise UsageError(
            f"a budget needs a price, and none is known for embedder {cache.embedder.spec}: give "
            "one (--embedding-price), or use an embedder that costs nothing"
        )
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as written:
        outcomes = run_tasks(run, rows, [factory])
        written.writelines(to_line(outcome) + "\n" for outcome in outcomes)
        written.seek(0)
        cache.work.spent = run.budget.remaining()
        traffic = run.traffic_for(cache.embedder, _REQUESTS, cache.work.spent)
        questions = records_of(map(outcome_adapter().validate_json, written), "questions")
        yield from _Comparison(run, cache, traffic).compared(questions)


@dataclass(frozen=True)
class _Comparison:
    """Embeds the questions of a run and compares them."""

    run: Run
    cache: EmbeddingCache
    traffic: Pace

    def compared(
        self, outcomes: Iterator[QuestionsOutcome]
    ) -> Generator[QuestionsOutcome, None, None]:
        """Embed some rows at a time, a few batches ahead of the outcomes."""
        waiting: deque[tuple[list[QuestionsOutcome], Future[Found]]] = deque()
        while batch := list(islice(outcomes, _ROWS_PER_BATCH)):
            waiting.append((batch, self._vectors(batch)))
            while waiting and (waiting[0][1].done() or len(waiting) > 2 * _REQUESTS):
                yield from self._finished(*waiting.popleft())
        while waiting:
            yield from self._finished(*waiting.popleft())

    def _vectors(self, outcomes: Iterable[QuestionsOutcome]) -> Future[Found]:
        """Embed the texts of some rows, each text once."""
        texts = dict.fromkeys(
            text
            for outcome in outcomes
            if isinstance(outcome, QuestionsRecord)
            for text in _texts(outcome)
        )
        return self.run.submit_job(lambda: self.cache.vectors(texts), self.traffic)

    def _finished(
        self, outcomes: list[QuestionsOutcome], vectors: Future[Found]
    ) -> Iterator[QuestionsOutcome]:
        found = self.run.wait(vectors)
        for outcome in outcomes:
            if isinstance(outcome, LabelFailure):
                yield outcome
            else:
                yield _with_similarity(outcome, found, self.cache)


def _with_similarity(
    record: QuestionsRecord, found: Found, cache: EmbeddingCache
) -> QuestionsOutcome:
    """Return a record with the cosines of its questions, or a failure."""
    vectors: list[Vector] = []
    for text in _texts(record):
        vector = found[text]
        if isinstance(vector, JudgeError):
            return _failure(record, vector.reason, str(vector))
        vectors.append(vector)
    asked, *written = vectors
    if len({len(vector) for vector in vectors}) > 1:
        return _failure(
            record,
            "unequal_dimensions",
            f"embedder {cache.embedder.spec} gave vectors of several sizes for its texts: it is "
            "another model by now, under the same name; remove the folder of vectors",
        )
    cosines = tuple(cosine(asked, vector) for vector in written)
    similarity = Similarity(embedder=cache.embedder.spec, cosines=cosines)
    return record.model_copy(update={"similarity": similarity})


def _texts(record: QuestionsRecord) -> list[str]:
    """Return the row's question, then the generated ones."""
    return [record.example.question, *record.answer.questions]


def _failure(record: QuestionsRecord, reason: str, message: str) -> LabelFailure:
    return LabelFailure(
        id=record.id,
        reason=reason,
        message=f"{record.id!r}: {message}",
        signature=record.signature,
        metadata=record.example.metadata,
    )
