"""Tasks for a judge: how examples become tasks, by the names in options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from labeler.catalog import unknown
from labeler.errors import BadRow, UnknownName, UsageError
from labeler.judges.judge import Judge, JudgeSpec, require_answers, require_reader
from labeler.judges.options import provider_of
from labeler.judges.pricing import Price, find_price
from labeler.judges.prompting import (
    DECISIONS,
    Prompt,
    is_retrieval_prompt,
    load_prompt,
    prompt_file,
    read_instructions,
    read_prompt,
)
from labeler.judges.task import TASK_KINDS, Task, label_kind
from labeler.judges.tokens import TokenCounter
from labeler.labeling.options import BLIND, RELEVANCE, LabelOptions, RequestOptions
from labeler.labels.answers import (
    AUTO,
    PROFILES,
    SUPPORT,
    Profile,
    RetrievalLabel,
    family_of,
    version_of,
)
from labeler.labels.retrieval_record import RetrievalRecord, basis_of, without_documents
from labeler.labels.signature import (
    Artifact,
    ResponseSchema,
    Signature,
    label_key,
    load_schema,
    retrieval_example,
    retrieval_key,
)
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import SPLITTERS, Splitter, key_example
from labeler.store import LabelStore

TOO_LONG = "context_length"
"""Reason of a failure; a server that reports the same gives it too."""
_COUNTER = TokenCounter()


class ContextLimit(NamedTuple):
    """Most tokens of a prompt.

    Attributes:
        tokens: the number.
        source: its origin, for people.
    """

    tokens: int
    source: str


def prompt_tokens(task: Task[Any]) -> int:
    """Return the approximate tokens of a task's prompt."""
    texts = [message["content"] for message in task.messages]
    return _COUNTER.request(texts, task.sent_schema)


def context_limit(
    judge: Judge, given: int | None, price: Price | None = None
) -> ContextLimit | None:
    """Return the limit of a judge's prompts; ``None`` if unknown or unlimited.

    Args:
        judge: judge to ask.
        given: most tokens of a prompt, if the user chose it. By default, the tokens that the model
            takes at most by the price table, less the cap on its answers.
        price: price of the model, if the judge does not know it.

    Raises:
        UsageError: ``given`` is below 1.
    """
    if given is not None:
        if given < 1:
            raise UsageError(f"max_input_tokens must be 1 or more, got {given}")
        return ContextLimit(given, "--max-input-tokens")
    known, address = price or getattr(judge, "price", None), getattr(judge.spec, "base_url", None)
    has_looked = known is None and hasattr(judge, "price")
    if not (known and known.context_window) and address is not None and not has_looked:
        known = find_price(judge.spec.model, address)
    if known is None or known.context_window is None:
        return None
    left = known.context_window - (getattr(judge.spec, "max_output_tokens", None) or 0)
    return ContextLimit(left if left > 0 else known.context_window, f"model {judge.spec.model!r}")


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
            BadRow: its prompt is longer than the limit; the message names both figures.
        """
        if self.limit is None:
            return
        most, source = self.limit
        texts = [message["content"] for message in task.messages]
        if _COUNTER.request_at_most(texts, task.sent_schema) <= most:
            return  # without counting
        tokens = prompt_tokens(task)
        if tokens > most and not is_known(task.key):
            fixed = _COUNTER.request([task.prompt.system_text], task.sent_schema)
            remedy = "give it fewer documents, or choose a model with more context"
            if fixed > most:
                remedy = f"{fixed:,} of them are the same for each row: allow more"
            raise BadRow(
                f"{task.example.id!r}: its prompt has about {tokens:,} tokens, and {source} "
                f"allows {most:,}; the judge was not asked: {remedy}",
                reason=TOO_LONG,
            )


@dataclass(frozen=True, kw_only=True)
class RetrievalTasks(PromptTasks):
    """Builds tasks about the relevance of documents, judged without a response."""

    def task(self, row: Task[Any]) -> Task[RetrievalLabel]:
        """Build the task that a row's label rests on; rows of one retrieval have the same."""
        example = retrieval_example(row.example)
        signature = self.signature(example.splitter, self.prompt, self.schema)
        key = retrieval_key(example, signature)
        return Task(key, example, signature, self.prompt, self.schema, TASK_KINDS["retrieval"]())

    def stored(self, task: Task[Any], store: LabelStore) -> RetrievalRecord | None:
        """Return the label of a task that is stored, or needs no judge."""
        found = store.get(task.key)
        if isinstance(found, RetrievalRecord):
            return found
        if task.example.documents:
            return None
        return without_documents(task.key, task.example, task.signature)


