"""The seam to judges: what one is, what identifies it, what it is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, Protocol

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from labeler.catalog import Catalog
from labeler.errors import JudgeError
from labeler.judges.prompting import JudgeRequest, Prompt
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.contract import Violation
from labeler.labels.logprobs import Token
from labeler.labels.record import ReplyFacts, SentenceScores, Usage
from labeler.labels.schemas import ResponseSchema
from labeler.labels.signature import Signature
from labeler.sentences.example import Frozen


class InKey:
    """Marks a field of a judge specification that can change the label."""


class NotInKey:
    """Marks a field that changes how a judge is reached, never what it is asked."""


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
        """For people: kind and model."""
        return f"{self.judge}/{self.model}"

    def sampling(self) -> dict[str, Any]:
        """The parameters, besides the model, that can change a label and are set."""
        sampling: dict[str, Any] = {}
        for name, declared in type(self).model_fields.items():
            marks = {mark for mark in declared.metadata if mark in (InKey, NotInKey)}
            if len(marks) != 1:
                raise TypeError(
                    f"{type(self).__name__}.{name} must be marked InKey or NotInKey, one of them"
                )
            value = getattr(self, name)
            if InKey in marks and name not in self.named and value is not None:
                sampling[name] = value
        return dict(sorted(sampling.items()))

    def signature(
        self,
        prompt: Prompt,
        schema: ResponseSchema,
        splitter: str,
        *,
        trial: int = 0,
        asked: Mapping[str, Any] = MappingProxyType({}),
    ) -> Signature:
        """What makes the answers of this judge to one prompt.

        Args:
            prompt: what is asked.
            schema: the shape that answers must have.
            splitter: what makes the sentences.
            trial: 0 for the first judgement, another number for a repeated one.
            asked: what is sent, besides the judge's own parameters, that can change an answer.
        """
        return Signature(
            judge=self.judge,
            model=self.model,
            sampling={**self.sampling(), **asked},
            prompt=prompt.artifact,
            response_schema=schema.artifact,
            splitter=splitter,
            trial=trial,
        )


Answer_co = TypeVar("Answer_co", bound=Frozen, default=GPTLabelingOutput, covariant=True)


@dataclass(frozen=True)
class JudgeReply(Generic[Answer_co]):
    """What came back for one request."""

    answer: Answer_co
    """Of the request's ``answer_type``."""
    facts: ReplyFacts = field(default_factory=ReplyFacts)
    scores: SentenceScores | None = None
    tokens: tuple[Token, ...] = ()
    """The answer's tokens with their probabilities, where these were asked for and given."""


class UnusableAnswer(JudgeError):
    """A record that was asked about, and paid for, in vain.

    Attributes:
        violations: what the last answer broke, where the reason is ``contract``.
        usage: tokens that were charged for all the same.
        reasks: answers that were sent back to be mended.
        lasting: whether asking the same again would most likely end the same.
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


class Judge(Protocol):
    """Anything that can label: implement ``spec`` and ``label``; ``aclose`` frees what it holds.

    A judge that answers other requests than those for labels, such as scores, reads the answer into
    the request's ``answer_type``; one that cannot need not care: who reads the ``output`` or the
    ``profile`` of such a request ends the run with a :class:`UsageError`.
    """

    @property
    def spec(self) -> JudgeSpec:
        """What identifies the judge."""
        ...

    async def label(self, request: JudgeRequest) -> JudgeReply[Frozen]:
        """Judge one record.

        Raises:
            JudgeError: this record cannot be labelled; the run goes on.
            FatalJudgeError: no record can be; the run stops.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; called once, after the last request."""
        ...


JUDGES: Catalog[type] = Catalog("judge")
JUDGES.add("embedded", "labeler.judges.embedded.judge:EmbeddedJudge")
JUDGES.add("openai", "labeler.judges.openai.judge:OpenAIJudge")
JUDGES.add("replay", "labeler.judges.replay:ReplayJudge")
