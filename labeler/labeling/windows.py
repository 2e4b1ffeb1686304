"""Long records: cut into windows that fit a judge, and the judgements of these merged into a label.

A window is the record with a run of its document sentences, under their own keys, and with the
whole question, response and reference answer. The windows follow one another without overlap, each
as long as its prompt allows. A document may be cut between sentences, a sentence may not.

No window saw all of the record, so that the merged label is not always that of a judge who did:

- Relevant and utilized are the sentences that their window calls so. A judge that finds sentences
  relevant in comparison with the others compares within a window.
- A response sentence is supported where one window supports it. Where its claims are supported in
  different windows, only a label that lists them, worded alike in each window, can tell.
- That the documents do *not* say something (``supported_without_sentence``) holds where every
  window supports it, unless one names a sentence for it.
- The response is supported where each of its sentences is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from labeler.errors import BadRow, UsageError
from labeler.judges.prompting import marker, sentence_line
from labeler.judges.task import Task
from labeler.judges.tokens import (
    Approximation,
    TokenCounter,
    compact,
    request_tokens,
    request_tokens_at_most,
)
from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    SentenceSupport,
)
from labeler.labels.record import LabelRecord, ReplyFacts, SentenceScores, Usage, label_key
from labeler.labels.schemas import ResponseSchema
from labeler.labels.signature import Windows
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import position

T = TypeVar("T")

VERSION = "1"
"""Counts up when records are cut or labels merged otherwise; it enters their keys."""

TOO_LONG = "too_long"
"""Reason of a row that no windows can be made of."""

COUNTER = Approximation()
"""Counts, whatever else is installed: the same rows are cut alike everywhere, and no window is paid
for twice because another tokenizer is at hand."""

_MARKER_TOKENS = 16
"""Tokens of a fence's marker at most: it has as many characters."""


@dataclass(frozen=True)
class Room:
    """How long prompts may be, in tokens.

    Attributes:
        whole: a longer one is not sent as it is.
        window: what that of a window may have.
    """

    whole: int
    window: int


