"""Judges: their interface, their specification, and the catalog of built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict

from labeler.catalog import Catalog
from labeler.errors import JudgeError, UsageError
from labeler.judges.options import InKey, NotInKey
from labeler.judges.prompting import Prompt
from labeler.judges.task import JudgeReply, Task, TaskKind
from labeler.labels.contract import Violation
from labeler.labels.record import Usage
from labeler.labels.signature import ResponseSchema, Signature, storable_json


class JudgeSpec(BaseModel):
    """Identity and settings of a judge.

    Every field declares whether it enters the label's key: ``Annotated[..., InKey]`` or
    ``Annotated[..., NotInKey]``. Subclasses add fields; one without a mark fails on first use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    named: ClassVar[frozenset[str]] = frozenset({"judge", "model"})

    judge: Annotated[str, InKey]
    """Kind of judge, such as ``openai``."""
    model: Annotated[str, InKey]
    """Requested model, or the version of a built-in one."""

    def __str__(self) -> str:
        """Return kind and model."""
        return f"{self.judge}/{self.model}"

    def sampling(self) -> dict[str, Any]:
        """Return the parameters, besides the model, that are set and can change a label."""
        names = _in_key(type(self))
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def asked_for(self, schema: ResponseSchema) -> Self:
        """Return the settings in which answers of a schema are asked for."""
        del schema
        return self

    def signature(
        self,
        prompt: Prompt,
        schema: ResponseSchema,
        splitter: str,
        *,
        trial: int = 0,
        asked: Mapping[str, Any] = MappingProxyType({}),
    ) -> Signature:
        """Return the signature of this judge's answers to one prompt.

        Args:
            prompt: prompt of the task.
            schema: schema of the answer.
            splitter: name of the sentence splitter.
            trial: 0 for the first judgment; repeats count up.
            asked: request parameters of the task that can change an answer.

        Raises:
            UsageError: a setting is a value that no stored label can hold.
        """
        sampling = {**self.asked_for(schema).sampling(), **asked}
        storable_json(f"judge {self.judge}: a setting", sampling)
        return Signature(
            judge=self.judge,
            model=self.model,
            sampling=sampling,
            prompt=prompt.artifact,
            response_schema=schema.artifact,
            splitter=splitter,
            instructions=prompt.instructions,
            trial=trial,
        )


@cache
def _in_key(spec: type[JudgeSpec]) -> list[str]:
    """Return the sorted names of the fields that can change a label, besides judge and model.

    Raises:
        TypeError: a field has not exactly one mark.
    """
    found = []
    for name, declared in spec.model_fields.items():
        marks = {mark for mark in declared.metadata if mark in (InKey, NotInKey)}
        if len(marks) != 1:
            raise TypeError(f"{spec.__name__}.{name} must be marked InKey or NotInKey, one of them")
        if InKey in marks and name not in spec.named:
            found.append(name)
    return sorted(found)


class UnusableAnswer(JudgeError):
    """A paid request without a usable answer.

    Attributes:
        violations: violations of the last answer, if the reason is ``contract``.
        usage: tokens charged in spite of the failure.
        reasks: answers sent back to the judge for correction.
        lasting: true if a retry would most likely fail again.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        attempts: int,
        violations: tuple[Violation, ...] = (),
        usage: Usage | None = None,
        reasks: int = 0,
        lasting: bool = False,
    ) -> None:
        super().__init__(message, reason=reason, attempts=attempts)
        self.violations = violations
        self.usage = usage
        self.reasks = reasks
        self.lasting = lasting


class ModeRejected(JudgeError):
    """The server rejected the output mode of a task before the first answer of its schema.

    Attributes:
        mode: the mode in which the judge asks from now on, for :meth:`Task.in_mode`.
    """

    def __init__(self, rejected: str, mode: str, *, attempts: int) -> None:
        message = f"the server does not accept output mode {rejected}: ask in mode {mode}"
        super().__init__(message, reason="parameter", attempts=attempts)
        self.mode = mode


class Judge(Protocol):
    """Anything that can label: implement ``spec``, ``label`` and ``aclose``.

    A judge reads its answer into the task's ``answer_type``. A judge that answers some kinds of
    tasks only declares them in an attribute ``answers``, such as
    ``answers = labeler.judges.task.LABEL_KINDS``; see :func:`require_answers`. One that ignores the
    prompt says ``reads_prompts = False``; it takes no instructions of the user.
    """

    @property
    def spec(self) -> JudgeSpec:
        """Identity of the judge."""
        ...

    async def label(self, task: Task[Any], /) -> JudgeReply[Any]:
        """Judge one example.

        Raises:
            JudgeError: this record cannot be labeled; the run goes on.
            FatalJudgeError: no record can be labeled; the run stops.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; called once, after the last request."""
        ...


def require_reader(judge: Judge, option: str) -> None:
    """Check that a judge reads prompts.

    Raises:
        UsageError: it decides by rules of its own.
    """
    if not getattr(judge, "reads_prompts", True):
        raise UsageError(
            f"judge {judge.spec} takes no {option}: it reads no prompt; use a model, such as "
            "--judge openai:MODEL"
        )


def require_answers(judge: Judge, kind: TaskKind[Any]) -> None:
    """Check that a judge answers tasks of a kind.

    Raises:
        UsageError: its attribute ``answers`` lacks the kind.
    """
    answers: frozenset[str] | None = getattr(judge, "answers", None)
    if answers is not None and kind.name not in answers:
        raise UsageError(kind.unsupported(judge.spec.judge))


JUDGES: Catalog[type] = Catalog("judge", group="judges")
JUDGES.add("decisions", "labeler.judges.decisions:DecisionsJudge")
JUDGES.add("embedded", "labeler.judges.embedded:EmbeddedJudge")
JUDGES.add("mistral", "labeler.judges.openai.judge:MistralJudge")
JUDGES.add("ollama", "labeler.judges.openai.judge:OllamaJudge")
JUDGES.add("openai", "labeler.judges.openai.judge:OpenAIJudge")
JUDGES.add("replay", "labeler.judges.scripted:ReplayJudge")
JUDGES.add("systemone", "labeler.judges.decisions:SystemOneJudge")
