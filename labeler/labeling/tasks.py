"""Task factories: they turn examples into tasks for a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from labeler.errors import BadRow
from labeler.judges.judge import Judge, JudgeSpec
from labeler.judges.prompting import Prompt
from labeler.judges.task import Task, label_task
from labeler.labeling.context_limit import ContextLimit
from labeler.labels.record import label_key
from labeler.labels.schemas import ResponseSchema
from labeler.labels.signature import Artifact, Signature
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import Splitter, key_example

if TYPE_CHECKING:
    from labeler.labeling.blind import RetrievalTasks


class TaskFactory(Protocol):
    """Builds one task for each row."""

    @property
    def judge(self) -> Judge:
        """Judge to ask."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Optional fields of an example that no task can be built without."""
        return frozenset()

    def task(self, example: Example) -> Task[Any]:
        """Build the task of an example.

        Raises:
            BadRow: nothing can be asked about it.
        """
        ...


def needs_of(factories: Iterable[TaskFactory]) -> frozenset[str]:
    """Return the optional fields of an example that all factories need."""
    return frozenset.intersection(*(factory.needs for factory in factories))


class MissingField(BadRow):
    """A row without a part that one task shows; other tasks may not need it.

    Attributes:
        signature: signature of the task that cannot be asked.
    """

    def __init__(self, message: str, *, reason: str, signature: Signature) -> None:
        super().__init__(message, reason=reason)
        self.signature = signature


@dataclass(frozen=True, kw_only=True)
class PromptTasks:
    """Builds tasks about sentences that do not depend on a criterion.

    Attributes:
        judge: judge to ask.
        splitter: sentence splitter.
        prompt: prompt of the tasks.
        schema: schema of the answers.
        trial: 0 for the first judgment; repeats count up.
        limit: longest prompt; ``None`` if unknown or unlimited.
    """

    judge: Judge
    splitter: Splitter
    prompt: Prompt
    schema: ResponseSchema
    trial: int = 0
    limit: ContextLimit | None = None

    def signature(self, splitter: str, prompt: Prompt, schema: ResponseSchema) -> Signature:
        """Return the signature for a splitter, a prompt and a schema."""
        spec, parts = self.judge.spec, (splitter, prompt.artifact, schema.artifact)
        made_for, made = self._signatures.get(parts, (None, None))
        if made is None or made_for is not spec:
            made = spec.signature(prompt, schema, splitter, trial=self.trial)
            self._signatures[parts] = spec, made
        return made

    @cached_property
    def _signatures(self) -> dict[tuple[str, Artifact, Artifact], tuple[JudgeSpec, Signature]]:
        """Signatures made so far, shared by all records."""
        return {}

    def require_fit(self, task: Task[Any], is_known: Callable[[str], bool]) -> None:
        """Reject a task that is too long to ask, unless its key has a record or is in a batch.

        Raises:
            BadRow: its prompt is longer than the limit.
        """
        if self.limit is not None:
            try:
                self.limit.require(task)
            except BadRow:
                if not is_known(task.key):
                    raise


@dataclass(frozen=True, kw_only=True)
class LabelTasks(PromptTasks):
    """Builds label tasks; see :func:`label_tasks`."""

    where_referenced: tuple[Prompt, ResponseSchema] | None = None
    """Prompt and schema of rows with a reference answer, if they differ."""
    relevance: RetrievalTasks | None = None
    """Tasks of the retrieval labels that the labels rest on; ``None`` if each judge call asks for
    relevance itself."""

    @property
    def needs(self) -> frozenset[str]:
        """The reference answer, if the prompt shows it."""
        return frozenset({"reference"} if self.prompt.shows_reference else ())

    @property
    def asked(self) -> list[tuple[Prompt, ResponseSchema]]:
        """The prompts with their schemas: one, or another for rows with a reference answer."""
        return [(self.prompt, self.schema), *filter(None, [self.where_referenced])]

    def task(self, example: Example) -> Task:
        """Split an example and build its task.

        Raises:
            BadRow: a required part is empty, or given sentences do not fit the text.
        """
        keyed = key_example(example, self.splitter, shows_conversation=True)
        _require_content(keyed)
        if self.prompt.shows_reference:
            _require_reference(keyed)
        return self.keyed_task(keyed)

    def keyed_task(self, keyed: KeyedExample) -> Task:
        """Build the task of a keyed example."""
        prompt, schema = self.prompt, self.schema
        if self.where_referenced is not None and keyed.reference:
            prompt, schema = self.where_referenced
        signature = self.signature(keyed.splitter, prompt, schema)
        key = label_key(keyed, signature)
        return label_task(key, keyed, signature, prompt, schema)


def _require_reference(example: KeyedExample) -> None:
    """Reject, before any spend, a row without a reference answer."""
    if not example.reference:
        raise BadRow(
            f"{example.id!r}: no reference answer, which profile 'reference' needs; give the row "
            "one in its field 'reference', or use --profile auto",
            reason="no_reference",
        )


def _require_content(example: KeyedExample) -> None:
    """Reject, before any spend, a row without question or response.

    A row without documents is judged: an answer that a search without results did not prevent is
    a hallucination.
    """
    empty = {
        "empty_question": not example.question.strip(),
        "empty_response": not example.response,
    }
    for reason, is_empty in empty.items():
        if is_empty:
            raise BadRow(
                f"{example.id!r}: {reason.replace('_', ' ')}; there is nothing to judge, "
                "so the judge was not asked",
                reason=reason,
            )