def resting(task: Task[Any], found: RetrievalRecord) -> Task[Any]:
    """Return a label's task that rests on a retrieval label."""
    basis = basis_of(found, task.example)
    return replace(task, kind=replace(task.kind, basis=basis))  # type: ignore[type-var]


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
        _require_content(keyed, with_reference=self.prompt.shows_reference)
        return self.keyed_task(keyed)

    def keyed_task(self, keyed: KeyedExample) -> Task:
        """Build the task of a keyed example."""
        prompt, schema = self.prompt, self.schema
        if self.where_referenced is not None and keyed.reference:
            prompt, schema = self.where_referenced
        signature = self.signature(keyed.splitter, prompt, schema)
        key = label_key(keyed, signature)
        return Task(key, keyed, signature, prompt, schema, label_kind(schema.name))


def _require_content(example: KeyedExample, *, with_reference: bool) -> None:
    """Reject, before any spend, a row without question, response or a needed reference answer.

    A row without documents is judged: an answer that a search without results did not prevent is
    a hallucination.
    """
    reason = "" if example.response else "empty_response"
    reason = reason if example.question.strip() else "empty_question"
    if reason:
        raise BadRow(
            f"{example.id!r}: {reason.replace('_', ' ')}; there is nothing to judge, "
            "so the judge was not asked",
            reason=reason,
        )
    if with_reference and not example.reference:
        raise BadRow(
            f"{example.id!r}: no reference answer, which profile 'reference' needs; give the row "
            "one in its field 'reference', or use --profile auto",
            reason="no_reference",
        )


def label_tasks(
    judge: Judge,
    options: LabelOptions | RequestOptions,
    *,
    extra: int = 0,
    price: Price | None = None,
) -> LabelTasks:
    """Choose splitter, prompt and schema by the names in options.

    Args:
        judge: judge to ask.
        options: their profile ``auto`` is ``reference`` for rows that have a reference answer and
            ``claims`` for the others. Without ``max_input_tokens``, a prompt has as many tokens as
            the judge's model takes, if it is in the price table. Longer records fail.
        extra: added to the trial.
        price: price of the model, if the judge does not know it.

    Raises:
        UnknownName: there is no such splitter, profile or prompt.
        UsageError: the prompt shows a reference answer and the profile does not ask about one, or
            the other way round; or ``auto``, which has two prompts, names one in full.
    """
    is_blind, load = _is_blind(judge, options), _loader(judge, options)
    prompt, profile, file = str(options.prompt), options.profile, prompt_file(options.prompt)
    common: dict[str, Any] = {
        "judge": judge,
        "splitter": SPLITTERS[options.splitter],
        "trial": options.trial + extra,
        "limit": context_limit(judge, options.max_input_tokens, price),
    }
    if file is not None:
        worded, schema = _own(judge, options, file)
        return LabelTasks(prompt=worded, schema=schema, **common)
    if is_blind:
        name = f"retrieval/{version_of(prompt)}"
        asked: dict[str, Any] = {"prompt": load(name), "schema": load_schema(name)}
        common["relevance"] = RetrievalTasks(**asked, **common)
    if profile != AUTO:
        worded, schema = _asked(judge, load, PROFILES[profile], prompt, is_blind)
        return LabelTasks(prompt=worded, schema=schema, **common)
    if "/" in prompt:
        raise UsageError(
            f"profile {AUTO!r} has a prompt for each kind of row: name a version, such as "
            f"{version_of(prompt)!r:.20}, and not {prompt!r:.80}"
        )
    (worded, schema), referenced = (
        _asked(judge, load, PROFILES[name], prompt, is_blind) for name in ("claims", "reference")
    )
    return LabelTasks(prompt=worded, schema=schema, where_referenced=referenced, **common)


