"""Stored labels that a run uses although another host, or another function, gave them.

The host is not part of a label's key, so that labels stay valid when a server moves. A stub under a
real model's name, or a store in a cloned folder, would answer for the real server without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.judges.judge import Judge
    from labeler.labels.record import AnyOutcome

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class ServedLabels:
    """Compares stored labels that are served with the judge that would be asked otherwise.

    Args:
        notice: receives messages for people.
        same_host: whether to refuse labels that another host gave.
    """

    def __init__(
        self, notice: Callable[[str], object] = lambda _: None, *, same_host: bool = False
    ) -> None:
        self.notice, self._same_host = notice, same_host
        self._elsewhere: dict[str, Counter[str]] = {}
        """Numbers of labels by the host that gave them, by the host that the run asks."""
        self._changed = set[str]()

    def check(self, judge: Judge, outcome: AnyOutcome) -> None:
        """Compare a stored outcome with its judge.

        Raises:
            UsageError: another host gave it, and the run refuses that.
        """
        if outcome.kind == "failure":
            return
        reply = outcome.reply
        own: str | None = getattr(judge, "host", None)
        if own and reply.host and _canonical(reply.host) != _canonical(own):
            if self._same_host:
                raise UsageError(
                    f"--same-host: {reply.host} gave a stored label of these rows, and this run "
                    f"asks {own}: give another --store, or run without --same-host"
                )
            self._elsewhere.setdefault(own, Counter())[reply.host] += 1
        source: str | None = getattr(judge, "source", None)
        name = str(judge.spec)
        if source and reply.system_fingerprint not in {None, source} and name not in self._changed:
            self._changed.add(name)
            self.notice(
                f"judge {name}: its source has changed since it gave the stored labels, which are "
                "used as they are: give it another version to ask again"
            )

    def report(self) -> None:
        """Report the hosts that gave the served labels, if the run asks others."""
        for own, others in self._elsewhere.items():
            listed = ", ".join(f"{count:,} from {host}" for host, count in others.most_common())
            self.notice(
                f"stored labels of another host were used: {listed}, while this run asks {own}; "
                "--same-host refuses them"
            )
        self._elsewhere.clear()


def _canonical(host: str) -> str:
    """Return a host in one spelling."""
    name, colon, port = host.lower().removesuffix(":443").rpartition(":")
    if not colon or not port.isdigit():
        name, port = host.lower().removesuffix(":443"), ""
    return f"{'localhost' if name in _LOOPBACK else name}:{port}"
