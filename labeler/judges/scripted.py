"""Judges without a model: functions of a program, and answers that were recorded before."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from io import StringIO
from itertools import islice
from pathlib import Path
from textwrap import dedent
from tokenize import COMMENT, TokenError, generate_tokens
from typing import Any

from pydantic import ValidationError

from labeler.catalog import named_keywords
from labeler.data.label_files import read_outcomes
from labeler.errors import JudgeError, UsageError, describe_faults
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import LABEL_KINDS, JudgeReply, Task
from labeler.labels.answers import GPTLabelingOutput, lowered
from labeler.labels.record import LabelRecord, Outcome, ReplyFacts, records_of
from labeler.labels.signature import digest, shown
from labeler.sentences.example import KeyedExample

Function = Callable[[Task], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Returns the answer to a task as a mapping with the fields of its schema."""


class FunctionJudge:
    """A judge that calls a function for each label; see :func:`judge`."""

    answers = LABEL_KINDS | {"retrieval"}
    reads_prompts = False

    def __init__(self, function: Function, *, name: str, version: str) -> None:
        self.spec = JudgeSpec(judge="function", model=f"{name}/{version}")
        self.source = _source_of(function)
        """Digest of the function's source, kept with each label."""
        self._function = function

    async def label(self, task: Task) -> JudgeReply:
        """Call the function, in a thread if it is not async.

        Raises:
            JudgeError: the answer does not have the fields of the schema.
        """
        try:
            found = await asyncio.to_thread(self._call, task)
            answer = await found if inspect.isawaitable(found) else found
        except asyncio.CancelledError as error:
            if (running := asyncio.current_task()) and running.cancelling():
                raise
            raise RuntimeError("the function raised CancelledError") from error
        try:
            checked = task.answer_type.model_validate(answer)
        except ValidationError as error:
            raise JudgeError(
                f"{self.spec.model} gave no answer of schema {task.schema.name}: "
                f"{describe_faults(error, most=3, whole='answer')}",
                reason="malformed",
            ) from None
        facts = ReplyFacts(served_model=self.spec.model, system_fingerprint=self.source)
        return JudgeReply(checked, facts)

    def _call(self, task: Task) -> Any:  # noqa: ANN401 - checked by the schema
        try:
            return self._function(task)
        except StopIteration as error:  # no future can carry it: the run would never end
            raise RuntimeError("the function raised StopIteration") from error

    async def aclose(self) -> None:
        """Nothing to release."""


def _source_of(function: Any) -> str | None:  # noqa: ANN401 - any callable
    """Return a digest of a function's source, or a callable's; ``None`` if it has none.

    Decorators, comments and layout do not count, nor do functions that it calls.
    """
    code = inspect.unwrap(getattr(function, "func", function))  # func: of a partial
    try:
        is_object = not hasattr(code, "__name__")
        lines = inspect.getsource(type(code).__call__ if is_object else code)
        tokens = list(generate_tokens(StringIO(dedent(lines)).readline))
    except (OSError, TypeError, TokenError, SyntaxError):  # a lambda in the middle of a line
        return None
    words = [token.string.strip() for token in tokens if token.type != COMMENT]
    if words[0] == "@" and "def" in words:
        words = words[words.index("def") :]
    return f"source-{sha256(chr(0).join(filter(None, words)).encode()).hexdigest()[:16]}"


