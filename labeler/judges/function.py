"""Judges that are functions of a program."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from io import StringIO
from textwrap import dedent
from tokenize import COMMENT, TokenError, generate_tokens
from typing import Any

from pydantic import ValidationError

from labeler.catalog import named_keywords
from labeler.errors import JudgeError, UsageError, describe_faults
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import LABEL_KINDS, JudgeReply, Task
from labeler.labels.record import ReplyFacts

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
