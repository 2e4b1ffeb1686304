"""Answer relevancy by similarity: a judge writes questions, then an embedder compares them.

All questions are written and stored before any text is embedded. Each comparison is stored too: a
run with another embedder pays for no questions, and a repeated run pays for nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, cast

from labeler.data.label_files import to_line
from labeler.data.options import keywords
from labeler.data.rows import Rows
from labeler.errors import JudgeError, LabelerError, UsageError
from labeler.judges.judge import require_answers
from labeler.judges.limits import Budget
from labeler.judges.pace import CURRENT, Pace, Stopped, current
from labeler.labeling.engine import Job
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.run import Run
from labeler.labeling.starting import begin, judges_of
from labeler.labels.record import LabelFailure, ReplyFacts, parse_outcome
from labeler.plugins.similarity.embedder import (
    Embedded,
    Embedder,
    Vector,
    as_vector,
    cosine,
    open_embedder,
)
from labeler.plugins.similarity.options import SimilarityOptions
from labeler.plugins.similarity.questioning import QuestionsTasks
from labeler.plugins.similarity.records import (
    ComparedQuestions,
    QuestionsOutcome,
    QuestionsRecord,
    Similarity,
    SimilarityRecord,
    similarity_key,
)
from labeler.sentences.splitting import SPLITTERS
from labeler.store.memory import LabelStore, Lease

if TYPE_CHECKING:
    from labeler.data.options import RowSource

_ROWS_PER_BATCH = 32
"""Rows embedded together: their texts fill about one request."""
_REQUESTS = 4
"""Embedding requests in flight at most: each carries a hundred texts and takes a moment."""
_IN_MEMORY = 32 * 2**20
"""Bytes of questions records kept in memory; more go to a temporary file."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two attempts to lease a comparison that another run makes."""

Found = dict[str, Similarity | JudgeError]
"""Similarities by key; an error if a text has no vector."""


@dataclass
class EmbeddingWork:
    """Counts and cost of the comparisons of a run, updated while it runs."""

    stored: int = 0
    """Comparisons found in the store."""
    compared: int = 0
    failed: int = 0
    requests: int = 0
    tokens: int = 0
    """Charged tokens, if the server reports them."""
    spent: Budget = field(default_factory=Budget)
    """Cost of the requests, if the price is known."""

    def add(self, facts: ReplyFacts) -> None:
        """Add the facts of some requests."""
        self.requests += facts.attempts
        self.tokens += facts.usage.prompt_tokens if facts.usage else 0


@keywords(SimilarityOptions)
def iter_similarity(
    rows: RowSource, options: SimilarityOptions
) -> Generator[QuestionsOutcome, None, None]:
    """Compare each row's question with questions generated from its response, in input order.

    The judge writes three questions for each response without seeing the real one; the embedder
    measures their similarity. :func:`metrics` computes numbers from the outcomes.
    Stored questions and comparisons cost nothing.

    Args:
        rows: as for :func:`open_rows`; documents are ignored.
        options: ``embedder`` is a name or an embedder such as ``OpenAIEmbedder(model=…)``;
            ``budget`` covers judge and embedder together.

    Yields:
        A record of questions, or a failure, for each row.

    Raises:
        UsageError: the rows cannot be read; nothing was sent.
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the options allow.
        StoreError: the store cannot be read or written.

    Example:
        >>> from labeler.plugins.similarity import iter_similarity
        >>> for outcome in iter_similarity("rows.jsonl", judge="openai:MODEL"):  # doctest: +SKIP
        ...     print(outcome.id)
    """
    opened = options.open(rows)
    [judge] = judges_of(options, default="openai")
    task = QuestionsTasks(judge, SPLITTERS[options.splitter], options.trial)
    embedder = open_embedder(options.embedder, options.server)
    work = options.work or EmbeddingWork()
    with begin(options) as run:
        yield from compare_rows(run, opened, task, embedder, work)


