"""What a run would ask, cost and take, reckoned before anything is sent: no key, no network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from labeler.data.rows import Row, Rows, distinct
from labeler.errors import BadRow, StoreError, UsageError
from labeler.judges.judge import JudgeSpec
from labeler.judges.pricing import Price
from labeler.judges.task import JudgeReply, Task
from labeler.judges.tokens import (
    MESSAGE_FRAME,
    TokenCounter,
    answer_tokens,
    compact,
    counter_for,
    request_tokens,
    request_tokens_at_most,
)
from labeler.labeling.tasks import LabelTasks
from labeler.labels.profiles import profile_of
from labeler.labels.record import LabelFailure, LabelRecord, Usage
from labeler.sentences.example import KeyedExample
from labeler.store.protocol import LabelStore

ENOUGH_LABELS = 20
"""Stored labels of the same making from which their own lengths and times count."""
LABELS_LOOKED_AT = 1000
"""Labels of the store that are read for them."""

SHORTEST_CACHED, CACHED_STEP = 1024, 128
"""Tokens of the shortest prefix that OpenAI caches, and the steps in which it does."""
_NAMED = 3
_ABSURD = 10**9


@dataclass(frozen=True)
class Unasked:
    """Stands for a judge where nobody is asked: it has the judge's identity and no key."""

    spec: JudgeSpec

    async def label(self, request: Task[Any]) -> JudgeReply:
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{request.example.id!r}: this judge ({self.spec}) only stands for one")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows."""

    read: int
    repeated: int
    """Rows that repeat an earlier one in every field."""
    unusable: Mapping[str, int]
    """Rows that cannot be labelled, by reason."""
    shared: int
    """Rows that ask what another row asks under another id."""
    stored: int
    """Judgements that the store holds: they cost nothing."""
    failed: int
    """Judgements that the store holds as failures: they are asked again on request only."""
    asked: int
    """Judgements that would be asked for. All further figures are theirs."""
    windows: int
    """Of these, windows of records that are too long to be asked about as a whole."""
    windowed: int
    """How many such records there are."""
    windowed_ids: tuple[str, ...]
    """Ids of the first few of them."""


@dataclass(frozen=True)
class PromptTokens:
    """Tokens of the prompts, the schema included."""

    total: int
    largest: int
    same: int
    """Tokens at the start of each prompt that are the same in all of its profile: schema and
    instructions; where two profiles are asked, of the shorter one."""
    same_total: int
    """These tokens, summed over the prompts."""
    counted_by: str


@dataclass(frozen=True)
class AnswerTokens:
    """Tokens of the answers."""

    expected: int
    labels: int
    """Stored labels that they are reckoned from. 0: from
    :func:`~labeler.judges.tokens.answer_tokens`,
    without reasoning and re-asks."""
    cap: int | None
    """Tokens that one answer may have at most."""


@dataclass(frozen=True)
class Cost:
    """US dollars for all that would be asked."""

    expected: Decimal
    """Where the provider caches nothing."""
    cached: Decimal | None
    """Where it serves what is :func:`cacheable` from its cache, from the second request on;
    ``None`` where that saves nothing."""
    written: Decimal | None
    """Where it charges every prompt as written to its cache, and serves nothing from it; ``None``
    where that costs no more."""
    at_most: Decimal | None
    """No single answer to each can cost more; ``None`` where answers have no cap. A re-ask is one
    more answer."""


@dataclass(frozen=True)
class Estimate:
    """What a run would ask, cost and take."""

    model: str
    profiles: Mapping[str, int]
    """How many requests would ask for a label of each profile."""
    rows: RowCounts
    document_sentences: int
    response_sentences: int
    prompt: PromptTokens
    answers: AnswerTokens
    price: str | None
    """Where the prices come from; ``None`` where the model has none, and so no cost."""
    online: Cost | None
    batch: Cost | None
    concurrency: int
    latency: float | None
    """Seconds for one answer; ``None`` where nobody knows."""
    seconds: float | None
    """Seconds for all, if the provider's limits do not slow it."""
    max_input_tokens: int | None
    """Tokens that a prompt may have; ``None`` where nobody knows."""

    def as_json(self) -> dict[str, Any]:
        """As a JSON value; dollars are texts, exact."""
        value: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return value


def cacheable(same: int) -> int:
    """How many of the first tokens, the same in each prompt, a provider's cache can hold."""
    return 0 if same < SHORTEST_CACHED else same // CACHED_STEP * CACHED_STEP


