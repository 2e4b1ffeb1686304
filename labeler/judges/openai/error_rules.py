"""Errors of a hosted judge and what follows from each: one table.

The table knows no client library. A judge describes an error as an :class:`ObservedError`;
:func:`find_rule` returns the first rule that matches. To handle a new error, add a rule.

A provider's messages are matched and not shown for a record, because they may quote the request:
texts that look like short codes are. The message of a run that stops quotes the server once.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from types import MappingProxyType
from typing import Literal

from labeler.judges.openai.address import plain_code
from labeler.judges.options import ModelOptions, is_in_key
from labeler.sentences.words import read_patterns

WORDS = read_patterns(__file__, "servers", re.IGNORECASE)
"""Expressions by which errors are known, see ``servers.toml``."""

ErrorKind = Literal[
    "status",  # an HTTP status other than 2xx
    "timeout",  # no answer before the deadline
    "late",  # an answer that had begun, and did not end before the deadline
    "unconnected",  # no connection: refused, no such host, no route
    "proxy",  # no connection: a proxy rejected it
    "no_key",  # no request: its API key could not be fetched
    "untrusted",  # no connection: a certificate of an unknown authority, or for another host
    "connection",  # reset, closed early, cut short
    "oversized",  # a response over a limit
    "garbled",  # a response that breaks HTTP, its encoding or JSON, most likely paid for
    "not_json",  # a 2xx whose body is not a completion: a captive portal, a proxy's page
    "foreign",  # a 2xx whose body is JSON of another API
    "no_choices",  # a completion without an answer
    "slipped",  # a paid answer that the provider itself could not read, such as a tool call
    "refusal",
    "content_filter",
    "truncated",
    "cut_prompt",  # the server has read only a part of the prompt
    "empty",  # an answer of no text
    "malformed",  # an answer that does not match the schema
    "undecided",  # probabilities that do not fit the questions
    "contract",  # an answer that matches the schema and breaks the label contract
    "unreachable",  # the server has answered no request for too long
    "interrupted",  # the run is stopping; nothing more is sent
    "budget",  # the request might cost more than the rest of the budget
]


class RetryPolicy(Enum):
    """Action that follows from an error."""

    RETRY = "retry after a pause; fail the record when attempts run out"
    RATE = "like RETRY, but all records wait and it does not count as this record's attempt"
    RECORD = "fail this record; the run goes on"
    FATAL = "stop the run: no record can succeed"


RETRIED = frozenset({RetryPolicy.RETRY, RetryPolicy.RATE})


@dataclass(frozen=True)
class ObservedError:
    """Facts about one error, independent of the client library."""

    kind: ErrorKind
    status: int = 0
    """HTTP status; 0 if there is none."""
    code: str = ""
    """The provider's error code, else its error type."""
    param: str = ""
    """Request parameter that the provider complains about."""
    message: str = ""
    """The provider's message: matched, and quoted if it stops a run."""
    retry_after: float | None = None
    """Seconds to wait, as the provider asks."""
    facts: str = ""
    """Our own observations, shown."""


_OF_ROW = frozenset({"context_length", "content_filter", "refusal", "contract"})
"""Reasons that lie in a record rather than in the server."""
_PASSING = frozenset({"authentication", "not_found", "quota", "redirect", "interrupted", "budget"})
"""Reasons that lie in a key, an address or a run; the next one may be right."""


