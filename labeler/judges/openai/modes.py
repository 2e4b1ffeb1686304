"""The output mode in which a judge asks, by schema: another one where the server rejects it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from labeler.judges.concurrency import Health
from labeler.judges.judge import ModeRejected
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.error_rules import FORMAT_NAMES, AttemptFailed
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.pace import SentRequest
from labeler.judges.task import Task


class ModeChoice:
    """The part of a judge that tries the output modes of its provider in turn.

    Attributes:
        spec: settings of the judge, with the modes that are known.
        auto: False if the user has chosen the mode.
    """

    spec: OpenAISpec
    auto: bool
    _mode: str
    _kept = frozenset[str]()
    """Schemas whose mode stays, whatever the server accepts."""

    def choose_modes(self, known: Mapping[str, str], others: str | None) -> None:
        """Ask in the output modes of stored labels.

        Args:
            known: by schema; they stay, whatever the server accepts.
            others: first mode of other schemas, if any is known; it may change.
        """
        if self.auto:
            self._kept = frozenset(known)
            self._mode = others or self._mode
            self.spec = self.spec.in_modes(known, others)

    def _begin_task(self, task: Task, health: Health) -> None:
        """Send few requests as long as the output mode of a task may turn out to be rejected."""
        if self._may_change(task):
            mode = self._begin_mode(task.schema.name)
            if not health.labels:  # each further mode would cost a request
                modes = self.spec.provider.modes
                health.doubt(len(modes) - 1 - modes.index(mode))

    def _rejected_mode(self, log: AttemptLog, failed: AttemptFailed) -> ModeRejected | None:
        """Return the task in another output mode if the server rejects that of its own."""
        task, mode = log.task, log.task.mode
        if not (self._may_change(task) and failed.rule.names_format) or _quotes(task, failed):
            return None
        schema = task.schema.name
        if mode == self._begin_mode(schema):  # no other record was rejected before
            modes = self.spec.provider.modes
            if mode == modes[-1] or schema in log.pace.health.schemas:
                return None
            self._mode = modes[modes.index(mode) + 1]
            self.spec = self.spec.in_modes({schema: self._mode})
            log.pace.health.doubt()
            log.pace.notice(
                f"the server does not accept output mode {mode}: asking in mode {self._mode}, "
                "which is part of the labels' signatures"
            )
        return ModeRejected(mode, self._begin_mode(schema), attempts=log.attempts)

    def _may_change(self, task: Task) -> bool:
        """Return True if the output mode of a task is the judge's choice."""
        return self.auto and task.schema.name not in self._kept

    def _begin_mode(self, schema: str) -> str:
        """Return the output mode of a schema; at first, that in which the last one ended."""
        if schema not in self.spec.schema_modes:
            self.spec = self.spec.in_modes({schema: self._mode})
        return self.spec.schema_modes[schema]

    def _require_mode(self, log: AttemptLog, unsent: SentRequest) -> None:
        """Check, as late as possible, that the mode of a task was not rejected meanwhile.

        Raises:
            ModeRejected: it was; the request is not sent.
        """
        if log.answers or not self._may_change(log.task):
            return
        mode, own = log.task.mode, self._begin_mode(log.task.schema.name)
        if mode != own:
            unsent.answered(tokens=0, cost=Decimal(0))
            raise ModeRejected(mode, own, attempts=log.attempts)


def _quotes(task: Task, failed: AttemptFailed) -> bool:
    """Return True if an error may name a format only because it quotes the record."""
    message = f"{failed.observed.code} {failed.observed.message}"
    words = {found[0].lower() for found in FORMAT_NAMES.finditer(message)}
    if failed.rule.marks is None or not words:
        return False
    shown = task.messages[-1]["content"].lower()
    return all(word in shown for word in words)