def compare_rows(
    run: Run, rows: Rows, factory: QuestionsTasks, embedder: Embedder, work: EmbeddingWork
) -> Generator[QuestionsOutcome, None, None]:
    """Compare each row's question with those that its response answers, in input order.

    Args:
        run: the run, which the caller ends; judge and embedder share its budget and its store.
        rows: rows to compare.
        factory: builds the tasks for questions.
        embedder: makes vectors.
        work: filled with what embedding took.

    Raises:
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
        UsageError: the rows cannot be read.
    """
    require_answers(factory.judge, factory.kind)
    if run.limits is not None and run.limits.budget is not None and embedder.price is None:
        raise UsageError(
            f"a budget needs a price, and none is known for embedder {embedder.spec}: give one "
            "(--embedding-price), or use an embedder that costs nothing"
        )
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as written:
        outcomes = run_tasks(run, rows, [factory])
        written.writelines(to_line(outcome) + "\n" for outcome in outcomes)
        written.seek(0)
        work.spent = run.budget.remaining()
        traffic = run.traffic_for(embedder, _REQUESTS, work.spent)
        questions = cast("Iterator[QuestionsOutcome]", map(parse_outcome, written))
        comparison = _Comparison(embedder, run.cache.store, work, traffic)
        waiting: deque[tuple[list[QuestionsOutcome], Job[Found]]] = deque()
        while batch := list(islice(questions, _ROWS_PER_BATCH)):
            asked = [one for one in batch if isinstance(one, QuestionsRecord)]
            job = partial(comparison.similarities, asked)
            waiting.append((batch, run.submit(job)))
            while waiting and (waiting[0][1].succeeded or len(waiting) > 2 * _REQUESTS):
                yield from comparison.outcomes(waiting[0][0], run.wait(waiting.popleft()[1]))
        while waiting:
            yield from comparison.outcomes(waiting[0][0], run.wait(waiting.popleft()[1]))