@named_keywords
def judge(name: str, *, version: str | int) -> Callable[[Function], FunctionJudge]:
    """Make a judge of the decorated function.

    Args:
        name: name of the judge, a part of each label's key.
        version: another version asks again; change it whenever the function answers differently. A
            run that uses stored labels of a function whose source has changed reports it.

    Returns:
        A decorator. The function takes a :class:`~labeler.judges.task.Task`, with ``example`` (the
        keyed sentences), ``messages`` (the prompt) and ``schema``, and returns a mapping with the
        fields of that schema. It may be async.

    Raises:
        UsageError: name or version is empty, the version has a slash, or what is decorated is not a
            function.

    Example:
        >>> @labeler.judge("trusting", version=1)
        ... def trusting(task):
        ...     keys = task.example.document_keys()
        ...     return {
        ...         "relevance_explanation": "Everything is relevant.",
        ...         "all_relevant_sentence_keys": keys,
        ...         "overall_supported_explanation": "Everything is true.",
        ...         "overall_supported": True,
        ...         "sentence_support_information": [
        ...             {
        ...                 "response_sentence_key": key,
        ...                 "explanation": "It is true.",
        ...                 "supporting_sentence_keys": ["general"],
        ...                 "fully_supported": True,
        ...             }
        ...             for key in task.example.response_keys()
        ...         ],
        ...         "all_utilized_sentence_keys": keys,
        ...     }
        >>> labels = labeler.label(
        ...     "examples/rows.jsonl", judge=trusting, store=labeler.MemoryStore()
        ... )
        >>> labels.summary()["adherence"].mean
        1.0
    """
    if not isinstance(version, str | int) or not name.strip() or not str(version).strip():
        raise UsageError("a function is a judge with a name and a version: they enter label keys")
    if "/" in str(version):
        raise UsageError(f"version {version!r} of judge {name!r}: take one without a slash")

    def decorate(function: Function) -> FunctionJudge:
        if not callable(function):
            raise UsageError(f"judge {name!r} decorates a function, got {function!r:.40}")
        return FunctionJudge(function, name=name, version=str(version))

    return decorate


class ReplayJudge:
    """Answers each record with the recorded label of the same sentences, without a key.

    Args:
        outcomes: the recorded labels; failures are skipped, and the first of several records with
            the same sentences counts.
        name: identifies the collection; it is the model in label keys.
    """

    answers = LABEL_KINDS
    reads_prompts = False

    def __init__(self, outcomes: Iterable[Outcome], *, name: str) -> None:
        self.spec = JudgeSpec(judge="replay", model=name)
        self._records: dict[str, list[LabelRecord]] = {}
        self._splitters: dict[str, None] = {}
        for outcome in outcomes:
            if isinstance(outcome, LabelRecord):
                self._splitters[outcome.example.splitter] = None
                for key in _digests(outcome.example):
                    self._records.setdefault(key, []).append(outcome)

    @classmethod
    def from_file(cls, path: str | Path) -> ReplayJudge:
        """Return a judge that answers from a label file, named by the file's content.

        Raises:
            UsageError: the file cannot be read or is not a label file.
        """
        outcomes = list(records_of(read_outcomes(path), "label"))
        content = sha256(Path(path).read_bytes()).hexdigest()
        return cls(outcomes, name=f"records-{content[:12]}")

    async def label(self, task: Task) -> JudgeReply:
        """Return the recorded answer for the record's sentences.

        Raises:
            JudgeError: no record has the same sentences (``not_recorded``).
        """
        referenced = task.prompt.shows_reference
        same = self._records.get(digest(shown(task.example, reference=referenced)), [])
        record = next((r for r in same if isinstance(r.label, task.answer_type)), None)
        if record is None:
            raise JudgeError(
                f"no recorded label of profile {task.kind.name!r} has the same question, "
                f"documents and response, sentence by sentence{self._other_splitters(task)}",
                reason="not_recorded",
                attempts=0,
            )
        facts = ReplyFacts(
            served_model=record.reply.served_model,
            attempts=0,
            thresholds=record.reply.thresholds,
        )
        answer = lowered(_recorded_answer(record), task.answer_type)
        return JudgeReply(answer, facts, record.scores, not_measured=record.not_measured)

    def _other_splitters(self, task: Task) -> str:
        """Name the splitters of the recorded labels if none has the task's."""
        used, known = task.example.splitter, self._splitters
        if used in known or not known:
            return ""
        listed = ", ".join(f"{name:.40}" for name in islice(known, 3))
        return f"; {used} splits these rows and {listed} the recorded ones: see --splitter"

    async def aclose(self) -> None:
        """Nothing to release."""


def _digests(example: KeyedExample) -> set[str]:
    """Return the digests of a record's sentences, with and without the reference answer."""
    return {digest(shown(example, reference=referenced)) for referenced in (False, True)}


def _recorded_answer(record: LabelRecord) -> GPTLabelingOutput:
    """Return the recorded answer as the judge wrote it, if a judge may answer so."""
    stored = record.verbatim
    if stored is None or record.violations:
        return record.label
    if isinstance(stored, GPTLabelingOutput):
        return stored
    if any(entry.fully_supported is None for entry in stored.sentence_support_information):
        return record.label
    return GPTLabelingOutput.model_validate(stored.model_dump())