def estimate(
    rows: Rows,
    how: LabelTasks,
    store: LabelStore,
    *,
    concurrency: int,
    price: Price | None = None,
    max_output_tokens: int | None = None,
    latency: float | None = None,
    retry_failed: bool = False,
    counter: TokenCounter | None = None,
) -> Estimate:
    """Reckon what labelling would ask, cost and take. The rows are read once, and not kept.

    Args:
        rows: as for labelling.
        how: the recipe; its judge may be an :class:`Unasked`.
        store: where labels are looked up.
        concurrency: requests in flight at most.
        price: what the model's tokens cost.
        max_output_tokens: the cap on an answer; without one there is no worst case.
        latency: seconds for one answer; by default the mean of stored labels, if there are any.
        retry_failed: whether stored failures are asked again.
        counter: counts tokens; by default the best at hand for the model.

    Raises:
        StoreError: labels cannot be read.
        UsageError: the rows cannot be read, or two share an id and differ.
    """
    model = how.judge.spec.model
    past = _past(store, how)
    tally = _Tally(how, counter or counter_for(model), price, max_output_tokens, past)
    read = _Counted(rows)
    for row in distinct(read):
        tally.rows += 1
        _sort_in(row, how, store, tally, retry_failed=retry_failed)
    return tally.result(read.count, concurrency, latency)


def _sort_in(
    row: Row, how: LabelTasks, store: LabelStore, tally: _Tally, *, retry_failed: bool
) -> None:
    """Decide what becomes of a row, as a run would."""
    if isinstance(row.content, LabelFailure):
        tally.unusable[row.content.reason] += 1
        return
    try:
        request = how.task(row.content)
        windowed = how.windows_of(request, lambda key: store.get(key) is not None)
    except BadRow as error:
        tally.unusable[error.reason] += 1
        return
    if windowed is None or store.get(windowed.task.key) is not None:
        _sort_request(windowed.task if windowed else request, store, tally, retry_failed)
    elif not tally.is_new(windowed.task.key):
        tally.shared += 1
    else:
        before = tally.asked
        for part in windowed.parts:
            _sort_request(part, store, tally, retry_failed)
        tally.note_windows(request, tally.asked - before)


def _sort_request(request: Task, store: LabelStore, tally: _Tally, retry_failed: bool) -> None:
    if not tally.is_new(request.key):
        tally.shared += 1
    elif store.get(request.key) is not None:
        tally.stored += 1
    elif not retry_failed and store.failure(request.key) is not None:
        tally.failed += 1
    else:
        tally.ask(request)


