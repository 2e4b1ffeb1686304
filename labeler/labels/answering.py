"""The models that answered, next to the one that was asked, and what the answers cost."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from labeler.labels.record import AnyOutcome, AnyRecord, Record, ReplyFacts, Usage
from labeler.labels.signature import Signature, escaped
from labeler.sentences.display import plural

_VERSION = re.compile(r"([-@:](\d+|v\d+|latest|preview|exp))*")
"""What may follow the name that was asked for, such as a date: ``-2026-01-01``."""
_SHOWN = 5
"""Models or hosts that a message lists."""
LONGEST_NAME = 400
"""Characters of a name that are kept; stored labels may come from anywhere."""
ANSWERED = "|answered:"
"""Stands between a printed signature and the model that answered."""
_AND = " + "
"""Stands between the names of models or hosts that answered for one record together."""


def is_version(answered: str, asked: str) -> bool:
    """Return True if the model that answered is the one asked for, or a version of it.

    ``gpt-5-mini-2026-01-01`` is a version of ``gpt-5-mini``, and ``gpt-5-mini`` none of ``gpt-5``.
    The case of letters is ignored, and a path that only one of the names has, as of a router. Of
    several models that answered together, each must be a version.
    """
    return all(_is_version(name.lower(), asked.lower()) for name in answered.split(_AND))


def _is_version(own: str, asked: str) -> bool:
    base = asked.removesuffix("-latest")
    if "/" not in own or "/" not in base:
        own, base = own.rpartition("/")[2], base.rpartition("/")[2]
    return own.startswith(base) and _VERSION.fullmatch(own, len(base)) is not None


def joined(names: Iterable[str | None]) -> str | None:
    """Return the distinct names of models, or hosts, that answered for one record; else ``None``.

    Several are joined with `` + ``, and an unknown one is left out.
    """
    return _AND.join(sorted({name for name in names if name})) or None


class AnsweringModel(NamedTuple):
    """The model that answered for a record.

    Attributes:
        judge: kind of judge.
        asked: the model that was asked for.
        name: the model that answered, as the server names it; see :func:`joined` for several. Empty
            if unknown.
        host: the host that answered; see :func:`joined` for several. Empty if unknown.
    """

    judge: str
    asked: str
    name: str = ""
    host: str = ""

    @classmethod
    def of(cls, signature: Signature, reply: ReplyFacts) -> AnsweringModel:
        """Return the model that answered for a record with this signature and reply."""
        asked = signature.judge[:LONGEST_NAME], signature.model[:LONGEST_NAME]
        name, host = reply.served_model or "", reply.host or ""
        return _shared(*asked, name[:LONGEST_NAME], host[:LONGEST_NAME])

    @classmethod
    def of_several(cls, found: Sequence[AnsweringModel]) -> AnsweringModel:
        """Return the models that answered together for records of one judge configuration."""
        names, hosts = (
            joined(getattr(one, part) for one in found) or "" for part in ("name", "host")
        )
        return found[0]._replace(name=names, host=hosts)


_shared = lru_cache(maxsize=256)(AnsweringModel)


def answered_by(label: str, name: str) -> str:
    """Return a printed signature with the name of the model that answered, unless it is empty."""
    return sys.intern(f"{label}{ANSWERED}{escaped(name)}") if name else label


def configuration(record: AnyRecord) -> str:
    """Return the printed signature of a record, with the model that answered."""
    name = AnsweringModel.of(record.signature, record.reply).name
    return answered_by(str(record.signature), name)


class AnsweringModels:
    """Models and hosts that answered, by the model that was asked for.

    Args:
        found: models that answered.
    """

    def __init__(self, found: Iterable[AnsweringModel] = ()) -> None:
        self._found = set(found)

    def watch(self, outcomes: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        """Yield outcomes, and note who answered; failures and votes have no answer of their own."""
        for outcome in outcomes:
            if isinstance(outcome, Record):
                self._found.add(AnsweringModel.of(outcome.signature, outcome.reply))
            yield outcome

    def faults(self) -> list[str]:
        """Return the mixtures, and the other models and hosts, behind each requested name.

        Records that do not name a model or a host prove nothing.
        """
        by_request = defaultdict[tuple[str, str], list[AnsweringModel]](list)
        for model in self._found:
            by_request[model.judge, model.asked].append(model)
        return [
            f"asked for {asked!r} ({judge}): {fault}"
            for (judge, asked), found in sorted(by_request.items())
            for fault in _faults(asked, found)
        ]


def mixture(names: Iterable[str]) -> str | None:
    """Return that several models answered, if so."""
    models = _distinct(names)
    return f"{len(models)} models answered: {_listed(models)}" if len(models) > 1 else None


def _faults(asked: str, found: Sequence[AnsweringModel]) -> Iterator[str]:
    models, hosts = (
        _distinct(getattr(model, part) for model in found) for part in ("name", "host")
    )
    if several := mixture(models):
        yield several
    if others := [model for model in models if not is_version(model, asked)]:
        yield f"not a version of it answered: {_listed(others)}"
    if len(hosts) > 1:
        yield f"{len(hosts)} hosts answered: {_listed(hosts)}"


def _distinct(names: Iterable[str]) -> list[str]:
    """Return the distinct single names."""
    return sorted({one for name in names if name for one in name.split(_AND)})


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


UNKNOWN_TOKENS = "tokens unknown: the server reports none"
_ANSWERED = frozenset(
    {"contract", "malformed", "truncated", "refusal", "content_filter", "cut_prompt"}
)
"""Reasons of failures that an answer led to."""
_LOCAL = frozenset({"embedded", "replay", "function"})
"""Kinds of judges that ask no server."""


def unmetered_requests(outcome: Any) -> int:  # noqa: ANN401 - an outcome, or a part of one
    """Return the requests of an outcome that a server answered without reporting tokens."""
    if outcome.kind != "failure":
        reply = outcome.reply
        return reply.attempts if reply.host and reply.usage is None else 0
    judge = outcome.signature.judge if outcome.signature else ""
    answered = outcome.reason in _ANSWERED and judge not in _LOCAL
    return outcome.attempts if answered and outcome.usage is None else 0


@dataclass(frozen=True)
class RunCost:
    """What labels cost.

    Attributes:
        requests: number of requests sent.
        usage: tokens of all answers.
        dollars: US dollars that they cost; ``None`` if the price or the tokens are unknown.
        source: origin of the price.
        unmetered: requests whose tokens the server did not report.
    """

    requests: int
    usage: Usage
    dollars: float | None = None
    source: str = ""
    unmetered: int = 0

    def __str__(self) -> str:
        if not (self.usage.prompt_tokens or self.dollars or self.unmetered):
            return "no token was paid for"
        price = f"${self.dollars:.4f} by {self.source}; " if self.dollars is not None else ""
        unknown = f", {self.unmetered:,} of unknown usage" if self.unmetered else ""
        usage = self.usage
        tokens = (
            f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached), "
            f"{usage.completion_tokens:,} completion tokens"
        )
        if not usage.prompt_tokens and self.unmetered:
            unknown, tokens = "", UNKNOWN_TOKENS
        return f"{price}{plural(self.requests, 'request')}{unknown}, {tokens}"


class LabelFacts:
    """Counts of outcomes, or of their parts: judges, failures by reason, requests and tokens."""

    def __init__(self, outcomes: Iterable[Any]) -> None:
        self.failed: Counter[str] = Counter()
        self.judges: dict[str, None] = {}
        requests, unmetered, usage = 0, 0, Usage()
        paid = set[str]()
        for outcome in outcomes:
            signature = outcome.signature
            if outcome.kind == "failure":
                self.failed[outcome.reason] += 1
                asked, spent = outcome.attempts, outcome.usage
            else:
                asked, spent = outcome.reply.attempts, outcome.reply.usage
                if signature is not None:
                    self.judges[f"{signature.judge}/{signature.model}"] = None
                if outcome.key in paid:  # rows of equal texts share one request
                    continue
                paid.add(outcome.key)
            requests += asked
            unmetered += unmetered_requests(outcome)
            if spent:
                usage += spent
        self.cost = RunCost(requests, usage, unmetered=unmetered)