def room_in(context_window: int, cap: int | None) -> Room:
    """The room in a model's context window.

    A window's prompt takes two thirds of it at most: counts are guesses, which for some languages
    are a third too low, some models take less as a prompt than in all, and an answer needs room
    too. It does not follow a cap on answers that is less than the rest, because windows of another
    size are other requests.

    Args:
        context_window: tokens that the model takes at most.
        cap: tokens that an answer may have.
    """
    left = context_window - (cap or 0)
    whole = left if left > 0 else context_window
    return Room(whole, max(1, min(whole, context_window * 2 // 3)))


@dataclass(frozen=True)
class Windowed:
    """A record that is judged in windows.

    Attributes:
        task: what the merged label answers: the whole record, under a key of its own.
        parts: a task for each window, in reading order.
    """

    task: Task
    parts: tuple[Task, ...]

    def merged(self, records: Sequence[LabelRecord]) -> LabelRecord:
        """The label of the whole record.

        Args:
            records: those of the parts, in any order.
        """
        ordered = sorted(records, key=lambda record: position(record.example.document_keys()[0]))
        example = self.task.example
        return LabelRecord(
            key=self.task.key,
            example=example,
            label=merge([record.label for record in ordered], example),
            normalised=dict(sum((Counter(record.normalised) for record in ordered), Counter())),
            signature=self.task.signature,
            reply=_facts([record.reply for record in ordered]),
            scores=_scores([record.scores for record in ordered]),
        )

    def place(self, part: int) -> str:
        """Which window one of the parts is, for people."""
        keys = self.parts[part].example.document_keys()
        return f"window {part + 1} of {len(self.parts)} ({keys[0]} to {keys[-1]})"


# -- cutting --------------------------------------------------------------------------------------


def cut(task: Task, room: Room, counter: TokenCounter = COUNTER) -> Windowed | None:
    """Cut a record into as few windows as there is room for; ``None`` where it fits as it is.

    The same for the same record, room and counter. Texts are counted line by line, which comes out
    a little above what :func:`labeler.judges.tokens.request_tokens` says of the whole prompt.

    Raises:
        BadRow: a sentence, or what goes with every window, leaves no room (``too_long``).
    """
    schema = _text(task.schema)
    texts = [{"content": message["content"]} for message in task.messages]
    if request_tokens_at_most(counter, texts, schema) <= room.whole:
        return None  # without counting
    costs = [_line_tokens(s.key, s.text, counter) for s in task.example.document_sentences()]
    frame = _frame_tokens(task, schema, counter)
    if frame + sum(costs) <= room.whole:
        return None
    _refuse_uncuttable(task.example, frame, costs, room.window)
    ends = list(_packed(costs, room.window - frame))
    parts = [_part(task, start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    facts = Windows(number=len(parts), limit=room.window, version=VERSION)
    signature = task.signature.model_copy(update={"windows": facts})
    key = label_key(task.example, signature)
    return Windowed(replace(task, key=key, signature=signature), tuple(parts))


def _refuse_uncuttable(example: KeyedExample, frame: int, costs: Sequence[int], limit: int) -> None:
    """Refuse, before any spend, a row that does not come to fit by being cut."""
    free = limit - frame
    long = next(
        (s.key for s, cost in zip(example.document_sentences(), costs, strict=True) if cost > free),
        None,
    )
    if long is None:
        return
    what = (
        f"document sentence {long!r} alone takes about {max(costs):,} tokens, and beside the "
        f"response and the instructions there is room for {free:,}"
        if free > 0
        else f"its response and the instructions alone take about {frame:,} tokens"
    )
    raise BadRow(
        f"{example.id!r}: {what}, in prompts of {limit:,}; the judge was not asked: shorten it, "
        "choose another splitter or model, or allow longer prompts (max_input_tokens, "
        "--max-input-tokens)",
        reason=TOO_LONG,
    )


def _packed(costs: Iterable[int], room: int) -> Iterator[int]:
    """Where windows end, each as long as there is room; no fewer could hold everything."""
    used = place = 0
    for place, cost in enumerate(costs):
        if used + cost > room:
            yield place
            used = 0
        used += cost
    yield place + 1


def _part(task: Task, start: int, end: int) -> Task:
    """The task for the document sentences from one place to another."""
    documents = task.example.documents
    firsts = [0, *accumulate(map(len, documents))]
    kept = tuple(
        document[max(0, start - first) : max(0, end - first)]
        for first, document in zip(firsts, documents, strict=False)
    )
    example = task.example.model_copy(update={"documents": kept})
    signature = task.signature.model_copy(update={"part": VERSION})
    key = label_key(example, signature)
    return replace(task, key=key, example=example, signature=signature)


def _line_tokens(key: str, text: str, counter: TokenCounter) -> int:
    """Tokens of a sentence's line, with the end of the line."""
    return counter.count(sentence_line(key, text)) + 1


def _frame_tokens(task: Task, schema: str, counter: TokenCounter) -> int:
    """Tokens of all of a prompt but the document sentences, whatever marker its fence gets."""
    example = task.example.model_copy(update={"documents": ()})
    sign = marker(example, reference=task.prompt.shows_reference)
    messages = task.prompt.render(example)
    signs = sum(message["content"].count(sign) for message in messages)
    unsigned = [{"content": message["content"].replace(sign, "")} for message in messages]
    return request_tokens(counter, unsigned, schema) + signs * _MARKER_TOKENS


@lru_cache
def _text(schema: ResponseSchema) -> str:
    return compact(schema.json_schema)


# -- merging --------------------------------------------------------------------------------------


def merge(labels: Sequence[GPTLabelingOutput], example: KeyedExample) -> GPTLabelingOutput:
    """Make one label of those of a record's windows; pure.

    Relevant, utilized: the union. Support: see the module. The supporting keys are those of all
    windows that support the sentence; special strings count where no window names a sentence.
    Explanations are those of the windows that support it, or else of all, with the window before
    each.

    Claims: where all windows word those of a sentence alike, each is entailed if some window
    entails it, else contradicted if some window contradicts it; the sentence is supported if all
    are entailed, each in whatever window. Where they do not, claims cannot be matched, and the
    sentence has those of one window: of the first that supports it, or else the one that has most
    of them entailed or contradicted. What is said of claims by the reference answer or the response
    alone, which every window saw, is the first window's word.

    Args:
        labels: of one profile, in reading order.
        example: the whole record.
    """
    if not labels:
        raise UsageError(f"{example.id!r}: there are no windows to merge")
    merging = _Merging(labels, example)
    first, fields = labels[0], merging.shared()
    if isinstance(first, ClaimsLabelingOutput):
        fields |= merging.claims()
    if isinstance(first, ReferenceLabelingOutput):
        fields |= merging.reference()
    return type(first)(**fields)


class _Sentence(NamedTuple):
    support: SentenceSupport
    claims: Sequence[ResponseClaim]


class _Merging:
    """The labels of a record's windows."""

    def __init__(self, labels: Sequence[GPTLabelingOutput], example: KeyedExample) -> None:
        self._labels, self._example = labels, example
        self._entries = [
            {entry.response_sentence_key: entry for entry in label.sentence_support_information}
            for label in labels
        ]
        self._claims = _by_sentence(labels, "response_claims", "response_sentence_key")
        self._reference = _by_sentence(labels, "reference_claims", "reference_sentence_key")

    def shared(self) -> dict[str, Any]:
        """What labels of all profiles have."""
        labels, support = self._labels, tuple(each.support for each in self._sentences)
        return {
            "relevance_explanation": _told([label.relevance_explanation for label in labels]),
            "all_relevant_sentence_keys": _union(
                label.all_relevant_sentence_keys for label in labels
            ),
            "overall_supported_explanation": _told(
                [label.overall_supported_explanation for label in labels]
            ),
            "overall_supported": bool(support) and all(e.fully_supported for e in support),
            "sentence_support_information": support,
            "all_utilized_sentence_keys": _union(
                label.all_utilized_sentence_keys for label in labels
            ),
        }

    def claims(self) -> dict[str, Any]:
        """What the profile ``claims`` adds."""
        return {
            "response_claims": tuple(claim for each in self._sentences for claim in each.claims),
            "response_sentences_without_claims": tuple(
                each.support.response_sentence_key for each in self._sentences if not each.claims
            ),
        }

    def reference(self) -> dict[str, Any]:
        """What the profile ``reference`` adds."""
        keys = [sentence.key for sentence in self._example.reference or ()]
        merged = {
            key: _reference_claims([each.get(key, []) for each in self._reference]) for key in keys
        }
        return {
            "reference_claims": tuple(claim for claims in merged.values() for claim in claims),
            "reference_sentences_without_claims": tuple(key for key in keys if not merged[key]),
        }

    @cached_property
    def _sentences(self) -> list[_Sentence]:
        return [self._sentence(key) for key in self._example.response_keys()]

    def _sentence(self, key: str) -> _Sentence:
        # Whoever edits a stored label can take an entry from it.
        entries = [entries.get(key) or _unsaid(key) for entries in self._entries]
        claims = [claims.get(key, []) for claims in self._claims]
        kept = _support([_yes(e.supporting_sentence_keys, yes=e.fully_supported) for e in entries])
        if not _alike(claims):
            support = _sentence_support(entries, kept)
            return _Sentence(support, _chosen_claims(entries, claims, support))
        same = [_claim(group) for group in zip(*claims, strict=True)]
        entailed = [c.supporting_sentence_keys for c in same if c.verdict == "entailment"]
        if len(entailed) < len(same):
            return _Sentence(_sentence_support(entries, ()), same)
        return _Sentence(_sentence_support(entries, kept or _union(entailed)), same)


def _unsaid(key: str) -> SentenceSupport:
    return SentenceSupport(
        response_sentence_key=key,
        explanation="",
        supporting_sentence_keys=(),
        fully_supported=False,
    )


def _by_sentence(
    labels: Sequence[GPTLabelingOutput], field: str, key: str
) -> list[dict[str, list[Any]]]:
    """The claims of each label, by their sentence; none where the profile has none."""
    found: list[dict[str, list[Any]]] = []
    for label in labels:
        groups: dict[str, list[Any]] = {}
        for claim in getattr(label, field, ()):
            groups.setdefault(getattr(claim, key), []).append(claim)
        found.append(groups)
    return found


def _support(said: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The keys that support something; none where it is not supported.

    Args:
        said: the keys that each window names for it; none where that does not support it.
    """
    naming = [keys for keys in said if _names(keys)]
    if naming:
        return _union(naming)
    every = all(said)
    return _union([key for key in keys if every or key != _ABSENCE] for keys in said)


def _names(keys: Iterable[str]) -> bool:
    """Whether a document sentence is among keys."""
    return any(key not in SPECIAL_SUPPORT for key in keys)


def _yes(keys: Sequence[str], *, yes: bool) -> Sequence[str]:
    return keys if yes else ()


def _sentence_support(entries: Sequence[SentenceSupport], kept: tuple[str, ...]) -> SentenceSupport:
    """What becomes of a sentence that these keys support, if there are any."""
    yes = [entry.fully_supported for entry in entries]
    quoted = yes if kept and any(yes) else [True] * len(entries)
    partly = [e.supporting_sentence_keys for e in entries if not e.fully_supported]
    return SentenceSupport(
        response_sentence_key=entries[0].response_sentence_key,
        explanation=_told([entry.explanation for entry in entries], quoted),
        supporting_sentence_keys=kept or _union(partly),
        fully_supported=bool(kept),
    )


def _alike(claims: Sequence[Sequence[ResponseClaim | ReferenceClaim]]) -> bool:
    """Whether all windows list the same claims, and at least one."""
    worded = {tuple(_words(claim.claim) for claim in each) for each in claims}
    return len(worded) == 1 and any(worded.pop())


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _claim(said: Sequence[ResponseClaim]) -> ResponseClaim:
    """One claim of what each window says of it."""
    yes = [claim.verdict == "entailment" for claim in said]
    keys = _support(
        [_yes(claim.supporting_sentence_keys, yes=y) for claim, y in zip(said, yes, strict=True)]
    )
    denied = any(claim.verdict == "contradiction" for claim in said)
    partly = [c.supporting_sentence_keys for c, y in zip(said, yes, strict=True) if not y]
    return said[0].model_copy(
        update={
            "supporting_sentence_keys": keys or _union(partly),
            "contradicting_sentence_keys": _union(c.contradicting_sentence_keys for c in said),
            "verdict": "entailment" if keys else "contradiction" if denied else "neutral",
            "relevant_to_question": any(claim.relevant_to_question for claim in said),
        }
    )


def _chosen_claims(
    entries: Sequence[SentenceSupport],
    claims: Sequence[Sequence[ResponseClaim]],
    merged: SentenceSupport,
) -> Sequence[ResponseClaim]:
    """The claims of the window with the most to say, among those that judge as is merged."""

    def told(window: int) -> tuple[bool, float, bool]:
        decided = sum(claim.verdict != "neutral" for claim in claims[window])
        share = decided / len(claims[window]) if claims[window] else 0.0
        if merged.fully_supported:
            share = float(_names(entries[window].supporting_sentence_keys))
        return share > 0, share, bool(claims[window])

    side = [n for n, e in enumerate(entries) if e.fully_supported == merged.fully_supported]
    return claims[max(side or range(len(entries)), key=told)]


def _reference_claims(claims: Sequence[Sequence[ReferenceClaim]]) -> Sequence[ReferenceClaim]:
    """The claims of a reference sentence."""
    if not _alike(claims):
        return max(claims, key=_share_stated)
    return [
        said[0].model_copy(
            update={"supporting_sentence_keys": _union(c.supporting_sentence_keys for c in said)}
        )
        for said in zip(*claims, strict=True)
    ]


def _share_stated(claims: Sequence[ReferenceClaim]) -> float:
    """The share of claims that the documents state."""
    return sum(bool(claim.supporting_sentence_keys) for claim in claims) / max(1, len(claims))


def _told(texts: Sequence[str], quoted: Sequence[bool] | None = None) -> str:
    """What windows explain, each under its number."""
    chosen = quoted or [True] * len(texts)
    return "\n".join(
        f"[window {number} of {len(texts)}] {text}"
        for number, (text, is_quoted) in enumerate(zip(texts, chosen, strict=True), start=1)
        if is_quoted
    )


def _union(keys: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """All of some keys, once each: in reading order, special strings last."""
    found = {key for each in keys for key in each}
    special = [name for name in SPECIAL_SUPPORT if name in found]
    return (*sorted(found.difference(special), key=position), *special)


_ABSENCE = "supported_without_sentence"
"""Says something of all documents, and so is not known of one window."""


def _facts(replies: Sequence[ReplyFacts]) -> ReplyFacts:
    """What happened when the windows were judged: sums, and what they have in common."""
    usages = [reply.usage for reply in replies if reply.usage]
    seconds = [reply.seconds for reply in replies if reply.seconds is not None]
    return ReplyFacts(
        served_model=_common(reply.served_model for reply in replies),
        system_fingerprint=_common(reply.system_fingerprint for reply in replies),
        host=_common(reply.host for reply in replies),
        usage=sum(usages, Usage()) if usages else None,
        attempts=sum(reply.attempts for reply in replies),
        reasks=sum(reply.reasks for reply in replies),
        broken_contracts=dict(sum((Counter(r.broken_contracts) for r in replies), Counter())),
        seconds=sum(seconds) if seconds else None,
        created_at=max((r.created_at for r in replies if r.created_at), default=None),
        labeler_version=_common(reply.labeler_version for reply in replies),
    )


def _common(values: Iterable[str | None]) -> str | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _scores(scores: Sequence[SentenceScores | None]) -> SentenceScores | None:
    """The best support of each sentence, and the other scores from the window that each is of."""
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
