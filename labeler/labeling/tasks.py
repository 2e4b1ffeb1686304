"""Task factories: they turn examples into tasks for a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from labeler.errors import BadRow, UsageError
from labeler.judges.judge import Judge, JudgeSpec
from labeler.judges.pricing import Price, price_of
from labeler.judges.prompting import Prompt, load_prompt
from labeler.judges.task import Task, label_task
from labeler.labeling.editions import prompts_of, splitter_of, version_of
from labeler.labeling.options import BatchOptions, EstimateOptions, LabelOptions
from labeler.labeling.windows import ContextBudget, Windowed, context_budget_in, cut
from labeler.labels.profiles import AUTO, PROFILES, Profile
from labeler.labels.record import label_key
from labeler.labels.schemas import ResponseSchema, load_schema
from labeler.labels.signature import Artifact, Signature
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import Splitter, key_example


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


@dataclass(frozen=True)
class LabelTasks:
    """Builds label tasks; see :func:`label_tasks`."""

    judge: Judge
    splitter: Splitter
    prompt: Prompt
    schema: ResponseSchema
    trial: int = 0
    where_referenced: tuple[Prompt, ResponseSchema] | None = None
    """Prompt and schema of rows with a reference answer, if they differ."""
    context_budget: ContextBudget | None = None
    """Limits on the prompt length; ``None`` if unknown or unlimited."""

    @property
    def needs(self) -> frozenset[str]:
        """The reference answer, if the prompt shows it."""
        return frozenset({"reference"} if self.prompt.shows_reference else ())

    def task(self, example: Example) -> Task:
        """Split an example and build its task.

        Raises:
            BadRow: a required part is empty, or given sentences do not fit the text.
        """
        keyed = key_example(example, self.splitter)
        _require_content(keyed)
        if self.prompt.shows_reference:
            _require_reference(keyed)
        return self.keyed_task(keyed)

    def keyed_task(self, keyed: KeyedExample) -> Task:
        """Build the task of a keyed example."""
        prompt, schema = self.prompt, self.schema
        if self.where_referenced is not None and keyed.reference:
            prompt, schema = self.where_referenced
        signature = self._signature(keyed.splitter, prompt, schema)
        key = label_key(keyed, signature)
        return label_task(key, keyed, signature, prompt, schema)

    def _signature(self, splitter: str, prompt: Prompt, schema: ResponseSchema) -> Signature:
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

    def windows_of(self, task: Task, is_known: Callable[[str], bool]) -> Windowed | None:
        """Cut a task into windows; ``None`` if it fits into one prompt.

        Args:
            task: a task of this factory.
            is_known: returns whether a key has a label or is in a batch; a record that was judged
                as a whole is not judged again in windows.

        Raises:
            BadRow: the record is too long even for windows.
        """
        if self.context_budget is None or is_known(task.key):
            return None
        return cut(task, self.context_budget)


def label_tasks(
    judge: Judge,
    options: LabelOptions | BatchOptions | EstimateOptions,
    *,
    extra: int = 0,
    price: Price | None = None,
) -> LabelTasks:
    """Choose splitter, prompt and schema by the names in options.

    Args:
        judge: judge to ask.
        options: their profile ``auto`` is ``reference`` for rows that have a reference answer and
            ``claims`` for the others. Without ``max_input_tokens``, a prompt has as many tokens as
            the context window of the judge's model, if it is in the price table. Longer records
            are judged in windows.
        extra: added to the trial.
        price: price of the model, if the judge does not know it.

    Raises:
        UnknownName: there is no such splitter, profile or prompt.
        UsageError: the prompt shows a reference answer and the profile does not ask about one, or
            the other way round; ``auto``, which has two prompts, names one in full; splitter or
            prompt are of another edition; or no prompt has as few tokens as allowed.
    """
    budget = context_budget(judge, options.max_input_tokens, price)
    splitter, prompt, trial = splitter_of(options), prompts_of(options), options.trial + extra
    if options.profile != AUTO:
        asked = _asked(PROFILES[options.profile], prompt)
        _require_patterns(judge.spec, asked[1])
        return LabelTasks(judge, splitter, *asked, trial, context_budget=budget)
    if "/" in prompt:
        raise UsageError(
            f"profile {AUTO!r} has a prompt for each kind of row: name a version, such as "
            f"{version_of(prompt)!r:.20}, and not {prompt!r:.80}"
        )
    asked, referenced = (_asked(PROFILES[name], prompt) for name in ("claims", "reference"))
    _require_patterns(judge.spec, asked[1])
    return LabelTasks(judge, splitter, *asked, trial, referenced, budget)


def _asked(profile: Profile, prompt: str) -> tuple[Prompt, ResponseSchema]:
    """Return a prompt, named by its version or in full, and the schema of its version.

    Raises:
        UnknownName: there is no such prompt.
        UsageError: the prompt shows a reference answer and the profile does not ask about one, or
            the other way round.
    """
    version = version_of(prompt)
    worded = load_prompt(prompt if "/" in prompt else f"{profile.name}/{version}")
    if worded.shows_reference != profile.shows_reference:
        shows = "shows" if worded.shows_reference else "does not show"
        raise UsageError(
            f"prompt {worded.name!r} {shows} the reference answer, which does not fit profile "
            f"{profile.name!r}; its own prompt is '{profile.name}/{version}'"
        )
    return worded, load_schema(profile.schema_of(worded.name))


def _require_patterns(spec: JudgeSpec, schema: ResponseSchema) -> None:
    """Reject lists of keys in a schema that has no places for them."""
    if getattr(spec, "keys_in_schema", None) and not schema.has_decisions:
        raise UsageError(
            f"--keys-in-schema needs a schema of version 2, and {schema.name} is asked for: name "
            "its prompts with --prompt v2"
        )


def context_budget(
    judge: Judge, given: int | None, price: Price | None = None
) -> ContextBudget | None:
    """Return the limits on a judge's prompts.

    Args:
        judge: judge to ask.
        given: most tokens of a prompt, if the user chose it.
        price: price of the model, if the judge does not know it.

    Raises:
        UsageError: ``given`` is below 1.
    """
    if given is not None:
        if given < 1:
            raise UsageError(f"max_input_tokens must be 1 or more, got {given}")
        return ContextBudget(given, given)
    window = _context_window(judge, price or getattr(judge, "price", None))
    return (
        context_budget_in(window, getattr(judge.spec, "max_output_tokens", None))
        if window
        else None
    )


def _context_window(judge: Judge, price: Price | None) -> int | None:
    """Return the context window of a hosted model, if the price table has it."""
    if price is not None and price.context_window is not None:
        return price.context_window
    address = getattr(judge.spec, "base_url", None)
    if address is None or (price is None and hasattr(judge, "price")):  # the judge has looked it up
        return None
    found = price_of(judge.spec.model, address)
    return found.context_window if found else None


def _require_reference(example: KeyedExample) -> None:
    """Reject, before any spend, a row without a reference answer."""
    if not example.reference:
        raise BadRow(
            f"{example.id!r}: no reference answer, which profile 'reference' needs; give the row "
            "one in its field 'reference', or use --profile auto",
            reason="no_reference",
        )


def _require_content(example: KeyedExample) -> None:
    """Reject, before any spend, a row without question, documents or response."""
    empty = {
        "empty_question": not example.question.strip(),
        "empty_response": not example.response,
        "no_document_sentences": not any(example.documents),
    }
    for reason, is_empty in empty.items():
        if is_empty:
            raise BadRow(
                f"{example.id!r}: {reason.replace('_', ' ')}; there is nothing to judge, "
                "so the judge was not asked",
                reason=reason,
            )
