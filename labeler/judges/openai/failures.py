"""What can go wrong with a hosted judge, and what to do about it: one table.

The table knows nothing of any client library. A judge describes what it saw as a :class:`Symptom`;
:func:`diagnose` finds the first rule that fits. To handle a new failure, add a rule.

A provider's own words are looked at to tell failures apart and are never repeated: they may hold
parts of the request. Only its short codes are shown, and only if they look like codes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Literal

Sign = Literal[
    "status",  # an HTTP status other than 2xx
    "timeout",  # no complete answer before the deadline
    "connection",  # refused, reset, closed early, cut short
    "not_json",  # a 2xx whose body is not a completion: a captive portal, a proxy's page
    "no_choices",  # a completion without an answer in it
    "refusal",
    "content_filter",
    "truncated",
    "malformed",  # an answer that does not fit the schema
    "contract",  # an answer that fits the schema and breaks the label contract
    "rejected",  # a suspect failure of one record, from a server that has answered others
    "unreachable",  # the server has answered nobody, from the beginning or for too long
    "interrupted",  # the run is being stopped, and nothing more is sent
    "budget",  # the request might cost more than what is left of the budget
]


class Course(Enum):
    """What to do about a failure."""

    RETRY = "ask again after a pause; give the record up when attempts run out"
    RATE = "the same, but all records wait, and it is not held against this one"
    RECORD = "give this record up; the run goes on"
    SUSPECT = "fatal unless the judge has worked before; then one record may be at fault"
    FATAL = "stop the run: no record can succeed"


@dataclass(frozen=True)
class Symptom:
    """What was seen of one failure."""

    sign: Sign
    status: int = 0
    """HTTP status, where there is one."""
    code: str = ""
    """The provider's error code, or its error type where it gave no code."""
    param: str = ""
    """The request parameter that the provider complains of."""
    words: str = ""
    """The provider's message, to match on; never shown."""
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""


_PASSING: frozenset[Sign] = frozenset({"interrupted", "budget"})
"""Reasons of ours that end with the run."""


@dataclass(frozen=True)
class Rule:
    """One row of the table: which symptoms it fits, and what follows."""

    reason: str
    """Machine-readable code that the record's failure carries."""
    course: Course
    what: str
    """The failure in words; ``{option}`` and ``{timeout}`` are filled in."""
    remedy: str
    """What the user can do."""
    sign: Sign = "status"
    status: Container[int] = range(1000)
    params: Container[str] | None = None
    """Fits only a complaint about one of these parameters."""
    codes: re.Pattern[str] | None = None
    """Fits only where the provider's code contains this; a document cannot put it there."""
    marks: re.Pattern[str] | None = None
    """Fits only where the provider's code or words contain this; words may quote a document."""

    @property
    def lasting(self) -> bool:
        """Whether asking the same record the same again would most likely end the same."""
        return self.course is Course.RECORD and self.sign not in _PASSING

    def fits(self, symptom: Symptom) -> bool:
        """Whether the rule speaks about this symptom."""
        return (
            symptom.sign == self.sign
            and symptom.status in self.status
            and (self.params is None or _root(symptom.param) in self.params)
            and (self.codes is None or bool(self.codes.search(plain_code(symptom.code))))
            and (self.marks is None or bool(self.marks.search(f"{symptom.code} {symptom.words}")))
        )


OPTIONS: dict[str, str] = {
    "model": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "reasoning_effort": "reasoning_effort",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "the response schema",
}
"""The judge's option behind each request parameter."""


def _any_of(*texts: str) -> re.Pattern[str]:
    return re.compile("|".join(texts), re.IGNORECASE)


# No mere "billing": the message of an ordinary rate limit links to the account's billing page.
_QUOTA = _any_of("insufficient_quota", "billing_(hard_limit|not_active)", "your current quota")
_BURST = _any_of("request too large")
_TOO_LONG = _any_of("context_length", "string_above_max_length", "maximum context length")
_FILTERED = _any_of("content_filter", "content_policy", "invalid_prompt", "ResponsibleAI")
_PARAMETER = _any_of("unsupported_(parameter|value)", "unknown_parameter", "invalid_json_schema")
_NO_MODEL = _any_of("model_not_found", "model .*does not exist")

