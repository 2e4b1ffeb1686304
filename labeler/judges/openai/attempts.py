"""The attempt log of one record, and the re-asks that name the rules that an answer broke."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, TypeAdapter, ValidationError, ValidationInfo

from labeler.errors import plain_fault, validation_faults
from labeler.judges.openai.address import plain_code
from labeler.judges.openai.completion import TOOL_CALL, Completion
from labeler.judges.openai.error_rules import ObservedError
from labeler.judges.openai.reading import flat, parse_loose, parse_object, wrapped
from labeler.judges.pace import Pace, current
from labeler.judges.task import Messages, Task
from labeler.judges.tokens import request_tokens_at_least
from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput
from labeler.labels.contract import LONGEST_TEXT, Violation, has_long_text
from labeler.labels.record import ReplyFacts, Usage
from labeler.sentences.example import Frozen, KeyedExample, position
from labeler.version import __version__

MOST_UNSEEN = 200_000
"""Tokens at most that a server adds to a prompt, or that a model thinks without showing them."""
SMALLEST_CONTEXT = 256
"""No model in service reads fewer tokens. A smaller count is a placeholder, or leaves out tokens
that came from a cache, so nothing follows from it."""


def most_tokens(texts: Iterable[str]) -> int:
    """Return the tokens that a server may count for texts: one for each of their bytes, and more.

    A count above that is invalid, as if the server reported none.
    """
    return 4 * sum(map(len, texts)) + MOST_UNSEEN


def cut_prompt(reported: int, texts: Sequence[str]) -> ObservedError | None:
    """Return an error if a server reports far fewer input tokens than these texts have."""
    # A word takes two characters with its space, so words seldom need to be counted.
    if reported < SMALLEST_CONTEXT or reported >= (sum(map(len, texts)) + len(texts)) / 4:
        return None
    sent = request_tokens_at_least(texts)
    if reported >= sent / 2:
        return None
    facts = f"it reports {reported} input tokens of at least {sent}"
    return ObservedError("cut_prompt", facts=facts)


@dataclass
class AttemptLog:
    """The attempts for one record, from its first request to its last answer."""

    task: Task
    cap: int | None
    """Cap on the tokens of an answer; ``None`` without one."""
    pace: Pace = field(default_factory=current)
    """Pace of the run."""
    attempts: int = 0
    """Requests sent."""
    answers: int = 0
    """Answers received, usable or not."""
    readable: int = 0
    """Answers that matched the schema."""
    violations: tuple[Violation, ...] = ()
    """Violations of the latest answer."""
    broken: Counter[str] = field(default_factory=Counter)
    failed: Exception | None = None
    """Error of the first attempt, until tenacity or instructor takes it up."""
    latest: Completion = field(default_factory=Completion)
    """The latest completion, usable or not."""
    has_duplicates: bool = False
    """True if an object of the latest answer has a duplicate name."""
    usage: Usage | None = None
    """Tokens charged so far; ``None`` until an answer reports usage."""
    cap_raised: bool = False
    started: float = field(default_factory=time.monotonic)

    @property
    def reasks(self) -> int:
        """Answers that were sent back for correction."""
        return max(0, self.answers - 1)

    @property
    def repairs(self) -> dict[str, int]:
        """Repairs of the latest answer by kind, before it was read."""
        found = dict.fromkeys(self.latest.repairs, 1)
        if self.task.mode == "tools" and not found.pop(TOOL_CALL, 0):
            found["no_tool_call"] = 1
        return found

    def record_completion(self, completion: Completion) -> ObservedError | None:
        """Record the facts of a completion; return why it holds no answer to the whole prompt."""
        texts = [message["content"] for message in self.task.messages]
        error = completion.error or cut_prompt(completion.input_tokens, texts)
        usage = completion.usage
        if usage and max(completion.input_tokens, usage.prompt_tokens) > most_tokens(texts):
            usage = None
        if usage and usage.completion_tokens > most_tokens([completion.content]):
            usage = None
        if usage:
            self.usage = self.usage + usage if self.usage else usage
        self.latest = completion._replace(usage=usage)
        self.answers += error is None
        return error

    def raise_cap(self) -> bool:
        """Double the cap after a truncated answer; return False if that is not possible or no use.

        An answer that repeats the same text up to its cap would fill a larger one as well.
        """
        if self.cap is None or self.cap_raised or self.latest.is_loop:
            return False
        self.cap, self.cap_raised = self.cap * 2, True
        return True

    def read(self, text: str) -> Frozen:
        """Read an answer and check it, once.

        Raises:
            ValidationError: it breaks the schema or a rule of its task.
        """
        failed, self.failed = self.failed, None
        if failed is not None:
            raise failed
        answer, self.has_duplicates = parse_object(text)
        if answer is None:
            answer, self.has_duplicates = parse_loose(text)
            if answer is not None:
                self._add_repair("loose_json")
        plain: str | bytes = text
        if answer is not None:
            fields, lists = _fields_of(self.task.answer_type)
            inner = wrapped(answer, fields) if fields.isdisjoint(answer) else answer
            if inner is not answer:
                self._add_repair("wrapped")
            plain, is_quoted = flat(inner, lists)
            if is_quoted:
                self._add_repair("quoted")
        return _reader_of(self.task.answer_type).validate_json(plain, context=self)

    def _add_repair(self, repair: str) -> None:
        self.latest = self.latest._replace(repairs=(*self.latest.repairs, repair))

    def reask_message(self) -> str:
        """Return the message that asks the judge to correct its latest answer."""
        rules = self.task.kind.rules
        if rules is not None:
            return rules_again(self.violations, rules) if self.violations else NO_ANSWER
        if self.violations:
            return complaint(self.violations, self.task.example, self.task.answer_type)
        return NOT_A_LABEL

    def reask_messages(self) -> Messages:
        """Return the messages that ask the judge to correct its latest answer."""
        answer = self.latest.content.encode("utf-8", "replace").decode()  # no lone surrogates
        return [
            *self.task.messages,
            {"role": "assistant", "content": answer},
            {"role": "user", "content": self.reask_message()},
        ]

    def rejection(self, error: ValidationError) -> tuple[ObservedError, str]:
        """Return why the latest answer was rejected, as an error and a detail."""
        if self.violations:
            return ObservedError("contract"), brief(self.violations)
        if not self.latest.content.strip():
            thought = self.latest.thought
            facts = f"the model wrote into {thought} only" if thought else ""
            return ObservedError("empty", facts=facts), ""
        fault = validation_faults(error)[0]
        place = plain_code(".".join(("answer", *map(str, fault["loc"]))))  # may quote a document
        what = fault["type"]
        if what == "value_error":  # the words are ours
            what = plain_fault(fault["msg"])
        return ObservedError("malformed"), f"{what} in {place or 'a field'}"

    def in_vain(self) -> dict[str, Any]:
        """Return the facts of a record that got no usable answer, for its error."""
        return {"violations": self.violations, "usage": self.usage, "reasks": self.reasks}

    def facts(self, host: str) -> ReplyFacts:
        """Return the facts of the reply."""
        return ReplyFacts(
            served_model=self.latest.model,
            system_fingerprint=self.latest.fingerprint,
            host=host,
            usage=self.usage,
            attempts=self.attempts,
            reasks=self.reasks,
            broken_contracts=self.broken_contracts(),
            seconds=round(time.monotonic() - self.started, 3),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            labeler_version=__version__,
        )

    def broken_contracts(self) -> dict[str, int]:
        """Return the violations by kind, with answers that did not match the schema."""
        malformed = self.answers - self.readable
        return {**self.broken, **({"malformed": malformed} if malformed else {})}


ATTEMPT_LOG: ContextVar[AttemptLog] = ContextVar("attempt_log")
"""Attempt log of the record in the current task. instructor's own channel, ``context=``, would run
every message, documents included, through a template engine."""


@cache
def _fields_of(output: type[Frozen]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of the fields of an answer, and of those that are lists."""
    fields = output.model_fields
    lists = (name for name, field in fields.items() if field.annotation not in (str, bool))
    return frozenset(fields), tuple(lists)