@dataclass(frozen=True)
class Rule:
    """One row of the table: the errors that it matches, and what follows."""

    reason: str
    """Reason code of the record's failure."""
    policy: RetryPolicy
    summary: str
    """Description for people; ``{option}``, ``{timeout}`` and ``{longer}`` are filled in."""
    remedy: str
    """Advice for the user."""
    kind: ErrorKind = "status"
    status: Container[int] = range(1000)
    params: Container[str] | None = None
    """Matches only complaints about these parameters."""
    codes: re.Pattern[str] | None = None
    """Matches the provider's code only; a document cannot influence it."""
    marks: re.Pattern[str] | None = None
    """Matches the provider's code or message; a message may quote a document."""
    names_format: bool = False
    """True if the error is about the output mode of the request."""
    once: bool = False
    """True to ask once more only: the answer was most likely paid for."""

    @property
    def of_row(self) -> bool:
        """True if the error speaks about the record."""
        return self.reason in _OF_ROW

    @property
    def of_model(self) -> bool:
        """True if the model has answered, though with nothing usable."""
        return self.reason == "malformed"

    @property
    def lasting(self) -> bool:
        """True if the same request would most likely fail again."""
        is_final = self.policy is RetryPolicy.RECORD or (self.of_model and self.once)
        return is_final and self.reason not in _PASSING

    def matches(self, observed: ObservedError) -> bool:
        """Return True if the rule matches an error."""
        said = f"{observed.code} {observed.message}"
        return (
            observed.kind == self.kind
            and observed.status in self.status
            and (self.params is None or _root(observed.param) in self.params)
            and (self.codes is None or bool(self.codes.search(plain_code(observed.code))))
            and (self.marks is None or bool(self.marks.search(said)))
        )


OPTION_OF_PARAMETER: dict[str, str] = {
    **{option.name: option.name for option in fields(ModelOptions) if is_in_key(option)},
    "max_completion_tokens": "max_output_tokens or cap_field",
    "max_tokens": "max_output_tokens or cap_field",
}
"""Judge option by request parameter."""


_P = RetryPolicy  # for the table below
_NO_CREDIT = (
    "the account has no credit left",
    "add credit or raise the account's limit, then run again; stored labels are kept",
)
_LONG_RECORD = (
    "the record is too long for the model",
    "give it fewer documents, or choose a model with more context",
)
_WRONG_MODEL = (
    "no such model",
    "check the model's name, and that it answers chat completions",
)
_WRONG_ADDRESS = (
    "no such model or address",
    "check the model's name and base_url (for chat completions, it ends in /v1)",
)
_REFUSED_OPTION = ("the model does not accept {option}", "drop or change {option}")
_OTHER_MODE = (
    "the server does not accept the response schema in this output mode",
    "choose another one with --output-mode",
)
_REFUSED_KEY = (
    "the API key was not accepted",
    "check the key and that it belongs to this host",
)
_NO_ACCESS = ("the API key may not use this model", "use a key with access, or another model")
_PROXY_ACCESS = (
    "the proxy asks for a user and a password",
    "put http://USER:PASSWORD@HOST:PORT into a variable, and give --proxy @VARIABLE",
)
_RATE = (
    "the server is limiting the rate of requests",
    "run it again later, or lower the concurrency",
)
_BUSY = ("the server has more requests than it takes at once", _RATE[1])
_STRICT = "try another --output-mode, such as tools, or a model that keeps to schemas"
_LATER = "run again later; stored labels are kept"
_DOWN = ("the server failed", _LATER)

