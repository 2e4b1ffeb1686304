"""Answer relevancy by similarity: a judge writes questions, then an embedder compares them.

The judge sees the response alone. All questions are written and stored before any text is embedded.
Each comparison is stored too: a run with another embedder pays for no questions, and a repeated run
pays for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, cast

from labeler.data.options import keywords
from labeler.data.rows import Rows
from labeler.errors import BadRow, JudgeError, LabelerError, UsageError
from labeler.judges.judge import Judge, require_answers
from labeler.judges.limits import Budget
from labeler.judges.pace import CURRENT, Pace, Stopped
from labeler.judges.prompting import Message, Prompt, chat, fill, prompt_parts, sentence_lines
from labeler.judges.task import Task, TaskKind
from labeler.labeling.cache import LabelCache, Leased, until_saved
from labeler.labeling.engine import Job
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.run import Run
from labeler.labeling.starting import begin, judges_of
from labeler.labels.record import LabelFailure, ReplyFacts, parse_outcome
from labeler.labels.signature import Signature, digest, load_schema, read_resource
from labeler.plugins.similarity import SimilarityOptions
from labeler.plugins.similarity.embedders import (
    Embedded,
    Embedder,
    Vector,
    as_vector,
    cosine,
    open_embedder,
)
from labeler.plugins.similarity.records import (
    ComparedQuestions,
    QuestionsAnswer,
    QuestionsOutcome,
    QuestionsRecord,
    Similarity,
    SimilarityRecord,
    questions_key,
    similarity_key,
)
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import SPLITTERS, Splitter, key_example

if TYPE_CHECKING:
    from labeler.data.options import RowSource

PROMPT = SCHEMA = "questions/v1"
_ANSWER_TOKENS = 160
"""Three questions and one or two sentences, without reasoning."""
_ROWS_PER_BATCH = 32
"""Rows embedded together: their texts fill about one request."""
_REQUESTS = 4
"""Embedding requests in flight at most: each carries a hundred texts and takes a moment."""
_IN_MEMORY = 32 * 2**20
"""Bytes of questions records kept in memory; more go to a temporary file."""

Found = dict[str, Similarity | JudgeError]
"""Similarities by key; an error if a text has no vector."""


class QuestionsKind(TaskKind[QuestionsAnswer]):
    """Questions that a response would answer."""

    name = "questions"
    answer_type, record_type = QuestionsAnswer, QuestionsRecord
    typical_tokens = _ANSWER_TOKENS
    rules = "There are exactly three questions, and none is blank."

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the key of the questions."""
        return questions_key(example, signature)

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the response and nothing else of the row."""
        response = sentence_lines(example.response)
        # The marker depends on the response alone, as the key does.
        values = {"marker": digest({"fence": response})[:16], "response": response}
        return chat(prompt.system, fill(prompt.user, values))

    def unsupported(self, judge: str) -> str:
        """Return the error message for a judge that gives labels only."""
        return (
            f"judge {judge!r} cannot write questions; use a hosted model, such as "
            "--judge openai:MODEL"
        )


@lru_cache
def load_questions_prompt() -> Prompt:
    """Load the prompt for questions."""
    return Prompt(PROMPT, *prompt_parts(PROMPT, read_resource("prompts", PROMPT, ".md")))


@dataclass(frozen=True)
class QuestionsTasks:
    """Builds tasks for questions."""

    judge: Judge
    splitter: Splitter
    trial: int = 0
    kind = QuestionsKind()
    needs = frozenset[str]()

    def task(self, example: Example) -> Task[QuestionsAnswer]:
        """Split an example and build its task.

        Raises:
            BadRow: the question or the response is empty.
        """
        keyed = key_example(example, self.splitter)
        for part, empty in (
            ("question", not keyed.question.strip()),
            ("response", not keyed.response),
        ):
            if empty:
                raise BadRow(
                    f"{keyed.id!r}: empty {part}; there is nothing to compare, so the judge was "
                    "not asked",
                    reason=f"empty_{part}",
                )
        spec, prompt, schema = self.judge.spec, load_questions_prompt(), load_schema(SCHEMA)
        signature = spec.signature(prompt, schema, keyed.splitter, trial=self.trial)
        key = questions_key(keyed, signature)
        return Task(key, keyed, signature, prompt, schema, self.kind)


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
    factory = QuestionsTasks(judge, SPLITTERS[options.splitter], options.trial)
    embedder = open_embedder(options)
    work = options.work or EmbeddingWork()
    with begin(options) as run:
        yield from _compared(run, opened, factory, embedder, work)


def _compared(
    run: Run, rows: Rows, factory: QuestionsTasks, embedder: Embedder, work: EmbeddingWork
) -> Generator[QuestionsOutcome, None, None]:
    """Compare rows in a run, whose budget and store judge and embedder share."""
    require_answers(factory.judge, factory.kind)
    if run.limits is not None and run.limits.budget is not None and embedder.price is None:
        raise UsageError(
            f"a budget needs a price, and none is known for embedder {embedder.spec}: give one "
            "(--embedding-price), or use an embedder that costs nothing"
        )
    with SpooledTemporaryFile(_IN_MEMORY) as written:
        outcomes = run_tasks(run, rows, [factory])
        written.writelines(outcome.model_dump_json().encode() + b"\n" for outcome in outcomes)
        written.seek(0)
        work.spent = run.budget.remaining()
        traffic = run.traffic_for(embedder, _REQUESTS, work.spent)
        questions = cast("Iterator[QuestionsOutcome]", map(parse_outcome, written))
        comparison = _Comparison(embedder, LabelCache(run.cache.store), work, traffic)
        waiting: deque[Job[list[QuestionsOutcome]]] = deque()
        while batch := list(islice(questions, _ROWS_PER_BATCH)):
            waiting.append(run.submit(partial(comparison.compared, batch)))
            while waiting and (waiting[0].succeeded or len(waiting) > 2 * _REQUESTS):
                yield from run.wait(waiting.popleft())
        for job in waiting:
            yield from run.wait(job)


@dataclass(frozen=True)
class _Comparison:
    """Finds or makes the similarities of one run, all on one event loop."""

    embedder: Embedder
    cache: LabelCache
    work: EmbeddingWork
    traffic: Pace

    async def compared(self, batch: Sequence[QuestionsOutcome]) -> list[QuestionsOutcome]:
        """Return questions with their similarity, or failures.

        Raises:
            FatalJudgeError: no text can be embedded.
            StoreError: the store cannot be read or written.
            Stopped: the run is being stopped.
        """
        CURRENT.set(self.traffic)
        wanted = {self._key(one): one for one in batch if isinstance(one, QuestionsRecord)}
        found = self._stored(wanted)
        async with AsyncExitStack() as leases:
            # Everybody leases keys in this order, so two jobs never wait for each other.
            missing = sorted(wanted.keys() - found.keys())
            saving = {
                key: await leases.enter_async_context(Leased(self.cache, key)) for key in missing
            }
            found |= self._stored(missing)
            left = {
                key: (record, saving[key]) for key, record in wanted.items() if key not in found
            }
            if left:
                found |= await self._made(left)
        return [
            one if isinstance(one, LabelFailure) else _with(one, found[self._key(one)])
            for one in batch
        ]

    def _key(self, record: QuestionsRecord) -> str:
        return similarity_key(record.example.question, record.answer.questions, self.embedder.spec)

    def _stored(self, keys: Iterable[str]) -> Found:
        records = {key: self.cache.store.get(key) for key in keys}
        found: Found = {
            key: record.answer.similarity
            for key, record in records.items()
            if isinstance(record, SimilarityRecord)
        }
        self.work.stored += len(found)
        return found

    async def _made(
        self, wanted: Mapping[str, tuple[QuestionsRecord, list[Future[bool]]]]
    ) -> Found:
        """Embed the texts of records, each text once, and save the similarities."""
        texts = list(
            dict.fromkeys(text for record, _ in wanted.values() for text in _texts(record))
        )
        found: Found = {}
        async with self.traffic.slot():
            embedded = await self._embedded(texts)
            self.work.add(embedded.facts)
            vectors = dict(zip(texts, embedded.vectors, strict=True))
            for key, (record, saving) in wanted.items():
                found[key] = similarity = self._similarity([vectors[t] for t in _texts(record)])
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
                saving.append(self.cache.store.put(made))
            for _, saving in wanted.values():
                for each in saving:
                    await until_saved(each)
        return found

    def _similarity(self, vectors: Sequence[Vector | JudgeError]) -> Similarity | JudgeError:
        """Return the cosines of the first vector with the others, or why there are none."""
        own: list[Vector] = []
        for vector in vectors:
            if isinstance(vector, JudgeError):
                return vector
            own.append(vector)
        if len(set(map(len, own))) > 1:
            return JudgeError(
                f"embedder {self.embedder.spec} gave vectors of several sizes",
                reason="unequal_dimensions",
            )
        cosines = tuple(cosine(own[0], vector) for vector in own[1:])
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
        try:
            return vector if isinstance(vector, JudgeError) else as_vector(vector)
        except ValueError:
            return self._fault("returned something other than lists of finite numbers")

    def _fault(self, bug: str) -> JudgeError:
        return JudgeError(
            f"embedder {self.embedder.spec} {bug}: a fault of the embedder's code, not of the text",
            reason="embedder_error",
        )


def _texts(record: QuestionsRecord) -> list[str]:
    """Return the row's question, then the generated ones."""
    return [record.example.question, *record.answer.questions]


def _with(record: QuestionsRecord, found: Similarity | JudgeError) -> QuestionsOutcome:
    """Return questions with their similarity, or the failure of a row without vectors."""
    if isinstance(found, Similarity):
        return record.model_copy(update={"similarity": found})
    return LabelFailure(
        id=record.id,
        reason=found.reason,
        message=f"{record.id!r}: {found}",
        signature=record.signature,
        metadata=record.example.metadata,
    )