_NO_CREDIT = (
    "the account has no credit left",
    "add credit or raise the account's limit, then run again; stored labels are kept",
)
_LONG_RECORD = (
    "the record is too long for the model",
    "use a model with a longer context, or retrieve less",
)
_WRONG_MODEL = ("no such model", "check the model's name")
_REFUSED_OPTION = ("the model does not accept {option}", "drop or change {option}")
_LATER = "run again later; stored labels are kept"

RULES: tuple[Rule, ...] = (
    # Statuses that mean several things; the provider's code or words tell which. Only what surely
    # concerns every record is fatal: a filter on the way may answer one document with any status.
    Rule("quota", Course.FATAL, *_NO_CREDIT, status={403}, codes=_QUOTA),
    Rule("quota", Course.SUSPECT, *_NO_CREDIT, status={403}, marks=_QUOTA),
    Rule("quota", Course.FATAL, *_NO_CREDIT, status={429}, marks=_QUOTA),
    Rule("context_length", Course.RECORD, *_LONG_RECORD, status={400, 422}, marks=_TOO_LONG),
    Rule(
        "context_length", Course.RECORD, "the record alone exceeds the limit of tokens per minute",
        "raise the account's limit, or retrieve less", status={429}, marks=_BURST,
    ),
    Rule(
        "content_filter", Course.RECORD, "the provider's filter blocked the request",
        "read the record; another provider may label it", status={400, 403}, marks=_FILTERED,
    ),
    Rule("not_found", Course.FATAL, *_WRONG_MODEL, status={400, 404}, codes=_NO_MODEL),
    Rule("not_found", Course.FATAL, *_WRONG_MODEL, status={404}, params={"model"}),
    Rule("not_found", Course.SUSPECT, *_WRONG_MODEL, status={400}, marks=_NO_MODEL),
    Rule(
        # The cap is doubled for a record whose answer was cut off, perhaps beyond what is allowed.
        "parameter", Course.SUSPECT, *_REFUSED_OPTION,
        status={400, 422}, params={"max_completion_tokens"},
    ),
    Rule("parameter", Course.FATAL, *_REFUSED_OPTION, status={400, 422}, params=OPTIONS),
    Rule(
        "parameter", Course.SUSPECT, "the model does not accept a parameter of the request",
        "send fewer options, or use another model", status={400, 422}, marks=_PARAMETER,
    ),
    # Statuses that mean one thing.
    Rule(
        "redirect", Course.SUSPECT, "the server redirects elsewhere, and documents are not sent on",
        "set base_url to the final address if you trust it", status=range(300, 400),
    ),
    Rule(
        "authentication", Course.FATAL, "the API key was not accepted",
        "check the key and that it belongs to this host", status={401},
    ),
    Rule("quota", Course.FATAL, *_NO_CREDIT, status={402}),
    Rule(
        "permission", Course.SUSPECT, "the API key may not use this model",
        "use a key with access, or another model", status={403},
    ),
    Rule(
        "not_found", Course.SUSPECT, "no such model or address",
        "check the model's name and base_url (it usually ends in /v1)", status={404, 405},
    ),
    Rule("context_length", Course.RECORD, *_LONG_RECORD, status={413}),
    Rule(
        "rate_limit", Course.RATE, "the server is limiting the rate of requests",
        "run it again later, or lower the concurrency", status={429},
    ),
    Rule(
        "transport", Course.RETRY, "the server failed", _LATER,
        status={408, 409, 425, *range(500, 1000)},
    ),
    # Any other status: it may well be this record's fault alone.
    Rule(
        "bad_request", Course.RECORD, "the server did not accept the request",
        "look the code up in the provider's documentation",
    ),
    # No status, or a good one.
    Rule(
        "transport", Course.RETRY, "the connection failed",
        "check the network and base_url, then run again", sign="connection",
    ),
    Rule(
        "timeout", Course.RETRY, "no complete answer within {timeout:g} s",
        "raise timeout, or lower max_output_tokens", sign="timeout",
    ),
    Rule(
        "transport", Course.RETRY, "the server answered with something that is no completion",
        "check base_url, and that no proxy or login page stands between", sign="not_json",
    ),
    Rule(
        "transport", Course.RETRY, "the server sent a completion without an answer", _LATER,
        sign="no_choices",
    ),
    Rule(
        "content_filter", Course.RECORD, "the provider's filter blocked the answer",
        "read the record; another provider may label it", sign="content_filter",
    ),
    Rule(
        "refusal", Course.RECORD, "the model refused to answer",
        "read the record; another model may label it", sign="refusal",
    ),
    Rule(
        "truncated", Course.RECORD, "the answer was cut off",
        "raise max_output_tokens, or lower reasoning_effort", sign="truncated",
    ),
    Rule(
        "malformed", Course.RECORD, "the answer does not fit the label's schema",
        "use a provider that enforces strict schemas", sign="malformed",
    ),
    Rule(
        "contract", Course.RECORD, "the answer broke the label contract",
        "use a more capable model if this is frequent", sign="contract",
    ),
    # What a judge makes of what it saw.
    Rule(
        "rejected", Course.RECORD, "the server rejected this record, though it has answered others",
        "read the record: a filter on the way may object to it; another provider may label it",
        sign="rejected",
    ),
    Rule(
        "unreachable", Course.FATAL, "the server answers no record",
        "see that the address is right and the server is up; then run it again to go on",
        sign="unreachable",
    ),
    Rule(
        "interrupted", Course.RECORD, "the run was stopped before it could be asked again",
        "run it again to go on", sign="interrupted",
    ),
    Rule(
        "budget", Course.RECORD, "no further request was sent", "raise the budget and run it again",
        sign="budget",
    ),
)  # fmt: skip
"""First fit wins. Every sign has a rule that fits whatever else was seen; a test holds that."""