RULES: tuple[Rule, ...] = (
    # Ambiguous statuses: the provider's code or message decides. A rule is fatal only if the error
    # certainly concerns every record, because a filter may answer one document with any status.
    # Only codes show that an account is empty: ordinary rate limits use the same words.
    Rule("quota", _P.FATAL, *_NO_CREDIT, status={400, 401, 403, 429, 500}, codes=WORDS["quota"]),
    Rule("quota", _P.RECORD, *_NO_CREDIT, status={400, 401, 403, 429}, marks=WORDS["no_balance"]),
    Rule(
        "context_length", _P.RECORD, *_LONG_RECORD,
        status={400, 422, 424, 500}, marks=WORDS["too_long"],
    ),
    Rule(
        "context_length", _P.RECORD, "the record alone exceeds the limit of tokens per minute",
        "raise the account's limit, or retrieve less", status={413, 429}, marks=WORDS["burst"],
    ),
    Rule(
        "content_filter", _P.RECORD, "the provider's filter blocked the request",
        "read the record; another provider may label it",
        status={400, 403, 424, 446, 451}, marks=WORDS["filtered"],
    ),
    Rule(
        "malformed", _P.RETRY, "the model wrote no valid JSON", _STRICT,
        status={400, 500}, marks=WORDS["slipped"],
    ),
    Rule(
        "parameter", _P.FATAL, *_OTHER_MODE,
        status={400, 422}, params=("response_format", "tools", "tool_choice"), names_format=True,
    ),
    Rule(
        "parameter", _P.RECORD, *_OTHER_MODE,
        status={400, 404, 422, 501}, marks=WORDS["format"], names_format=True,
    ),
    Rule(
        "parameter", _P.RECORD, *_OTHER_MODE,
        status={500}, marks=WORDS["grammar"], names_format=True,
    ),
    Rule("not_found", _P.FATAL, *_WRONG_MODEL, status={400, 404}, codes=WORDS["no_model"]),
    Rule("not_found", _P.FATAL, *_WRONG_MODEL, status={400, 404}, params={"model"}),
    Rule("not_found", _P.RECORD, *_WRONG_MODEL, status={400}, marks=WORDS["no_model"]),
    Rule(
        # A doubled cap, after a truncated answer, may exceed the model's limit for this record.
        "parameter", _P.RECORD, *_REFUSED_OPTION,
        status={400, 422}, params={"max_completion_tokens", "max_tokens"},
    ),
    Rule(
        "parameter", _P.RECORD, "the server does not know max_completion_tokens",
        "give --cap-field max_tokens", status={400, 422}, marks=WORDS["unknown_cap"],
    ),
    Rule(
        "parameter", _P.RECORD, "the model does not write as many tokens as the cap allows",
        "give a lower --max-output-tokens", status={400}, marks=WORDS["high_cap"],
    ),
    Rule("parameter", _P.FATAL, *_REFUSED_OPTION, status={400, 422}, params=OPTION_OF_PARAMETER),
    Rule(
        "parameter", _P.RECORD, "the model does not accept a parameter of the request",
        "send fewer options, or use another model", status={400, 422}, marks=WORDS["parameter"],
    ),
    Rule(
        "parameter", _P.RECORD, "the server does not know a field of the request",
        "drop the option or the field of --extra-body that sends it",
        status={400, 422}, marks=WORDS["unknown"],
    ),
    Rule("not_found", _P.RECORD, *_WRONG_ADDRESS, status={500}, marks=WORDS["no_address"]),
    Rule("transport", _P.RETRY, *_DOWN, status={400, 403, 404}, marks=WORDS["failing"]),
    Rule("authentication", _P.RECORD, *_REFUSED_KEY, status={400, 403}, marks=WORDS["wrong_key"]),
    # Unambiguous statuses.
    Rule(
        "redirect", _P.RECORD, "the server redirects elsewhere, and documents are not sent on",
        "set base_url to the final address if you trust it", status=range(300, 400),
    ),
    Rule("permission", _P.RECORD, *_NO_ACCESS, status={400, 401}, marks=WORDS["no_access"]),
    Rule("authentication", _P.FATAL, *_REFUSED_KEY, status={401}),
    Rule("authentication", _P.FATAL, *_PROXY_ACCESS, status={407}),
    Rule("quota", _P.FATAL, *_NO_CREDIT, status={402}),
    Rule("quota", _P.RECORD, *_NO_CREDIT, status={412}),  # Fireworks, Portkey
    Rule("rate_limit", _P.RATE, *_RATE, status={403, 500}, marks=WORDS["limited"]),
    Rule(
        "permission", _P.RECORD, "a firewall before the server rejected the request",
        "read the record, which may look like an attack; if all rows fail so, check the network",
        status={403}, marks=WORDS["firewall"],
    ),
    Rule("permission", _P.RECORD, *_NO_ACCESS, status={403}),
    Rule("not_found", _P.RECORD, *_WRONG_ADDRESS, status={404, 405, 410}),
    Rule("context_length", _P.RECORD, *_LONG_RECORD, status={413}),
    Rule("rate_limit", _P.RATE, *_RATE, status={429}),
    Rule("rate_limit", _P.RATE, *_BUSY, status={498, 503}, marks=WORDS["busy"]),
    Rule("rate_limit", _P.RATE, *_BUSY, status={529}),
    Rule(
        "transport", _P.RETRY, *_DOWN,
        status={408, 409, 421, 423, 424, 425, *range(498, 1000)} - {501, 505},
    ),
    # Any other status: possibly the fault of this record alone.
    Rule(
        "bad_request", _P.RECORD, "the server did not accept the request",
        "look the code up in the provider's documentation",
    ),
    # No status, or 2xx.
    Rule(
        "transport", _P.RETRY, "cannot connect to the server",
        "check the network, proxy, and http or https in base_url, then run again",
        kind="unconnected",
    ),
    Rule("authentication", _P.FATAL, *_PROXY_ACCESS, kind="proxy", status={407}),
    Rule(
        "transport", _P.RETRY, "the proxy does not connect to the server",
        "check base_url, proxy and what the proxy allows, then run again", kind="proxy",
    ),
    Rule(
        "authentication", _P.FATAL, "there is no API key",
        "check --api-key-command, or the function given as api_key", kind="no_key",
    ),
    Rule(
        "transport", _P.FATAL, "the server's certificate is not trusted",
        "check base_url; if the server or a proxy has an authority of its own, give its "
        "certificates with --ca-file FILE", kind="untrusted",
    ),
    Rule(
        "transport", _P.RETRY, "the connection failed",
        "check the network, and http or https in base_url, then run again", kind="connection",
    ),
    Rule(
        "oversized", _P.RECORD, "the server's answer is over a limit of size",
        "read the record, or lower max_output_tokens", kind="oversized",
    ),
    Rule(
        "timeout", _P.RETRY, "no complete answer within {timeout:g} s",
        "raise timeout, such as to {longer:g}, or lower max_output_tokens", kind="timeout",
    ),
    Rule(
        "timeout", _P.RETRY, "the answer had begun and did not end within {timeout:g} s",
        "raise timeout, such as to {longer:g}, or lower max_output_tokens", kind="late", once=True,
    ),
    Rule(
        "transport", _P.RETRY, "the server's answer is damaged",
        "check the server, and the proxies and gateways before it", kind="garbled", once=True,
    ),
    Rule(
        "transport", _P.RETRY, "the server answered with something that is not a completion",
        "check base_url, and that no proxy or login page stands between", kind="not_json",
    ),
    Rule(
        "transport", _P.RETRY, "the server answers as another API does",
        "give the --base-url of its chat completions, which mostly ends in /v1", kind="foreign",
        once=True,
    ),
    Rule(
        "transport", _P.RETRY, "the server sent a completion without an answer", _LATER,
        kind="no_choices",
    ),
    Rule(
        "malformed", _P.RETRY, "the model wrote nothing that its provider passes on",
        "try another --output-mode, such as prompt, or another model", kind="slipped", once=True,
    ),
    Rule(
        "content_filter", _P.RECORD, "the provider's filter blocked the answer",
        "read the record; another provider may label it", kind="content_filter",
    ),
    Rule(
        "refusal", _P.RECORD, "the model refused to answer",
        "read the record; another model may label it", kind="refusal",
    ),
    Rule(
        "truncated", _P.RECORD, "the answer was cut off",
        "raise max_output_tokens, or lower reasoning_effort", kind="truncated",
    ),
    Rule(
        "cut_prompt", _P.RECORD, "the server has cut the prompt",
        "raise the context length of the server (Ollama: OLLAMA_CONTEXT_LENGTH), or retrieve less",
        kind="cut_prompt",
    ),
    Rule(
        "malformed", _P.RECORD, "the answer is empty",
        "raise max_output_tokens, lower reasoning_effort, or turn the server's reasoning parser "
        "off", kind="empty",
    ),
    Rule(
        "malformed", _P.RECORD, "the answer does not fit the label's schema", _STRICT,
        kind="malformed",
    ),
    Rule(
        "malformed", _P.RETRY, "the answers do not fit the questions",
        "check that the server speaks this API; for a classifier behind another one, write a judge "
        "function", kind="undecided", once=True,
    ),
    Rule(
        "contract", _P.RECORD, "the answer broke the label contract",
        "use a more capable model if this is frequent", kind="contract",
    ),
    # Conclusions of the judge.
    Rule(
        "unreachable", _P.FATAL, "the server answers no record",
        "see that the address is right and the server is up; then run it again to go on",
        kind="unreachable",
    ),
    Rule(
        "interrupted", _P.RECORD, "the run was stopped before it could be asked again",
        "run it again to go on", kind="interrupted",
    ),
    Rule(
        "budget", _P.RECORD, "no further request was sent", "raise the budget and run it again",
        kind="budget",
    ),
)  # fmt: skip
"""The first match wins. Every kind has a rule without further conditions (tested)."""


