"""What is asked about an example: judge, splitter, prompt and schema, and the label's key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from labeler.errors import BadRow, UsageError
from labeler.judges.judge import Judge, JudgeSpec
from labeler.judges.pricing import Price, price_of
from labeler.judges.prompting import JudgeRequest, Prompt, load_prompt
from labeler.labeling.windows import Room, Windowed, cut, room_in
from labeler.labels.profiles import AUTO, DEFAULT_PROFILE, PROFILES
from labeler.labels.record import label_key
from labeler.labels.schemas import ResponseSchema, load_schema
from labeler.labels.signature import Artifact, Signature
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import DEFAULT_SPLITTER, SPLITTERS, Splitter, key_example


class Asking(Protocol):
    """What a run asks about each row: a label, or another answer."""

    @property
    def judge(self) -> Judge:
        """Who is asked."""
        ...

    def request(self, example: Example) -> JudgeRequest:
        """Name the judgement that an example asks for.

        Raises:
            BadRow: nothing can be asked about it.
        """
        ...


class Unanswerable(BadRow):
    """A row that lacks what one request shows; others may be asked about it.

    Attributes:
        signature: names the request that is not sent.
    """

    def __init__(self, message: str, *, reason: str, signature: Signature) -> None:
        super().__init__(message, reason=reason)
        self.signature = signature


@dataclass(frozen=True)
class Recipe:
    """All that turns an example into a request, but for the example."""

    judge: Judge
    splitter: Splitter
    prompt: Prompt
    schema: ResponseSchema
    trial: int = 0
    where_referenced: tuple[Prompt, ResponseSchema] | None = None
    """What is asked instead where a row has a reference answer."""
    room: Room | None = None
    """How long prompts may be; ``None`` where nobody knows, or any length does."""

    def request(self, example: Example) -> JudgeRequest:
        """Key an example and name the judgement that it asks for.

        Raises:
            BadRow: there is nothing to judge, or given sentences do not fit the text.
        """
        keyed = key_example(example, self.splitter)
        _refuse_empty(keyed)
        if self.prompt.shows_reference:
            _refuse_unreferenced(keyed)
        return self.request_keyed(keyed)

    def request_keyed(self, keyed: KeyedExample) -> JudgeRequest:
        """Name the judgement of an example that has its keys already."""
        prompt, schema = self.prompt, self.schema
        if self.where_referenced is not None and keyed.reference:
            prompt, schema = self.where_referenced
        signature = self._signature(keyed.splitter, prompt, schema)
        key = label_key(keyed, signature)
        return JudgeRequest(key, keyed, signature, prompt, schema)

    def _signature(self, splitter: str, prompt: Prompt, schema: ResponseSchema) -> Signature:
        """What makes the labels of examples that are split and asked about in the same way."""
        spec, parts = self.judge.spec, (splitter, prompt.artifact, schema.artifact)
        made_for, made = self._signatures.get(parts, (None, None))
        if made is None or made_for is not spec:
            made = spec.signature(prompt, schema, splitter, trial=self.trial)
            self._signatures[parts] = spec, made
        return made

    @cached_property
    def _signatures(self) -> dict[tuple[str, Artifact, Artifact], tuple[JudgeSpec, Signature]]:
        """One for all records: thousands of equal ones would be made and kept otherwise."""
        return {}

    def windows_of(self, request: JudgeRequest, is_known: Callable[[str], bool]) -> Windowed | None:
        """The windows in which a request of this recipe is asked; ``None`` where it is not.

        Args:
            request: what is asked.
            is_known: whether there is a label of a key, or one on its way: what was judged as a
                whole is not asked again in parts.

        Raises:
            BadRow: the record is too long, and windows do not help.
        """
        if self.room is None or is_known(request.key):
            return None
        return cut(request, self.room)


def recipe(
    judge: Judge,
    *,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    max_input_tokens: int | None = None,
    price: Price | None = None,
) -> Recipe:
    """Name the parts of a recipe.

    Args:
        judge: who is asked.
        splitter: name of a sentence splitter.
        profile: how much is asked; ``auto`` is ``reference`` for rows that have a reference answer
            and ``claims`` for the others.
        prompt: name and version of another prompt than the profile's own.
        trial: 0 for the first judgement, another number for a repeated one.
        max_input_tokens: tokens that a prompt may have; by default what the judge's model takes,
            where a table knows that. Longer records are judged in windows.
        price: of the model's tokens, where the judge does not know it.

    Raises:
        UnknownName: there is no such splitter, profile or prompt.
        UsageError: the prompt shows a reference answer and the profile does not ask about one, or
            the other way round; a prompt is named for ``auto``, which has two; or no prompt has as
            few tokens as allowed.
    """
    room = room_of(judge, max_input_tokens, price)
    if profile == AUTO:
        if prompt is not None:
            raise UsageError(f"profile {AUTO!r} has a prompt for each kind of row: name none")
        claims, reference = PROFILES["claims"], PROFILES["reference"]
        referenced = (load_prompt(reference.prompt), load_schema(reference.schema))
        asked = (load_prompt(claims.prompt), load_schema(claims.schema))
        return Recipe(judge, SPLITTERS[splitter], *asked, trial, referenced, room)
    chosen = PROFILES[profile]
    worded = load_prompt(prompt or chosen.prompt)
    if worded.shows_reference != chosen.shows_reference:
        shows = "shows" if worded.shows_reference else "does not show"
        raise UsageError(
            f"prompt {worded.name!r} {shows} the reference answer, which does not fit profile "
            f"{profile!r}; its own prompt is {chosen.prompt!r}"
        )
    schema = load_schema(chosen.schema)
    return Recipe(judge, SPLITTERS[splitter], worded, schema, trial, room=room)


def room_of(judge: Judge, given: int | None, price: Price | None = None) -> Room | None:
    """How long the prompts of a judge may be.

    Args:
        judge: who is asked.
        given: tokens that a prompt may have, where that was said.
        price: of the model's tokens, where the judge does not know it.

    Raises:
        UsageError: no prompt is as short as that.
    """
    if given is not None:
        if given < 1:
            raise UsageError(f"max_input_tokens must be 1 or more, got {given}")
        return Room(given, given)
    window = _context_window(judge, price or getattr(judge, "price", None))
    return room_in(window, getattr(judge.spec, "max_output_tokens", None)) if window else None


def _context_window(judge: Judge, price: Price | None) -> int | None:
    """What a hosted model takes, where the table knows it."""
    if price is not None and price.context_window is not None:
        return price.context_window
    address = getattr(judge.spec, "base_url", None)
    if address is None or (price is None and hasattr(judge, "price")):  # which looked it up
        return None
    found = price_of(judge.spec.model, address)
    return found.context_window if found else None


def _refuse_unreferenced(example: KeyedExample) -> None:
    """Refuse, before any spend, a row that lacks what its response is to be held against."""
    if not example.reference:
        raise BadRow(
            f"{example.id!r}: no reference answer, which profile 'reference' needs; give the row "
            "one in its field 'reference', or use --profile auto",
            reason="no_reference",
        )


def _refuse_empty(example: KeyedExample) -> None:
    """Refuse, before any spend, a row of which nothing could be said."""
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
