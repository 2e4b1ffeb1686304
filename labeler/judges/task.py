"""Tasks: one thing asked of a judge about one example.

A task carries its key, signature, prompt and schema. Its kind defines the rest: the class of the
answer, the rules that an answer must keep, and the record that it becomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, Literal, NamedTuple

from typing_extensions import TypeVar

from labeler.catalog import Catalog
from labeler.judges.options import PROVIDERS
from labeler.judges.prompting import Message, Prompt
from labeler.judges.tokens import RELEVANCE_TOKENS, answer_tokens
from labeler.labels.answers import (
    PROFILES,
    GPTLabelingOutput,
    Profile,
    as_given,
    family_of,
    lacks_relevance,
    profile_of,
    without_relevance,
)
from labeler.labels.contract import AnswerT, CheckedAnswer, Violation, check_label
from labeler.labels.non_answers import overrule
from labeler.labels.record import AnyRecord, LabelRecord, ReplyFacts, RetrievalBasis, SentenceScores
from labeler.labels.signature import ResponseSchema, Signature, label_key
from labeler.sentences.example import Frozen, KeyedExample

MODES = PROVIDERS["openai"].modes
"""Output modes: the ways to send a schema, in the order in which they are tried."""
_FRAMED = frozenset({"json", "prompt"})
"""Modes in which the schema is part of the last message."""
MODE_FACTS = frozenset({"output_mode", "schema_frame"})
"""Sampling parameters that say how the schema is sent."""
FrameVersion = Literal["schema-frame/1"]
FRAME_VERSION: FrameVersion = "schema-frame/1"
"""Version of :data:`FRAME`. It is part of label keys: increment it whenever the text changes."""
FRAME = (
    "\n\nWrite one JSON object and nothing else: no Markdown, no other words. "
    "It must be valid by this JSON Schema:\n"
)
"""The words before the schema where the model reads it."""


def mode_of(signature: Signature) -> str:
    """Return the output mode in which an answer is asked for."""
    return str(signature.sampling.get("output_mode", "strict"))


def mode_facts(mode: str) -> dict[str, str]:
    """Return the sampling parameters that stand for an output mode; none for strict."""
    frame = {"schema_frame": FRAME_VERSION} if mode in _FRAMED else {}
    return {} if mode == "strict" else {"output_mode": mode, **frame}


Messages = Sequence[Mapping[str, Any]]

Answer_co = TypeVar("Answer_co", bound=Frozen, default=GPTLabelingOutput, covariant=True)


class Token(NamedTuple):
    """One token of an answer.

    Attributes:
        text: its bytes.
        logprob: natural logarithm of its probability.
        others: alternative tokens with their log-probabilities.
    """

    text: bytes
    logprob: float
    others: tuple[tuple[bytes, float], ...] = ()


@dataclass(frozen=True)
class JudgeReply(Generic[Answer_co]):
    """A judge's reply to one task."""

    answer: Answer_co
    """Instance of the task's ``answer_type``."""
    facts: ReplyFacts = field(default_factory=ReplyFacts)
    scores: SentenceScores | None = None
    """A scoring judge's numbers behind its verdicts."""
    not_measured: tuple[str, ...] = ()
    """Metrics that the answer says nothing about."""
    tokens: tuple[Token, ...] = ()
    """Tokens of the answer, if their probabilities were requested and returned."""
    repairs: Mapping[str, int] = field(default_factory=dict)
    """Repairs by kind that were needed to read the answer at all."""