def _is_blind(judge: Judge, options: LabelOptions | RequestOptions) -> bool:
    """Return whether relevance is judged without responses.

    Raises:
        UsageError: there is no such way, or the judge cannot.
    """
    if options.relevance not in RELEVANCE:
        raise UnknownName(unknown("relevance", options.relevance, RELEVANCE))
    is_blind = options.relevance == BLIND
    if is_blind:
        require_answers(judge, TASK_KINDS["retrieval"]())
    return is_blind


_Load = Callable[[str], Prompt]


def _loader(judge: Judge, options: LabelOptions | RequestOptions) -> _Load:
    """Return what loads the prompts that a judge is asked by, with instructions of the user."""
    load: _Load = load_prompt
    if _decides(judge):
        from labeler.judges.decisions.questions import decision_prompt  # noqa: PLC0415 - for these

        load = decision_prompt
    instructions = read_instructions(options.instructions)
    if not instructions:
        return load
    require_reader(judge, "--instructions")
    return lambda name: load(name).with_instructions(instructions)


def _decides(judge: Judge) -> bool:
    provider = provider_of(judge.spec.judge)
    return provider is not None and provider.decides


def _own(
    judge: Judge, options: LabelOptions | RequestOptions, file: Path
) -> tuple[Prompt, ResponseSchema]:
    """Return a whole prompt of the user, and the schema of the profile's newest prompt.

    Raises:
        UsageError: it cannot be read or lacks a placeholder, the judge does not read it, or rows
            are asked about by more than one prompt.
    """
    require_reader(judge, "--prompt FILE")
    unfit = {
        "a judge that answers with probabilities": _decides(judge),
        f"--relevance {BLIND}": options.relevance == BLIND,
        f"--profile {AUTO}": options.profile == AUTO,
    }
    for what, is_given in unfit.items():
        if is_given:
            raise UsageError(
                f"--prompt {file} does not go with {what}, which has several prompts: add rules "
                "to all of them with --instructions FILE"
            )
    profile = PROFILES[options.profile]
    worded = read_prompt(file, profile.name)
    _require_fit(worded, profile, f"{profile.name}/{version_of(profile.schema)}")
    worded = worded.with_instructions(read_instructions(options.instructions))
    return worded, load_schema(profile.schema)


def _asked(
    judge: Judge, load: _Load, profile: Profile, prompt: str, is_blind: bool
) -> tuple[Prompt, ResponseSchema]:
    """Return a prompt, named by its version or in full, and the schema of its version.

    Raises:
        UnknownName: there is no such prompt.
        UsageError: the prompt asks for relevance and another one does so already, or the other way
            round; the same for the reference answer.
    """
    own = f"{profile.name}{SUPPORT * is_blind}/{version_of(prompt)}"
    name = prompt if "/" in prompt else own
    if "/" in prompt and _decides(judge) != (family_of(name) == DECISIONS):
        raise UsageError(f"prompt {name!r} is not one of judge {judge.spec.judge!r}")
    name = own if family_of(name) == DECISIONS else name
    if is_blind != family_of(name).endswith(SUPPORT) or is_retrieval_prompt(name):
        raise UsageError(
            f"prompt {name!r} does not fit --relevance {RELEVANCE[is_blind]}, for which profile "
            f"{profile.name!r} has {own!r}"
        )
    worded = load(name)
    _require_fit(worded, profile, own)
    return worded, load_schema(profile.schema_of(name))


def _require_fit(worded: Prompt, profile: Profile, own: str) -> None:
    """Reject a prompt that shows a reference answer for a profile without one, or the reverse."""
    if worded.shows_reference != profile.shows_reference:
        shows = "shows" if worded.shows_reference else "does not show"
        raise UsageError(
            f"prompt {worded.name!r} {shows} the reference answer, which does not fit profile "
            f"{profile.name!r}; its own prompt is {own!r}"
        )
