"""What is asked about an example: judge, splitter, prompt and schema, and the label's key."""

from __future__ import annotations

from dataclasses import dataclass

from labeler.errors import BadRow
from labeler.example import Example, KeyedExample
from labeler.judges import Judge
from labeler.prompting import (
    DEFAULT_PROMPT,
    DEFAULT_SCHEMA,
    JudgeRequest,
    Prompt,
    ResponseSchema,
    load_prompt,
    load_schema,
)
from labeler.record import label_key
from labeler.signature import Signature
from labeler.splitting import DEFAULT_SPLITTER, SPLITTERS, Splitter, key_example


@dataclass(frozen=True)
class Recipe:
    """All that turns an example into a request, but for the example."""

    judge: Judge
    splitter: Splitter
    prompt: Prompt
    schema: ResponseSchema
    trial: int = 0

    def request(self, example: Example) -> JudgeRequest:
        """Key an example and name the judgement that it asks for.

        Raises:
            BadRow: there is nothing to judge, or given sentences do not fit the text.
        """
        keyed = key_example(example, self.splitter)
        _refuse_empty(keyed)
        return self.request_keyed(keyed)

    def request_keyed(self, keyed: KeyedExample) -> JudgeRequest:
        """Name the judgement of an example that has its keys already."""
        spec = self.judge.spec
        signature = Signature(
            judge=spec.judge,
            model=spec.model,
            sampling=spec.sampling(),
            prompt=self.prompt.artifact,
            response_schema=self.schema.artifact,
            splitter=keyed.splitter,
            trial=self.trial,
        )
        key = label_key(keyed, signature)
        return JudgeRequest(key, keyed, signature, self.prompt, self.schema)


def recipe(
    judge: Judge,
    *,
    splitter: str = DEFAULT_SPLITTER,
    prompt: str = DEFAULT_PROMPT,
    trial: int = 0,
) -> Recipe:
    """Name the parts of a recipe.

    Raises:
        UnknownName: there is no such splitter or prompt.
    """
    schema = load_schema(DEFAULT_SCHEMA)
    return Recipe(judge, SPLITTERS[splitter], load_prompt(prompt), schema, trial)


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
