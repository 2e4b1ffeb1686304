"""From rows to how like its question each response keeps: questions are written, then compared.

First the judge writes questions for every response, and all of them are stored. Then the texts are
embedded, many in one request, and each vector is stored. Either is paid for once: whoever changes
the embedder pays for no questions, and who runs it again pays for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from tempfile import SpooledTemporaryFile

from labeler.data.label_files import to_line
from labeler.data.rows import Rows
from labeler.errors import JudgeError, UsageError
from labeler.integrations.embeddings.cache import Found, Shelf
from labeler.integrations.embeddings.questioning import QuestionsTasks
from labeler.judges.judge import require_answers
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.traffic import Limits, Traffic
from labeler.labeling.engine import Engine
from labeler.labeling.pipeline import (
    DEFAULT_CONCURRENCY,
    GRACE_SECONDS,
    Origin,
    Watcher,
    label_rows,
)
from labeler.labels.questions import Similarity
from labeler.labels.record import (
    OUTCOME,
    AnyOutcome,
    LabelFailure,
    QuestionsOutcome,
    QuestionsRecord,
    records_of,
)
from labeler.labels.vectors import Vector, cosine
from labeler.store.protocol import LabelStore

_TOGETHER = 32
"""Rows whose texts are embedded together: about as many texts as go into one request."""
_REQUESTS = 4
"""Embedding requests in flight at most: each carries a hundred texts and takes a moment."""
_IN_MEMORY = 32 * 2**20
"""Bytes of written questions, rows included, that wait in memory; more wait in a file."""
_NOTHING = Decimal("1E-12")
"""A budget that nothing fits into: limits know no budget of 0."""


def compare_rows(
    rows: Rows,
    how: QuestionsTasks,
    store: LabelStore,
    shelf: Shelf,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
) -> Generator[QuestionsOutcome, None, None]:
    """Compare each row's question with those that its response would reply to, in input order.

    Args:
        rows: what is compared.
        how: judge and splitter.
        store: where written questions are looked up and saved.
        shelf: where vectors come from.
        concurrency: requests to the judge in flight at most.
        limits: what else holds requests back; a budget is one for judge and embedder together.
        retry_failed: ask again where the store holds a lasting failure.
        watcher: told how the questions go.

    Raises:
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the limits allow.
        StoreError: a store cannot be read or written.
        UsageError: the rows cannot be read, or two share an id and differ.
    """
    require_answers(how.judge, how.kind)
    limits, meter = limits or Limits(), _Meter(watcher)
    if limits.budget is not None and shelf.embedder.price is None:
        raise UsageError(
            f"a budget needs a price, and none is known for embedder {shelf.embedder.spec}: give "
            "one (--embedding-price), or use an embedder that costs nothing"
        )
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as written:
        with closing(
            label_rows(
                rows,
                how,
                store,
                concurrency=concurrency,
                limits=limits,
                retry_failed=retry_failed,
                watcher=meter,
            )
        ) as asking:
            written.writelines(to_line(outcome) + "\n" for outcome in asking)
        written.seek(0)
        outcomes = records_of(map(OUTCOME.validate_json, written), "questions")
        yield from _compared(outcomes, shelf, meter.left(limits), meter.notice)


class _Meter:
    """Passes on what a run tells, and keeps what its requests cost.

    Args:
        watcher: whom it is passed on to.
    """

    def __init__(self, watcher: Watcher | None) -> None:
        self._watcher = watcher
        self._spent = Decimal(0)

    def left(self, limits: Limits) -> Limits:
        """What the limits still allow."""
        if limits.budget is None:
            return limits
        return replace(limits, budget=max(limits.budget - self._spent, _NOTHING))

    def begin(self, rows: int, repeated: int) -> None:
        if self._watcher:
            self._watcher.begin(rows, repeated)

    def seen(self, outcome: AnyOutcome, origin: Origin) -> None:
        if self._watcher:
            self._watcher.seen(outcome, origin)

    def paid(self, outcome: AnyOutcome) -> None:
        if self._watcher:
            self._watcher.paid(outcome)

    def ended(self, spent: Budget) -> None:
        self._spent = spent.spent
        if self._watcher:
            self._watcher.ended(spent)

    def notice(self, text: str) -> None:
        if self._watcher:
            self._watcher.notice(text)


def _compared(
    outcomes: Iterator[QuestionsOutcome],
    shelf: Shelf,
    limits: Limits,
    notice: Callable[[str], None],
) -> Generator[QuestionsOutcome, None, None]:
    """Embed the texts of some rows at a time, a few times ahead of what is yielded."""
    traffic = Traffic(_REQUESTS, limits, notice=notice)
    shelf.work.spent = traffic.budget
    engine = Engine(traffic, grace=GRACE_SECONDS, last=shelf.embedder.aclose)
    waiting: deque[tuple[list[QuestionsOutcome], Future[Found]]] = deque()
    try:
        while together := list(islice(outcomes, _TOGETHER)):
            waiting.append((together, _vectors(engine, shelf, together)))
            while waiting and (waiting[0][1].done() or len(waiting) > 2 * _REQUESTS):
                yield from _told(*waiting.popleft(), engine, shelf)
        while waiting:
            yield from _told(*waiting.popleft(), engine, shelf)
    finally:
        engine.stop()


def _vectors(engine: Engine, shelf: Shelf, outcomes: Iterable[QuestionsOutcome]) -> Future[Found]:
    """Have the texts of some rows embedded, each once."""
    texts = dict.fromkeys(
        text
        for outcome in outcomes
        if isinstance(outcome, QuestionsRecord)
        for text in _texts(outcome)
    )
    return engine.submit(lambda: shelf.vectors(texts))


def _told(
    outcomes: list[QuestionsOutcome], vectors: Future[Found], engine: Engine, shelf: Shelf
) -> Iterator[QuestionsOutcome]:
    found = engine.wait(vectors)
    for outcome in outcomes:
        if isinstance(outcome, LabelFailure):
            yield outcome
        else:
            yield _with_similarity(outcome, found, shelf)


def _with_similarity(record: QuestionsRecord, found: Found, shelf: Shelf) -> QuestionsOutcome:
    """A record with the cosines of its questions, or why there are none."""
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
            f"embedder {shelf.embedder.spec} gave vectors of several sizes for its texts: it is "
            "another model by now, under the same name; remove the folder of vectors to begin anew",
        )
    cosines = tuple(cosine(asked, vector) for vector in written)
    similarity = Similarity(embedder=shelf.embedder.spec, cosines=cosines)
    return record.model_copy(update={"similarity": similarity})


def _texts(record: QuestionsRecord) -> list[str]:
    """The question that was asked, then those that were written."""
    return [record.example.question, *record.answer.questions]


def _failure(record: QuestionsRecord, reason: str, message: str) -> LabelFailure:
    return LabelFailure(
        id=record.id,
        reason=reason,
        message=f"{record.id!r}: {message}",
        signature=record.signature,
        metadata=record.example.metadata,
    )