@dataclass(frozen=True)
class _Comparison:
    """Finds or makes the similarities of one run, all on one event loop."""

    embedder: Embedder
    store: LabelStore
    work: EmbeddingWork
    traffic: Pace

    def outcomes(
        self, outcomes: Iterable[QuestionsOutcome], found: Found
    ) -> Iterator[QuestionsOutcome]:
        """Yield questions with their similarity, or a failure."""
        for outcome in outcomes:
            if isinstance(outcome, LabelFailure):
                yield outcome
                continue
            similarity = found[self._key(outcome)]
            if isinstance(similarity, JudgeError):
                yield _failure(outcome, similarity)
            else:
                yield outcome.model_copy(update={"similarity": similarity})

    async def similarities(self, records: Sequence[QuestionsRecord]) -> Found:
        """Return the similarity or the error of each record.

        Raises:
            FatalJudgeError: no text can be embedded.
            StoreError: the store cannot be read or written.
            Stopped: the run is being stopped.
        """
        CURRENT.set(self.traffic)
        found: Found = {}
        wanted, pause = {self._key(record): record for record in records}, _FIRST_PAUSE
        while wanted:
            self._take_stored(wanted, found)
            # Leases are released before waiting for other runs: two runs never wait for each other.
            async with self._leased(wanted) as (mine, saving):
                self._take_stored(mine, found)
                if mine:
                    await self._make(mine, found, saving)
            wanted = {key: record for key, record in wanted.items() if key not in found}
            if wanted:
                await current().unless_stopped(asyncio.sleep(pause))
                pause = min(_LONGEST_PAUSE, pause * 1.5)
        return found

    def _key(self, record: QuestionsRecord) -> str:
        return similarity_key(record.example.question, record.answer.questions, self.embedder.spec)

    def _take_stored(self, wanted: dict[str, QuestionsRecord], found: Found) -> None:
        """Move stored similarities from ``wanted`` to ``found``."""
        for key in list(wanted):
            stored = self.store.get(key)
            if isinstance(stored, SimilarityRecord):
                found[key] = stored.answer.similarity
                self.work.stored += 1
                del wanted[key]

    @asynccontextmanager
    async def _leased(
        self, wanted: dict[str, QuestionsRecord]
    ) -> AsyncIterator[tuple[dict[str, QuestionsRecord], dict[str, Future[bool]]]]:
        """Lease the free keys until their similarities are saved, even if cancelled."""
        leases = {key: lease for key in wanted if (lease := self.store.lease(key)) is not None}
        saving: dict[str, Future[bool]] = {}
        try:
            yield {key: wanted[key] for key in leases}, saving
        finally:
            for key, lease in leases.items():
                if key in saving:
                    saving[key].add_done_callback(partial(_release, lease))
                else:
                    lease.release()

    async def _make(
        self, wanted: dict[str, QuestionsRecord], found: Found, saving: dict[str, Future[bool]]
    ) -> None:
        """Embed the texts of records, each text once, and save the similarities."""
        traffic = current()
        texts = list(dict.fromkeys(t for record in wanted.values() for t in _texts(record)))
        async with traffic.slot():
            embedded = await self._embedded(texts)
            self.work.add(embedded.facts)
            vectors = dict(zip(texts, embedded.vectors, strict=True))
            for key, record in wanted.items():
                found[key] = similarity = self._similarity(record, vectors)
                if isinstance(similarity, JudgeError):
                    self.work.failed += 1
                    continue
                self.work.compared += 1
                questions = record.answer.questions
                made = SimilarityRecord(
                    key=key,
                    example=record.example,
                    answer=ComparedQuestions(questions=questions, similarity=similarity),
                    signature=record.signature,
                    reply=embedded.facts,
                )
                saving[key] = self.store.put(made)
            for saved in list(saving.values()):
                await traffic.unless_stopped(asyncio.wrap_future(saved))

    def _similarity(
        self, record: QuestionsRecord, vectors: dict[str, Vector | JudgeError]
    ) -> Similarity | JudgeError:
        """Return the cosines of a record's questions, or why there are none."""
        own: list[Vector] = []
        for text in _texts(record):
            vector = vectors[text]
            if isinstance(vector, JudgeError):
                return vector
            own.append(vector)
        asked, *written = own
        if len(set(map(len, own))) > 1:
            return JudgeError(
                f"embedder {self.embedder.spec} gave vectors of several sizes",
                reason="unequal_dimensions",
            )
        cosines = tuple(cosine(asked, vector) for vector in written)
        return Similarity(embedder=self.embedder.spec, cosines=cosines)

    async def _embedded(self, texts: Sequence[str]) -> Embedded:
        """Embed texts; a bug of the embedder costs these texts, not the run."""
        try:
            given = await self.embedder.embed(texts)
            vectors = tuple(map(self._usable, given.vectors))
            if len(vectors) == len(texts) and isinstance(given.facts, ReplyFacts):
                return Embedded(vectors, given.facts)
            bug = f"gave {len(vectors)} vectors for {len(texts)} texts"
        except (LabelerError, Stopped):
            raise
        except Exception as error:  # noqa: BLE001 - its words may hold a key or a text
            bug = f"raised {type(error).__name__}"
        return Embedded((self._fault(bug),) * len(texts), ReplyFacts(attempts=0))

    def _usable(self, vector: Vector | JudgeError) -> Vector | JudgeError:
        if isinstance(vector, JudgeError):
            return vector
        try:
            return as_vector(vector)
        except (TypeError, ValueError):
            return self._fault("returned something other than lists of finite numbers")

    def _fault(self, bug: str) -> JudgeError:
        return JudgeError(
            f"embedder {self.embedder.spec} {bug}: a fault of the embedder's code, not of the text",
            reason="embedder_error",
        )


def _release(lease: Lease, _saved: Future[bool]) -> None:
    lease.release()


def _texts(record: QuestionsRecord) -> list[str]:
    """Return the row's question, then the generated ones."""
    return [record.example.question, *record.answer.questions]


def _failure(record: QuestionsRecord, error: JudgeError) -> LabelFailure:
    return LabelFailure(
        id=record.id,
        reason=error.reason,
        message=f"{record.id!r}: {error}",
        signature=record.signature,
        metadata=record.example.metadata,
    )
