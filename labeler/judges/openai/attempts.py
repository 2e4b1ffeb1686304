"""What has happened for one record so far: requests, answers, what they broke and cost."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

from openai.types.chat import ChatCompletion
from pydantic import AfterValidator, TypeAdapter, ValidationError

from labeler.judges.openai.client import flaw_of, text_of, tokens_of, usage_of
from labeler.judges.openai.failures import Sign, Symptom
from labeler.judges.openai.reask import NO_ANSWER, NOT_A_LABEL, brief, complaint, rules_again
from labeler.judges.task import Task
from labeler.judges.traffic.traffic import Traffic, current
from labeler.labels.contract import Violation
from labeler.labels.logprobs import Token
from labeler.labels.record import ReplyFacts, Usage
from labeler.sentences.example import Frozen
from labeler.version import __version__


@dataclass
class Exchange:
    """The bookkeeping of one record, from its first request to its last answer."""

    request: Task
    cap: int | None
    """Tokens that an answer may have, where there is a limit."""
    traffic: Traffic = field(default_factory=current)
    """That of the run."""
    attempts: int = 0
    """Requests that were sent."""
    forgiven: int = 0
    """Requests for the current answer that failed for a reason that concerns all records."""
    answers: int = 0
    """Answers that came, whatever they were worth."""
    readable: int = 0
    """Answers that fitted the schema."""
    violations: tuple[Violation, ...] = ()
    """What the latest answer broke."""
    broken: Counter[str] = field(default_factory=Counter)
    said: str = ""
    """The latest answer, word for word."""
    tokens: tuple[Token, ...] = ()
    """Those of the latest answer, where their probabilities were given."""
    usage: Usage | None = None
    """Tokens charged so far; ``None`` while no answer has said."""
    served_model: str | None = None
    fingerprint: str | None = None
    lengthened: bool = False
    started: float = field(default_factory=time.monotonic)

    @property
    def reasks(self) -> int:
        """Answers that were sent back."""
        return max(0, self.answers - 1)

    def note(self, completion: object) -> Sign | None:
        """Keep what a completion says of itself (instructor alters it later), and its flaw."""
        if isinstance(completion, ChatCompletion):
            self.served_model = _fact(completion.model)
            self.fingerprint = _fact(completion.system_fingerprint)
            charged = usage_of(completion)
            if charged is not None:
                self.usage = charged + (self.usage or Usage())
        flaw = flaw_of(completion)
        self.said = _content(completion) if flaw is None else ""
        self.tokens = tokens_of(completion) if flaw is None else ()
        self.answers += flaw is None
        return flaw

    def lengthen(self) -> bool:
        """Double the cap, once; whether that was possible."""
        if self.cap is None or self.lengthened:
            return False
        self.cap, self.lengthened = self.cap * 2, True
        return True

    def check(self, answer: Frozen) -> None:
        """Hold an answer against what it must keep.

        Raises:
            ValueError: it broke the contract, or says two things under one name.
        """
        if _names_twice(self.said):  # every reader of JSON picks one of them, silently
            raise ValueError("a name stands twice in one object")
        self.readable += 1
        self.violations = self.request.violations(answer)
        self.broken.update(violation.kind for violation in self.violations)
        if self.violations:
            raise ValueError(brief(self.violations))

    def reproof(self) -> str:
        """What to say to the judge about its latest answer."""
        rules = self.request.rules
        if rules is not None:
            return rules_again(self.violations, rules) if self.violations else NO_ANSWER
        if self.violations:
            return complaint(self.violations, self.request.example, self.request.answer_type)
        return NOT_A_LABEL

    def verdict(self, error: ValidationError) -> tuple[Symptom, str]:
        """Why the latest answer was not accepted."""
        if self.violations:
            return Symptom("contract"), brief(self.violations)
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        return Symptom("malformed"), str(problems[0]["type"])

    def facts(self, host: str) -> ReplyFacts:
        """The reply's facts, once the answer is there."""
        return ReplyFacts(
            served_model=self.served_model,
            system_fingerprint=self.fingerprint,
            host=host,
            usage=self.usage,
            attempts=self.attempts,
            reasks=self.reasks,
            broken_contracts=self._broken_contracts(),
            seconds=round(time.monotonic() - self.started, 3),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            labeler_version=__version__,
        )

    def _broken_contracts(self) -> dict[str, int]:
        malformed = self.answers - self.readable
        return {**self.broken, **({"malformed": malformed} if malformed else {})}


_LONGEST_FACT = 200


def _fact(value: object) -> str | None:
    """What a server says of itself, as text that can be stored."""
    return text_of(value).encode("utf-8", "replace").decode()[:_LONGEST_FACT] or None


def _content(completion: object) -> str:
    choices = completion.choices if isinstance(completion, ChatCompletion) else []
    return text_of(choices[0].message.content) if choices else ""


def _names_twice(text: str) -> bool:
    """Whether an object in a JSON text holds one name twice."""
    found = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        found = found or len({name for name, _ in pairs}) < len(pairs)

    try:
        json.loads(text, object_pairs_hook=look)
    except (ValueError, RecursionError):  # no JSON at all: whoever reads it will say so
        return False
    return found


EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")
"""The record that the current task asks about. instructor's own channel for this, ``context=``,
would run every message, documents included, through a template engine."""


@cache
def reader_of(output: type[Frozen]) -> TypeAdapter[Frozen]:
    """Reads an answer, and holds it against what it must keep: the contract of the record at hand.

    Args:
        output: the class of the answer.
    """
    kept: Any = Annotated[output, AfterValidator(_kept)]
    return TypeAdapter(kept)


def _kept(answer: Frozen) -> Frozen:
    EXCHANGE.get().check(answer)
    return answer