@cache
def _reader_of(output: type[Frozen]) -> TypeAdapter[Frozen]:
    """Return a reader of answers that checks the rules of the record in its context."""
    checked: Any = Annotated[output, AfterValidator(_checked)]
    return TypeAdapter(checked)


def _checked(answer: Frozen, info: ValidationInfo[AttemptLog]) -> Frozen:
    """Return an answer that keeps the rules of its task, which the log in the context has.

    Raises:
        ValueError: it breaks a rule, a text in it is too long, or an object in it has a
            duplicate name.
    """
    log = info.context
    if log.has_duplicates:
        raise ValueError("a name stands twice in one object")
    if len(log.latest.content) > LONGEST_TEXT and has_long_text(answer):
        raise ValueError("a text is too long")
    log.readable += 1
    log.violations = log.task.violations(answer)
    if log.violations:
        log.broken.update(violation.kind for violation in log.violations)
        raise ValueError(brief(log.violations))
    return answer


# The texts of re-asks.

ReaskVersion = Literal["reask/1"]
REASK_VERSION: ReaskVersion = "reask/1"
"""Version of every text of a re-ask, below. It is part of label keys, because another wording may
change labels: increment it, here and above, whenever a text changes."""

_UNREADABLE = "That was not a JSON object of the required schema. "
_ALL_AGAIN = "Write the whole {} again, as JSON alone."
NOT_A_LABEL = _UNREADABLE + _ALL_AGAIN.format("label")
"""The re-ask after an unreadable label."""
NO_ANSWER = _UNREADABLE + _ALL_AGAIN.format("answer")
"""The re-ask after another unreadable answer."""