def find_rule(observed: ObservedError) -> Rule:
    """Return the first rule that matches an error."""
    return next(rule for rule in RULES if rule.matches(observed))


class AttemptFailed(Exception):
    """An attempt without a usable answer; holds no part of the request.

    Attributes:
        observed: the error.
        rule: the rule that matches it.
        detail: additional information for the message.
        headers: headers of the response, if there was one; names are case-insensitive.
        charged: True if the provider may have charged for the request.
        counts: False if the error concerns all records and costs none of them an attempt.
        stops: True if the run must stop: no record can succeed.
        again: True if a changed request follows at once, which counts as the same attempt.
    """

    def __init__(
        self,
        observed: ObservedError,
        detail: str = "",
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        charged: bool = True,
    ) -> None:
        self.observed, self.detail = observed, detail
        self.headers, self.charged = headers, charged
        self.rule = find_rule(observed)
        self.counts, self.again = True, False
        self.stops = self.rule.policy is RetryPolicy.FATAL
        super().__init__(self.rule.reason)


def explain(observed: ObservedError, *, timeout: float, detail: str = "") -> str:
    """Return the message for people: what happened, the provider's codes, and a remedy.

    Args:
        observed: the error.
        timeout: deadline of an attempt in seconds.
        detail: additional information of ours.
    """
    rule = find_rule(observed)
    option = OPTION_OF_PARAMETER.get(_root(observed.param), "a parameter")
    values = {"option": option, "timeout": timeout, "longer": 2 * timeout}
    unknown = WORDS["unknown"].search(observed.message) if rule.reason == "parameter" else None
    param = plain_code(observed.param or (unknown["field"] if unknown else ""))
    codes = {"status": observed.status, "code": plain_code(observed.code), "parameter": param}
    named = ", ".join(f"{name} {value}" for name, value in codes.items() if value)
    seen = f" ({named})" if named else ""
    limit = WORDS["limit"].search(observed.message) if rule.reason == "context_length" else None
    most = f"the server names {limit[limit.lastindex or 0]} tokens" if limit else ""
    more = "".join(f": {text}" for text in (most, observed.facts, detail) if text)
    return f"{rule.summary.format_map(values)}{seen}{more}; {rule.remedy.format_map(values)}"


def _root(param: str) -> str:
    """Return the first part of a path such as ``messages[1].content``."""
    return re.split(r"[.\[]", param, maxsplit=1)[0]