class TaskKind(ABC, Generic[AnswerT]):
    """The part of a task that depends on what is asked."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in :data:`TASK_KINDS`."""

    @property
    @abstractmethod
    def answer_type(self) -> type[AnswerT]:
        """Class of the answer."""

    @property
    def rules(self) -> str | None:
        """Rules of an answer, in words for a judge; ``None`` for the label contract."""
        return None

    @abstractmethod
    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the key of the record that a task becomes."""

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the chat messages, by default the prompt with all that it shows."""
        return prompt.render(example)

    typical_tokens: ClassVar[int] = 0
    """Length of a typical answer, without reasoning."""

    def expected_tokens(self, example: KeyedExample) -> int:
        """Estimate the length of an answer, without reasoning."""
        del example
        return self.typical_tokens

    def check(self, answer: AnswerT, example: KeyedExample) -> CheckedAnswer[AnswerT]:
        """Check an answer against the rules that its schema cannot express."""
        del example
        return CheckedAnswer(answer)

    record_type: ClassVar[type[Any]]
    """Class of the record, for :meth:`record`."""

    def record(
        self, task: Task[AnswerT], check: CheckedAnswer[AnswerT], reply: JudgeReply[AnswerT]
    ) -> AnyRecord:
        """Build the record of a reply whose answer has no violations."""
        made: AnyRecord = self.record_type(
            key=task.key,
            answer=check.answer,
            signature=task.signature,
            reply=reply.facts,
            **self.fields(task, reply),
        )
        return made

    def fields(self, task: Task[AnswerT], reply: JudgeReply[AnswerT]) -> Mapping[str, Any]:
        """Return the other fields of the record."""
        del reply
        return {"example": task.example}

    def parameters(self, signature: Signature) -> Mapping[str, Any]:
        """Return request parameters besides the judge's own."""
        del signature
        return {}

    def renamed(self, task: Task[AnswerT], record: AnyRecord) -> AnyRecord:
        """Return a stored record of the task's key with this row's id and metadata."""
        if getattr(record, "example", None) is task.example:
            return record
        return record.model_copy(update={"example": task.example})

    def unsupported(self, judge: str) -> str:
        """Return the error message for a judge that does not answer tasks of this kind."""
        return f"judge {judge!r} does not answer tasks of kind {self.name!r}"