_MOST_LISTED = 20


def rules_again(violations: Sequence[Violation], rules: str) -> str:
    """Name the rules that an answer other than a label broke, then all its rules."""
    return (
        f"That answer broke the rules: {brief(violations)}. {rules} {_ALL_AGAIN.format('answer')}"
    )


def complaint(
    violations: Sequence[Violation],
    example: KeyedExample,
    output: type[GPTLabelingOutput] = GPTLabelingOutput,
) -> str:
    """Name every broken rule with its keys, then the existing keys.

    Args:
        violations: the broken rules.
        example: the record.
        output: the class of the requested label; one with claims adds rules about claims.
    """
    spoken = key_ranges(sentence.key for sentence in example.conversation_sentences())
    also = f"Sentences that may be named as support only are {spoken}. " if spoken else ""
    return (
        f"That label broke the rules: {brief(violations)}. "
        f"Document sentence keys are {key_ranges(example.document_keys()) or 'none'}. {also}"
        f"Response sentence keys, each judged exactly once, are "
        f"{key_ranges(example.response_keys())}. Only supporting_sentence_keys may also hold "
        f"{', '.join(SPECIAL_SUPPORT)}; a decision has it exactly when fully_supported is true. "
        f"{_CLAIMS if 'response_claims' in output.model_fields else ''}"
        f"{_reference_rules(example) if 'reference_claims' in output.model_fields else ''}"
        f"{_ALL_AGAIN.format('label')}"
    )


_CLAIMS = (
    "Each response sentence has at least one entry in response_claims or stands in "
    "response_sentences_without_claims, never both. Among response_claims, entailment needs "
    "supporting_sentence_keys, and contradiction needs contradicting_sentence_keys. A sentence is "
    "fully_supported exactly when all its claims are entailment. "
)


def _reference_rules(example: KeyedExample) -> str:
    keys = (sentence.key for sentence in example.reference or ())
    return (
        f"Reference sentence keys are {key_ranges(keys)}: each has at least one entry in "
        "reference_claims or stands in reference_sentences_without_claims, never both. "
        "In reference_claims, supporting_sentence_keys holds document sentence keys alone. "
    )


def brief(violations: Sequence[Violation]) -> str:
    """Summarize violations; an answer may break any number of rules with any number of keys."""
    return _listed((f"{v.kind} in {v.field}: {_keys(v)}" for v in violations), "; ")


def key_ranges(keys: Iterable[str]) -> str:
    """Write keys compactly: ``0a, 0b, 0c, 1a`` becomes ``0a-0c, 1a``."""
    runs: list[list[str]] = []
    for key in sorted(set(keys), key=position):
        if runs and _follows(runs[-1][-1], key):
            runs[-1].append(key)
        else:
            runs.append([key])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _follows(earlier: str, later: str) -> bool:
    one, other = position(earlier), position(later)
    return one[:2] == other[:2] and one.sentence + 1 == other.sentence


def _keys(violation: Violation) -> str:
    # A judge may give a document sentence as a key; it is not repeated.
    shown = (repr(key) if _KEY_LIKE.fullmatch(key) else "a text" for key in violation.keys)
    return _listed(shown, ", ")


def _listed(texts: Iterable[str], separator: str) -> str:
    listed = list(texts)
    more = [f"and {len(listed) - _MOST_LISTED} more"] if len(listed) > _MOST_LISTED else []
    return separator.join(listed[:_MOST_LISTED] + more)


_KEY_LIKE = re.compile(r"[A-Za-z0-9_.\[\]-]{1,32}", re.ASCII)