class _Counted:
    """Rows, counted as they pass."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.count = 0
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


@dataclass(frozen=True)
class _Past:
    """What earlier labels of the same making tell."""

    labels: int = 0
    """How many tell of their tokens."""
    factor: float = 1.0
    """What their answers had of tokens for each that the fitted lengths expect."""
    seconds: float | None = None
    """What an answer took on average."""


def _past(store: LabelStore, how: LabelTasks) -> _Past:
    expected, written, labels, seconds = 0, 0, 0, []
    for record in _alike(store, how):
        reply = record.reply
        # What a file says: a number that no answer can have is not reckoned with.
        if reply.usage and 0 < reply.usage.completion_tokens < _ABSURD:
            labels += 1
            written += reply.usage.completion_tokens
            expected += _expected(record.example, record.signature.response_schema.name)
        if reply.seconds is not None and 0 < reply.seconds < _ABSURD:
            seconds.append(reply.seconds)
    mean = sum(seconds) / len(seconds) if seconds else None
    if labels < ENOUGH_LABELS:
        return _Past(seconds=mean)
    return _Past(labels, written / expected, mean)


def _expected(example: KeyedExample, schema: str) -> int:
    """Tokens that an answer about a record is expected to have."""
    referenced = len(example.reference or ())
    return answer_tokens(len(example.response), profile_of(schema).name, referenced)


def _alike(store: LabelStore, how: LabelTasks) -> Iterator[LabelRecord]:
    """Stored labels that the same model wrote in the same way."""
    spec = how.judge.spec
    made = (spec.judge, spec.model, spec.sampling())
    kinds = [(how.prompt, how.schema), *([how.where_referenced] if how.where_referenced else [])]
    asked = [(prompt.artifact, schema.artifact) for prompt, schema in kinds]
    try:
        for record in islice(store, LABELS_LOOKED_AT):
            by = record.signature
            same_kind = (by.prompt, by.response_schema) in asked
            if (
                isinstance(record, LabelRecord)
                and by.windows is None  # several answers in one
                and same_kind
                and (by.judge, by.model, by.sampling) == made
            ):
                yield record
    except StoreError:
        # A damaged label of another row: whoever needs that row is told of it.
        return


class _Bill:
    """Sums of one way of asking."""

    def __init__(self, price: Price) -> None:
        self._price = price
        self._expected = self._cached = self._written = self._at_most = Decimal(0)

    def add(self, usage: Usage, cached: int) -> None:
        """Add one request that a cache may serve so many tokens of."""
        self._expected += self._price.cost(usage)
        self._cached += self._price.cost(usage.model_copy(update={"cached_tokens": cached}))
        written = {"cache_write_tokens": usage.prompt_tokens}
        self._written += self._price.cost(usage.model_copy(update=written))

    def add_worst(self, prompt_tokens: int, output_tokens: int) -> None:
        """Add the most that one request can cost."""
        self._at_most += self._price.worst(prompt_tokens, output_tokens)

    def cost(self, *, capped: bool) -> Cost:
        """The sums, without those that say nothing."""
        return Cost(
            expected=self._expected,
            cached=self._cached if self._cached < self._expected else None,
            written=self._written if self._written > self._expected else None,
            at_most=self._at_most if capped else None,
        )


@dataclass
class _Kind:
    """Requests for labels of one profile, and the tokens that are the same in each."""

    same: int
    same_at_most: int
    asked: int = 0


class _Tally:
    """Sums over the rows; of a row only its key stays, 32 bytes."""

    def __init__(
        self,
        how: LabelTasks,
        counter: TokenCounter,
        price: Price | None,
        cap: int | None,
        past: _Past,
    ) -> None:
        self.rows = self.shared = self.stored = self.failed = 0
        self.unusable: Counter[str] = Counter()
        self._how, self._counter, self._price, self._cap, self._past = (
            how,
            counter,
            price,
            cap,
            past,
        )
        self.asked = self._windows = self._windowed = self._prompts = self._largest = 0
        self._document_sentences = self._response_sentences = 0
        self._answers = 0.0
        self._windowed_ids: list[str] = []
        self._keys: set[bytes] = set()
        self._bills = [_Bill(price), _Bill(price.batched())] if price else []
        self._kinds: dict[str, _Kind] = {}

    def is_new(self, key: str) -> bool:
        """Whether no earlier row asks for the same judgement."""
        before = len(self._keys)
        self._keys.add(bytes.fromhex(key))
        return len(self._keys) > before

    def ask(self, request: Task) -> None:
        """Reckon with one request."""
        own = "".join(m["content"] for m in request.messages if m["role"] != "system")
        kind = self._kind(request)
        prompt = kind.same + self._counter.count(own) + MESSAGE_FRAME
        answer = self._past.factor * request.expected_tokens
        cached = cacheable(kind.same) if kind.asked else 0
        self.asked += 1
        kind.asked += 1
        self._document_sentences += sum(map(len, request.example.documents))
        self._response_sentences += len(request.example.response)
        self._prompts += prompt
        self._largest = max(self._largest, prompt)
        self._answers += answer
        usage = Usage(prompt_tokens=prompt, completion_tokens=round(answer))
        for bill in self._bills:
            bill.add(usage, cached)
        if self._cap is not None and self._bills:
            at_most = kind.same_at_most + self._counter.at_most(own) + MESSAGE_FRAME
            for bill in self._bills:
                bill.add_worst(at_most, self._cap)

    def _kind(self, request: Task) -> _Kind:
        """What is the same in every request of a profile is counted once."""
        name = request.kind.name
        if name not in self._kinds:
            schema = compact(request.schema.json_schema)
            same = [{"content": request.prompt.system}]
            self._kinds[name] = _Kind(
                request_tokens(self._counter, same, schema),
                request_tokens_at_most(self._counter, same, schema),
            )
        return self._kinds[name]

    def note_windows(self, request: Task, asked: int) -> None:
        """Note a record of which so many windows are asked for."""
        self._windows += asked
        self._windowed += asked > 0
        if asked and len(self._windowed_ids) < _NAMED:
            self._windowed_ids.append(request.example.id)

    def counts(self, read: int) -> RowCounts:
        """What became of so many rows."""
        return RowCounts(
            read=read,
            repeated=read - self.rows,
            unusable=dict(self.unusable),
            shared=self.shared,
            stored=self.stored,
            failed=self.failed,
            asked=self.asked,
            windows=self._windows,
            windowed=self._windowed,
            windowed_ids=tuple(self._windowed_ids),
        )

    def result(self, read: int, concurrency: int, latency: float | None) -> Estimate:
        """The estimate."""
        costs = [bill.cost(capped=self._cap is not None) for bill in self._bills]
        latency = self._past.seconds if latency is None else latency
        rounds = max(1.0, self.asked / concurrency) if self.asked else 0.0
        return Estimate(
            model=self._how.judge.spec.model,
            profiles={name: kind.asked for name, kind in self._kinds.items()},
            rows=self.counts(read),
            document_sentences=self._document_sentences,
            response_sentences=self._response_sentences,
            prompt=PromptTokens(
                total=self._prompts,
                largest=self._largest,
                same=min((kind.same for kind in self._kinds.values()), default=0),
                same_total=sum(kind.same * kind.asked for kind in self._kinds.values()),
                counted_by=self._counter.name,
            ),
            answers=AnswerTokens(round(self._answers), self._past.labels, self._cap),
            price=self._price.source if self._price else None,
            online=costs[0] if costs else None,
            batch=costs[1] if costs else None,
            concurrency=concurrency,
            latency=latency,
            seconds=None if latency is None else rounds * latency,
            max_input_tokens=self._how.context_budget.window if self._how.context_budget else None,
        )