@dataclass(frozen=True)
class Task(Generic[AnswerT]):
    """One thing asked about one example, with all that can change the answer."""

    key: str
    """Key of the resulting record, 64 hexadecimal digits."""
    example: KeyedExample
    signature: Signature
    prompt: Prompt
    schema: ResponseSchema
    kind: TaskKind[AnswerT]
    _checked: list[tuple[AnswerT, CheckedAnswer[AnswerT]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages, rendered on first use."""
        return self.kind.messages(self.prompt, self.example)

    @property
    def answer_type(self) -> type[AnswerT]:
        """Class of the answer."""
        return self.kind.answer_type

    @property
    def expected_tokens(self) -> int:
        """Estimated length of an answer, without reasoning."""
        return 0 if self.prompt.decides else self.kind.expected_tokens(self.example)

    @property
    def sent_schema(self) -> str:
        """Compact JSON of the schema that is sent with a request; empty without one."""
        return "" if self.prompt.decides else self.schema.compact

    @property
    def mode(self) -> str:
        """The output mode; that of the judge may have changed since."""
        return mode_of(self.signature)

    def sent(self, messages: Messages | None = None) -> tuple[list[Mapping[str, Any]], str]:
        """Return the messages of a request, and the schema's JSON if it is sent apart from them.

        Args:
            messages: other messages than the task's own, such as those of a re-ask.
        """
        asked = list(self.messages if messages is None else messages)
        if self.mode not in _FRAMED:
            return asked, self.sent_schema
        last = len(self.messages) - 1  # a re-ask follows the messages of the task
        content = asked[last]["content"] + FRAME + self.schema.compact
        asked[last] = {**asked[last], "content": content}
        return asked, ""

    def under(self, signature: Signature) -> Task[AnswerT]:
        """Return the same task with another signature, and so with another key."""
        return replace(self, key=self.kind.key(self.example, signature), signature=signature)

    def in_mode(self, mode: str) -> Task[AnswerT]:
        """Return the task in another output mode, and so with another key."""
        if mode == self.mode:
            return self
        own = self.signature.sampling
        kept = {name: value for name, value in own.items() if name not in MODE_FACTS}
        return self.under(self.signature.model_copy(update={"sampling": kept | mode_facts(mode)}))

    def violations(self, answer: Frozen) -> tuple[Violation, ...]:
        """Return the rules that an answer breaks.

        Raises:
            TypeError: the answer has another class; the judge's code is at fault.
        """
        return self._check(answer).violations

    def record(self, reply: JudgeReply[Any]) -> AnyRecord | tuple[Violation, ...]:
        """Build the record of a reply, or return the violations of its answer.

        Raises:
            TypeError: the answer has another class; the judge's code is at fault.
        """
        check = self._check(reply.answer)
        return check.violations or self.kind.record(self, check, reply)

    def _check(self, answer: Frozen) -> CheckedAnswer[AnswerT]:
        """Check an answer once, although both the judge and the run ask for it."""
        for given, check in self._checked:
            if given is answer:
                return check
        if not isinstance(answer, self.answer_type):
            raise TypeError(
                f"a {self.answer_type.__name__} was asked for, got a {type(answer).__name__}"
            )
        check = self.kind.check(answer, self.example)
        self._checked[:] = [(answer, check)]
        return check


@dataclass(frozen=True)
class LabelKind(TaskKind[GPTLabelingOutput]):
    """Labels of one profile."""

    profile: Profile

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.profile.name

    @property
    def answer_type(self) -> type[GPTLabelingOutput]:
        """The profile's label class."""
        return self.profile.output

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the label's key."""
        return label_key(example, signature)

    def expected_tokens(self, example: KeyedExample) -> int:
        """Estimate the length from the number of sentences."""
        referenced = len(example.reference or ())
        return answer_tokens(len(example.response), self.name, referenced)

    def check(self, answer: GPTLabelingOutput, example: KeyedExample) -> CheckedAnswer:
        """Check a label against the contract."""
        return check_label(self.completed(answer, example), example)

    def completed(self, answer: GPTLabelingOutput, example: KeyedExample) -> GPTLabelingOutput:
        """Return an answer with all fields of the profile's labels."""
        del example
        return answer

    def record(self, task: Task, check: CheckedAnswer, reply: JudgeReply) -> LabelRecord:
        """Build the label record; verdicts on non-answers are corrected and counted."""
        label, overruled = overrule(check.answer, task.example)
        given = self.completed(reply.answer, task.example)
        return LabelRecord(
            key=task.key,
            example=task.example,
            label=label,
            verbatim=as_given(given) if label != given else None,
            normalised={**reply.repairs, **check.repairs, **overruled},
            signature=task.signature,
            reply=reply.facts,
            scores=reply.scores,
            not_measured=reply.not_measured,
        )


@dataclass(frozen=True)
class SupportKind(LabelKind):
    """Labels of one profile whose relevance was judged without the response."""

    basis: RetrievalBasis | None = None
    """The retrieval label; ``None`` until it is known."""

    @property
    def answer_type(self) -> type[Any]:
        """The profile's label class without relevance."""
        return without_relevance(self.profile.output)

    def expected_tokens(self, example: KeyedExample) -> int:
        """Estimate the length from the number of sentences."""
        return super().expected_tokens(example) - RELEVANCE_TOKENS

    def completed(self, answer: Any, example: KeyedExample) -> GPTLabelingOutput:  # noqa: ANN401 - made at run time
        """Return an answer with the relevance of the retrieval label."""
        from labeler.labels.retrieval_record import relevance_of  # noqa: PLC0415 - for these labels

        return self.profile.output(**relevance_of(self.basis, example), **vars(answer))

    def record(self, task: Task, check: CheckedAnswer, reply: JudgeReply) -> LabelRecord:
        """Build the label record, which names its retrieval label."""
        return self._resting(super().record(task, check, reply))

    def renamed(self, task: Task, record: AnyRecord) -> AnyRecord:
        """Return a stored label with this row's id, and the relevance of this run."""
        named = super().renamed(task, record)
        return self._resting(named) if isinstance(named, LabelRecord) else named

    def _resting(self, record: LabelRecord) -> LabelRecord:
        from labeler.labels.retrieval_record import resting_on  # noqa: PLC0415 - as above

        return resting_on(record, self.basis) if self.basis else record


TASK_KINDS: Catalog[Any] = Catalog("task kind")
"""Labels by profile, as kinds; the others as classes, imported on demand."""
for _profile in PROFILES.values():
    TASK_KINDS.add(_profile.name, LabelKind(_profile))
TASK_KINDS.add("retrieval", "labeler.labeling.blind:RetrievalKind")

LABEL_KINDS = frozenset(PROFILES)
"""Kinds that a judge answers that gives nothing but labels."""


def judged_task(
    example: KeyedExample,
    signature: Signature,
    prompt: Prompt,
    schema: ResponseSchema,
    basis: RetrievalBasis | None = None,
) -> Task[Any]:
    """Rebuild the task of a label, or of a retrieval label, from the signature of its record."""
    is_retrieval = family_of(schema.name) == "retrieval"
    kind: TaskKind[Any] = TASK_KINDS["retrieval"]() if is_retrieval else label_kind(schema.name)
    if isinstance(kind, SupportKind):
        kind = replace(kind, basis=basis)
    return Task(kind.key(example, signature), example, signature, prompt, schema, kind)


@cache
def label_kind(schema: str) -> LabelKind:
    """Return the kind of the tasks with a published schema, such as ``label-claims/v1``."""
    profile = profile_of(schema)
    found: LabelKind = TASK_KINDS[profile.name]
    return SupportKind(profile) if lacks_relevance(schema) else found
