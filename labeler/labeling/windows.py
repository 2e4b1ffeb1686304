"""Windows over long records: cut a record into prompts that fit a model, and merge the labels.

A window is the record with a run of its document sentences under their own keys, and with the whole
question, response, reference answer and conversation. Windows follow one another without overlap,
each as long as its prompt allows. A document may be cut between sentences, a sentence may not.

No window shows all of the record, so the merged label may differ from that of a judge who saw it
all; see :mod:`labeler.labeling.window_merging`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar, cast

from labeler.errors import BadRow
from labeler.judges.prompting import data_lines, sentence_line
from labeler.judges.task import Task
from labeler.judges.tokens import (
    Approximation,
    TokenCounter,
    request_tokens,
    request_tokens_at_most,
)
from labeler.labels.answering import joined
from labeler.labels.record import LabelRecord, Record, ReplyFacts, SentenceScores, Usage
from labeler.labels.signature import Windows
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import position

WindowRecord = TypeVar("WindowRecord", bound=Record[Any])

VERSION = "1"
"""Version of cutting and merging; it enters the labels' keys."""

TOO_LONG = "too_long"
"""Reason of a failure: no windows can be made of the row."""

COUNTER = Approximation()
"""Counts tokens, whatever else is installed: rows are cut alike everywhere, so no window is paid
for twice because of another tokenizer."""


@dataclass(frozen=True)
class ContextBudget:
    """Most tokens of a prompt.

    Attributes:
        whole: limit of a prompt for a whole record; a longer one is cut.
        window: limit of a window's prompt.
    """

    whole: int
    window: int

    def __str__(self) -> str:
        """Return the text that the plans of distributed runs store and compare."""
        return f"Room(whole={self.whole}, window={self.window})"


