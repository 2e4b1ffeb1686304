"""Estimates requests, cost and time of the tasks that a run would send now: no key, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple

from labeler.data.rows import Row, Rows, RowStream
from labeler.errors import BadRow, StoreError, UsageError
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.pricing import Price
from labeler.judges.task import JudgeReply, Task, label_kind
from labeler.judges.tokens import MESSAGE_FRAME, TokenCounter, answer_cap, counter_for
from labeler.labeling.cache import LabelCache, pending_labels
from labeler.labeling.estimates import AnswerTokens, Cost, Estimate, PromptTokens, RowCounts
from labeler.labeling.failures import bad_row
from labeler.labeling.options import EstimateOptions
from labeler.labeling.pipeline import choose_mode, first_tasks
from labeler.labeling.tasks import LabelTasks, PromptTasks, resting
from labeler.labels.record import LabelFailure, LabelRecord, Usage
from labeler.labels.signature import Signature
from labeler.sentences.example import Example
from labeler.store import LabelStore

ALIKE, STORED, FAILED_BEFORE, PENDING = "alike", "stored", "failed before", "in a batch"
"""Reasons why a task costs nothing now."""


class Selection:
    """Selects tasks by what a store holds; each row keeps 32 bytes for its key.

    Args:
        how: builds the tasks.
        store: where labels and failures are looked up.
        retry_failed: True if stored failures are asked about again.
    """

    def __init__(self, how: LabelTasks, store: LabelStore, *, retry_failed: bool) -> None:
        self.how, self.store = how, store
        self.cache = LabelCache(store, retry_failed, pending_labels(store.directory))
        self.rows = 0
        """Rows so far."""
        self.left_out: Counter[str] = Counter()
        """Tasks that cost nothing now, by reason."""
        self.unusable: Counter[str] = Counter()
        """Rows that cannot be judged, by reason."""
        self._seen: set[bytes] = set()

    def tasks(self, rows: Iterable[Row]) -> Iterator[Task[Any]]:
        """Yield each task that has to be asked, once."""
        for row in rows:
            self.rows += 1
            if isinstance(row.content, LabelFailure):
                self.reject(row.content)
                continue
            try:
                yield from self._of_row(row.content)
            except BadRow as error:
                self.reject(bad_row(error, f"{row.where}: {error}", row.content))

    def reject(self, failure: LabelFailure) -> None:
        """Count a row that cannot be judged."""
        self.unusable[failure.reason] += 1

    def defers(self) -> bool:
        """Return whether a row waits until the retrieval label that it rests on is stored."""
        return False

    def why_not(self, key: str) -> str:
        """Return why a new task is not asked; "" if it is."""
        if self.cache.batch_of(key):
            return PENDING
        if self.store.get(key) is not None:
            return STORED
        if not self.cache.retry_failed and self.store.failure(key) is not None:
            return FAILED_BEFORE
        return ""

    def _of_row(self, example: Example) -> Iterator[Task[Any]]:
        task, relevance = self.how.task(example), self.how.relevance
        if relevance is not None:
            retrieval = relevance.task(task)
            found = relevance.stored(retrieval, self.store)
            if found is not None:
                task = resting(task, found)
            else:
                relevance.require_fit(retrieval, self.cache.is_known)
                if Selection.why_not(self, retrieval.key) == FAILED_BEFORE:
                    self.left_out[FAILED_BEFORE] += 1  # its response would not be asked about
                    return
                if retrieval.key not in self:
                    yield from self._new(relevance, retrieval)
                if self.defers():
                    return
        yield from self._new(self.how, task)

    def _new(self, how: PromptTasks, task: Task[Any]) -> Iterator[Task[Any]]:
        """Yield a task if it has to be asked, else count it."""
        how.require_fit(task, self.cache.is_known)
        why = ALIKE if task.key in self else self.why_not(task.key)
        self._seen.add(bytes.fromhex(task.key))
        if why:
            self.left_out[why] += 1
        else:
            yield task

    def __contains__(self, key: str) -> bool:
        """Return True if a task with a key was seen before."""
        return bytes.fromhex(key) in self._seen


ENOUGH_LABELS = 20
"""Stored labels of the same configuration needed to estimate from their own lengths."""
LABELS_READ = 1000
"""Labels of the store that are read at most."""

_ABSURD = 10**9


@dataclass
class Unasked:
    """Stands in for a judge in an estimate: it has the judge's identity and no key."""

    spec: JudgeSpec
    auto: bool = False
    """True to take the output mode of stored labels."""

    def choose_modes(self, known: Mapping[str, str], others: str | None) -> None:
        """Use output modes of stored labels."""
        if isinstance(self.spec, OpenAISpec):
            self.spec = self.spec.in_modes(known, others)

    async def label(self, request: Task[Any]) -> JudgeReply:
        """Always fail.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{request.example.id!r}: this judge ({self.spec}) only stands for one")

    async def aclose(self) -> None:
        """Do nothing."""


def estimate(
    rows: Rows,
    how: LabelTasks,
    store: LabelStore,
    options: EstimateOptions,
    *,
    price: Price | None = None,
    counter: TokenCounter | None = None,
) -> Estimate:
    """Estimate requests, cost and time of labeling. The rows are read once and not kept.

    Args:
        rows: as for labeling.
        how: task factory; its judge may be an :class:`Unasked`.
        store: where labels are looked up.
        options: of the run. Without ``latency`` an answer takes the mean time of stored labels, if
            there are any.
        price: price of the model.
        counter: token counter; by default the best available one for the model.

    Raises:
        StoreError: labels cannot be read.
        UsageError: the rows cannot be read.
    """
    stream, judge = RowStream(rows), how.judge
    selection = Selection(how, store, retry_failed=options.retry_failed)
    choose_mode(judge, first_tasks(how, stream.first), selection.cache)
    past, counter = _past(store, how), counter or counter_for(judge.spec.model)
    asked = _Asked(counter, [price, price.batched()] if price else [])
    for task in selection.tasks(stream):
        asked.add(task, past.factor, options.max_output_tokens)
    left_out, costs = selection.left_out, asked.costs
    latency = past.seconds if options.latency is None else options.latency
    rows_asked = asked.profiles.total()
    rounds = max(1.0, rows_asked / options.concurrency) if rows_asked else 0.0
    return Estimate(
        model=judge.spec.model,
        profiles=dict(asked.profiles),
        rows=RowCounts(
            read=selection.rows,
            unusable=dict(selection.unusable),
            shared=left_out[ALIKE],
            stored=left_out[STORED],
            failed=left_out[FAILED_BEFORE],
            pending=left_out[PENDING],
            asked=rows_asked,
        ),
        document_sentences=asked.document_sentences,
        response_sentences=asked.response_sentences,
        prompt=asked.prompt,
        answers=AnswerTokens(round(asked.answers), past.labels, options.max_output_tokens),
        price=price.source if price else None,
        online=costs[0] if costs else None,
        batch=costs[1] if costs and judge.spec.judge == "openai" else None,
        concurrency=options.concurrency,
        latency=latency,
        seconds=None if latency is None else rounds * latency,
        max_input_tokens=how.limit and how.limit.tokens,
    )


class _Past(NamedTuple):
    """Statistics of stored labels of the same configuration."""

    labels: int = 0
    """Labels with a token count; 0 if there are too few of them."""
    factor: float = 1.0
    """Tokens of their answers divided by the expected tokens."""
    seconds: float | None = None
    """Mean seconds of an answer."""


def _past(store: LabelStore, how: LabelTasks) -> _Past:
    """Read stored labels of the same model and configuration."""
    expected, written, labels, seconds = 0.0, 0, 0, list[float]()
    asked = [_configuration(how.signature("", *kind)) for kind in how.asked]
    with suppress(StoreError):  # a damaged label of another row is reported when it is needed
        for record in islice(store, LABELS_READ):
            if not isinstance(record, LabelRecord) or _configuration(record.signature) not in asked:
                continue
            reply = record.reply
            # Files can hold impossible numbers, which are ignored.
            if reply.usage and 0 < reply.usage.completion_tokens < _ABSURD:
                labels += 1
                written += reply.usage.completion_tokens
                kind = label_kind(record.signature.response_schema.name)
                expected += kind.expected_tokens(record.example)
            if reply.seconds is not None and 0 < reply.seconds < _ABSURD:
                seconds.append(reply.seconds)
    mean = fmean(seconds) if seconds else None
    if labels < ENOUGH_LABELS:
        return _Past(seconds=mean)
    return _Past(labels, written / expected, mean)


def _configuration(by: Signature) -> tuple[object, ...]:
    return by.judge, by.model, by.sampling, by.prompt, by.response_schema


class _Asked:
    """Sums over the requests, by a counter of tokens and at several prices."""

    def __init__(self, counter: TokenCounter, prices: Sequence[Price]) -> None:
        self._counter, self._prices = counter, prices
        self.profiles = Counter[str]()
        self.answers = 0.0
        self._prompts = self._largest = 0
        self.document_sentences = self.response_sentences = 0
        self.costs = [Cost() for _ in prices]
        self._starts: dict[str, tuple[int, int]] = {}
        """Tokens of the common start of a profile's requests, and at most."""

    def add(self, request: Task[Any], factor: float, cap: int | None) -> None:
        """Add a request.

        Args:
            request: its task.
            factor: tokens of answers divided by the expected tokens.
            cap: most tokens of an answer, if given.
        """
        messages, schema = request.sent()
        own = "".join(m["content"] for m in messages if m["role"] != "system")
        profile, starts = request.kind.name, self._starts
        if profile not in starts:
            system = [] if request.prompt.decides else [request.prompt.system_text]
            count = self._counter
            starts[profile] = count.request(system, schema), count.request_at_most(system, schema)
        same, at_most = starts[profile]
        tokens = same + self._counter.count(own) + MESSAGE_FRAME
        at_most += self._counter.at_most(own) + MESSAGE_FRAME
        answer = factor * request.expected_tokens
        self._prompts += tokens
        self._largest = max(self._largest, tokens)
        self.profiles[profile] += 1
        self.document_sentences += sum(map(len, request.example.documents))
        self.response_sentences += len(request.example.response)
        self.answers += answer
        usage = Usage(prompt_tokens=tokens, completion_tokens=round(answer))
        longest = answer_cap(cap, request.expected_tokens)
        self.costs = [
            Cost(cost.expected + price.cost(usage), cost.at_most + price.worst(at_most, longest))
            for price, cost in zip(self._prices, self.costs, strict=True)
        ]

    @property
    def prompt(self) -> PromptTokens:
        """The tokens of the prompts."""
        same = min((same for same, _ in self._starts.values()), default=0)
        return PromptTokens(self._prompts, self._largest, same, self._counter.name)
