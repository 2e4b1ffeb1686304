"""The models that answered, next to the one that was asked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from labeler.labels.record import AnyOutcome, Record

_VERSION = re.compile(r"([-@:](\d+|v\d+|latest|preview|exp))*")
"""What may follow the name that was asked for, such as a date: ``-2026-01-01``."""
_SHOWN = 5
"""Models or hosts that a message lists."""


def is_version(answered: str, asked: str) -> bool:
    """Return True if the model that answered is the one asked for, or a version of it.

    ``gpt-5-mini-2026-01-01`` is a version of ``gpt-5-mini``, and ``gpt-5-mini`` none of ``gpt-5``.
    The case of letters is ignored, and a path that only one of the names has, as of a router.
    """
    own, base = answered.lower(), asked.lower().removesuffix("-latest")
    if "/" not in own or "/" not in base:
        own, base = own.rpartition("/")[2], base.rpartition("/")[2]
    return own.startswith(base) and _VERSION.fullmatch(own, len(base)) is not None


class AnsweringModels:
    """Models and hosts that answered, by the model that was asked for."""

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, str], set[tuple[str | None, str | None]]]
        self._found = defaultdict(set)

    def watch(self, outcomes: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        """Yield outcomes, and note who answered; failures and votes have no answer of their own."""
        for outcome in outcomes:
            if isinstance(outcome, Record):
                by, reply = outcome.signature, outcome.reply
                self._found[by.judge, by.model].add((reply.served_model, reply.host))
            yield outcome

    def faults(self) -> list[str]:
        """Return the mixtures, and the other models and hosts, behind each requested name.

        Records that do not name a model or a host prove nothing.
        """
        return [
            f"asked for {asked!r} ({judge}): {fault}"
            for (judge, asked), found in sorted(self._found.items())
            for fault in _faults(asked, found)
        ]


def _faults(asked: str, found: Iterable[tuple[str | None, str | None]]) -> Iterator[str]:
    models = sorted({model for model, _ in found if model})
    hosts = sorted({host for _, host in found if host})
    if len(models) > 1:
        yield f"{len(models)} models answered: {_listed(models)}"
    if others := [model for model in models if not is_version(model, asked)]:
        yield f"not a version of it answered: {_listed(others)}"
    if len(hosts) > 1:
        yield f"{len(hosts)} hosts answered: {_listed(hosts)}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