def context_budget_in(context_window: int, cap: int | None) -> ContextBudget:
    """Return the budget in a model's context window.

    A window's prompt takes two thirds of it at most: token counts are estimates, up to a third too
    low for some languages; some models accept shorter prompts; and an answer needs tokens too. The
    limit ignores a cap on answers below the rest, because windows of another size are other
    requests.

    Args:
        context_window: tokens that the model takes at most.
        cap: tokens that an answer may have.
    """
    left = context_window - (cap or 0)
    whole = left if left > 0 else context_window
    return ContextBudget(whole, max(1, min(whole, context_window * 2 // 3)))


@dataclass(frozen=True)
class Windowed:
    """A record that is judged in windows.

    Attributes:
        task: task of the merged label, with a key of its own.
        parts: a task for each window, in reading order.
    """

    task: Task
    parts: tuple[Task, ...]

    def merged(self, records: Sequence[WindowRecord]) -> WindowRecord:
        """Merge the label records, or retrieval records, of the windows, given in any order."""
        # For long records only.
        from labeler.labeling.window_merging import merge, merge_retrievals  # noqa: PLC0415

        # The first window may have been refused in the output mode in which the record was cut.
        task = self.task.in_mode(records[0].signature.sampling)
        ordered: list[Any] = list(records)
        ordered.sort(key=lambda record: position(record.example.document_keys()[0]))
        example, labels = task.example, [record.label for record in ordered]
        is_label = isinstance(records[0], LabelRecord)
        kind: Any = type(records[0])
        made = kind(
            key=task.key,
            example=example,
            label=merge(labels, example) if is_label else merge_retrievals(labels),
            normalised=dict(sum((Counter(record.normalised) for record in ordered), Counter())),
            signature=task.signature,
            reply=_facts([record.reply for record in ordered]),
            scores=_scores([record.scores for record in ordered]),
            not_measured=ordered[0].not_measured,  # all windows have one judge
        )
        return cast("WindowRecord", task.renamed(made))

    def place(self, part: int) -> str:
        """Name one of the windows, for people."""
        keys = self.parts[part].example.document_keys()
        return f"window {part + 1} of {len(self.parts)} ({keys[0]} to {keys[-1]})"


def cut(task: Task, budget: ContextBudget, counter: TokenCounter = COUNTER) -> Windowed | None:
    """Cut a record into as few windows as possible; ``None`` if its prompt fits.

    The result depends on the record, the budget and the counter alone. Texts are counted line by
    line, which gives slightly more than :func:`labeler.judges.tokens.request_tokens` of the whole.
    The few words around a schema are not counted: no output mode has cuts of its own.

    Raises:
        BadRow: a sentence, or the rest of every window, exceeds the budget (``too_long``).
    """
    schema = task.schema.compact
    texts = [{"content": message["content"]} for message in task.messages]
    if request_tokens_at_most(counter, texts, schema) <= budget.whole:
        return None  # without counting
    costs = [_line_tokens(s.key, s.text, counter) for s in task.example.document_sentences()]
    frame = _frame_tokens(task, schema, counter)
    if frame + sum(costs) <= budget.whole:
        return None
    _require_cuttable(task.example, frame, costs, budget.window)
    ends = list(_packed(costs, budget.window - frame))
    parts = [_part(task, start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    facts = Windows(number=len(parts), limit=budget.window, version=VERSION)
    signature = task.signature.model_copy(update={"windows": facts})
    return Windowed(task.under(signature), tuple(parts))


def _require_cuttable(example: KeyedExample, frame: int, costs: Sequence[int], limit: int) -> None:
    """Reject, before any spend, a row that is too long even for windows."""
    free = limit - frame
    long = next(
        (s.key for s, cost in zip(example.document_sentences(), costs, strict=True) if cost > free),
        None,
    )
    if long is None and costs:
        return
    turns = "earlier turns, " * bool(example.history or example.tool_outputs)
    others = f"{turns}response and the instructions"
    what = (
        f"document sentence {long!r} alone takes about {max(costs):,} tokens, and next to the "
        f"{others} there is room for {free:,}"
        if free > 0
        else f"its {others} alone take about {frame:,} tokens"
    )
    raise BadRow(
        f"{example.id!r}: {what}, in prompts of {limit:,}; the judge was not asked: shorten it, "
        "choose another splitter or model, or allow longer prompts (max_input_tokens, "
        "--max-input-tokens)",
        reason=TOO_LONG,
    )


def _packed(costs: Iterable[int], limit: int) -> Iterator[int]:
    """Yield the ends of the fewest windows that hold everything."""
    used = place = 0
    for place, cost in enumerate(costs):
        if used + cost > limit:
            yield place
            used = 0
        used += cost
    yield place + 1


def _part(task: Task, start: int, end: int) -> Task:
    """Return the task for a range of document sentences."""
    documents = task.example.documents
    firsts = [0, *accumulate(map(len, documents))]
    kept = tuple(
        document[max(0, start - first) : max(0, end - first)]
        for first, document in zip(firsts, documents, strict=False)
    )
    example = task.example.model_copy(update={"documents": kept})
    signature = task.signature.model_copy(update={"part": VERSION})
    return replace(task, example=example, kind=task.kind.of_window()).under(signature)


def _line_tokens(key: str, text: str, counter: TokenCounter) -> int:
    """Count the tokens of a sentence's line, including the line break."""
    return counter.count(sentence_line(key, text)) + 1


def _frame_tokens(task: Task, schema: str, counter: TokenCounter) -> int:
    """Count the tokens of a prompt without document sentences, for any fence marker.

    A marker counts as many tokens as it has characters, which is the most that it can take.
    """
    example = task.example.model_copy(update={"documents": ()})
    messages = task.prompt.render(example)
    fence = task.prompt.fence(example, data_lines(example))
    fences = sum(message["content"].count(fence) for message in messages)
    unfenced = [{"content": message["content"].replace(fence, "")} for message in messages]
    return request_tokens(counter, unfenced, schema) + fences * len(fence)


def _facts(replies: Sequence[ReplyFacts]) -> ReplyFacts:
    """Combine the windows' reply facts: sums, all who answered, and other values in common."""
    usages = [reply.usage for reply in replies if reply.usage]
    seconds = [reply.seconds for reply in replies if reply.seconds is not None]
    return ReplyFacts(
        served_model=joined(reply.served_model for reply in replies),
        system_fingerprint=_common(reply.system_fingerprint for reply in replies),
        host=joined(reply.host for reply in replies),
        usage=sum(usages, Usage()) if usages else None,
        attempts=sum(reply.attempts for reply in replies),
        reasks=sum(reply.reasks for reply in replies),
        broken_contracts=dict(sum((Counter(r.broken_contracts) for r in replies), Counter())),
        seconds=sum(seconds) if seconds else None,
        created_at=max((r.created_at for r in replies if r.created_at), default=None),
        labeler_version=_common(reply.labeler_version for reply in replies),
        thresholds=replies[0].thresholds,
    )


def _common(values: Iterable[str | None]) -> str | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _scores(scores: Sequence[SentenceScores | None]) -> SentenceScores | None:
    """Combine scores: the best support of each sentence, the other scores from its window."""
    known = [each for each in scores if each is not None]
    if len(known) < len(scores):
        return None
    return SentenceScores(
        support=_best(each.support for each in known),
        relevance=_best(each.relevance for each in known),
        utilization=_best(each.utilization for each in known),
    )


def _best(scores: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in scores:
        for key, score in each.items():
            found[key] = max(score, found.get(key, score))
    return found
