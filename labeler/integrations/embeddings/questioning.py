"""Asks a judge which question a response replies to, without showing it the one that was asked.

One structured call a row, through the same engine, store and re-asks as labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from labeler.errors import BadRow, UsageError
from labeler.judges.judge import Judge
from labeler.judges.prompting import JudgeRequest, Message, Prompt, prompt_parts, sentence_lines
from labeler.labels import resources
from labeler.labels.contract import Violation
from labeler.labels.logprobs import Token
from labeler.labels.profiles import Profile
from labeler.labels.questions import QuestionsAnswer
from labeler.labels.record import QuestionsRecord, ReplyFacts, SentenceScores, questions_key
from labeler.labels.schemas import load_schema
from labeler.labels.signature import digest
from labeler.sentences.example import Example, Frozen, KeyedExample
from labeler.sentences.splitting import DEFAULT_SPLITTER, SPLITTERS, Splitter, key_example

PROMPT = "questions/v1"
SCHEMA = "questions/v1"

_VARIABLE = re.compile(r"\{\{(marker|response)\}\}")
_ANSWER_TOKENS = 160
"""Of three questions and one or two sentences, without reasoning."""


class QuestionsRequest(JudgeRequest):
    """Asks for questions that a response would reply to."""

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages: the response, and nothing else of the row."""
        response = sentence_lines(self.example.response)
        # Made of what is shown alone, as the key is: rows of one response send the same.
        values = {"marker": digest({"fence": response})[:16], "response": response}
        user = _VARIABLE.sub(lambda match: values[match[1]], self.prompt.user)
        return (
            {"role": "system", "content": self.prompt.system},
            {"role": "user", "content": user},
        )

    @property
    def profile(self) -> Profile:
        """None: it asks for no label.

        Raises:
            UsageError: always; a judge that only labels was asked.
        """
        raise UsageError(
            f"judge {self.signature.judge!r} labels and writes no questions: ask a hosted model, "
            "such as with --model"
        )

    @property
    def answer_type(self) -> type[Frozen]:
        """The class that an answer is read into, which holds all that it must keep."""
        return QuestionsAnswer

    @property
    def rules(self) -> str:
        """What an answer must keep, in words."""
        return "There are exactly three questions, and none is blank."

    @property
    def expected_tokens(self) -> int:
        """About how long an answer will be."""
        return _ANSWER_TOKENS

    def broken_by(self, answer: Frozen) -> tuple[Violation, ...]:
        """Nothing: what fits the schema may be stored."""
        _questions(answer)
        return ()

    def admit(
        self,
        answer: Frozen,
        facts: ReplyFacts,
        *,
        scores: SentenceScores | None = None,
        tokens: Sequence[Token] = (),
    ) -> QuestionsRecord:
        """Make the record that an answer becomes."""
        del scores, tokens
        return QuestionsRecord(
            key=self.key,
            example=self.example,
            answer=_questions(answer),
            signature=self.signature,
            reply=facts,
        )


def _questions(answer: Frozen) -> QuestionsAnswer:
    if not isinstance(answer, QuestionsAnswer):
        raise TypeError(f"questions were asked for, got a {type(answer).__name__}")
    return answer


@lru_cache
def load_questions_prompt() -> Prompt:
    """The prompt that asks for questions."""
    return Prompt(PROMPT, *prompt_parts(PROMPT, resources.read("prompts", PROMPT, ".md")))


@dataclass(frozen=True)
class QuestionsRecipe:
    """All that turns an example into a request for questions, but for the example."""

    judge: Judge
    splitter: Splitter = SPLITTERS[DEFAULT_SPLITTER]
    trial: int = 0

    def request(self, example: Example) -> QuestionsRequest:
        """Key an example and name the questions that it asks for.

        Raises:
            BadRow: it has no question to compare with, or no response to write questions for.
        """
        keyed = key_example(example, self.splitter)
        _refuse_empty(keyed)
        spec, prompt, schema = self.judge.spec, load_questions_prompt(), load_schema(SCHEMA)
        signature = spec.signature(prompt, schema, keyed.splitter, trial=self.trial)
        return QuestionsRequest(questions_key(keyed, signature), keyed, signature, prompt, schema)


def _refuse_empty(example: KeyedExample) -> None:
    empty = {"question": not example.question.strip(), "response": not example.response}
    for part, is_empty in empty.items():
        if is_empty:
            raise BadRow(
                f"{example.id!r}: empty {part}; there is nothing to compare, so the judge was not "
                "asked",
                reason=f"empty_{part}",
            )