def diagnose(symptom: Symptom) -> Rule:
    """Find what follows from a symptom."""
    return next(rule for rule in RULES if rule.fits(symptom))


class Failed(Exception):
    """One attempt that gave no usable answer."""

    def __init__(self, symptom: Symptom, detail: str = "") -> None:
        self.symptom = symptom
        self.rule = diagnose(symptom)
        self.detail = detail
        super().__init__(self.rule.reason)


def explain(symptom: Symptom, *, timeout: float, detail: str = "") -> str:
    """Say what happened, the provider's codes, and what to do.

    Args:
        symptom: what was seen.
        timeout: the deadline that an attempt had.
        detail: more about what happened, in our words.
    """
    rule = diagnose(symptom)
    words = {"option": OPTIONS.get(_root(symptom.param), "a parameter"), "timeout": timeout}
    codes = [f"status {symptom.status}"] if symptom.status else []
    codes += [f"code {plain_code(symptom.code)}"] if plain_code(symptom.code) else []
    codes += [f"parameter {plain_code(symptom.param)}"] if plain_code(symptom.param) else []
    seen = f" ({', '.join(codes)})" if codes else ""
    more = f": {detail}" if detail else ""
    return f"{rule.what.format_map(words)}{seen}{more}; {rule.remedy.format_map(words)}"


def plain_code(text: str) -> str:
    """A provider's code if it looks like one, else nothing: it might quote the request.

    Hyphens are not allowed, so that no API key passes for a code.
    """
    return text if _CODE.fullmatch(text) else ""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a server asks to wait: milliseconds, seconds or a date; ``None`` if it does not.

    Args:
        headers: the response's headers, names in lower case.
        now: the current time; a date in the header is measured from it.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, "")) / unit
        if math.isfinite(seconds):
            return min(_MONTH, max(0.0, seconds))
    return _seconds_until(headers.get("retry-after", ""), now or datetime.now(UTC))


_MONTH = 30 * 86400.0
"""Seconds; who asks for more has no clock, and dates have an end."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(_MONTH, max(0.0, (moment - now).total_seconds()))


def _root(param: str) -> str:
    """The parameter that a path such as ``messages[1].content`` begins with."""
    return re.split(r"[.\[]", param, maxsplit=1)[0]


_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.\[\]]{0,63}", re.ASCII)
