"""Tasks for generated questions: which question does a response answer?

The judge sees the response alone. Run, store and re-asks are those of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from labeler.errors import BadRow
from labeler.judges.judge import Judge
from labeler.judges.prompting import (
    Message,
    Prompt,
    chat,
    fill,
    prompt_parts,
    sentence_lines,
)
from labeler.judges.task import JudgeReply, Task, TaskKind
from labeler.labels.contract import CheckedAnswer
from labeler.labels.schemas import load_schema, read_resource
from labeler.labels.signature import Signature, digest
from labeler.plugins.similarity.records import QuestionsAnswer, QuestionsRecord, questions_key
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import Splitter, key_example

PROMPT = "questions/v1"
SCHEMA = "questions/v1"

_ANSWER_TOKENS = 160
"""Three questions and one or two sentences, without reasoning."""


class QuestionsKind(TaskKind[QuestionsAnswer]):
    """Questions that a response would answer."""

    name = "questions"
    answer_type = QuestionsAnswer
    typical_tokens = _ANSWER_TOKENS
    rules = "There are exactly three questions, and none is blank."

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the key of the questions."""
        return questions_key(example, signature)

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the response and nothing else of the row."""
        response = sentence_lines(example.response)
        # The marker depends on the response alone, as the key does.
        values = {"marker": digest({"fence": response})[:16], "response": response}
        return chat(prompt.system, fill(prompt.user, values))

    def record(
        self,
        task: Task[QuestionsAnswer],
        check: CheckedAnswer[QuestionsAnswer],
        reply: JudgeReply[QuestionsAnswer],
    ) -> QuestionsRecord:
        """Build the questions record."""
        del check
        return QuestionsRecord(
            key=task.key,
            example=task.example,
            answer=reply.answer,
            signature=task.signature,
            reply=reply.facts,
        )

    def unsupported(self, judge: str) -> str:
        """Return the error message for a judge that gives labels only."""
        return (
            f"judge {judge!r} cannot write questions; use a hosted model, such as "
            "--judge openai:MODEL"
        )


@lru_cache
def load_questions_prompt() -> Prompt:
    """Load the prompt for questions."""
    return Prompt(PROMPT, *prompt_parts(PROMPT, read_resource("prompts", PROMPT, ".md")))


@dataclass(frozen=True)
class QuestionsTasks:
    """Builds tasks for questions."""

    judge: Judge
    splitter: Splitter
    trial: int = 0
    kind = QuestionsKind()
    needs = frozenset[str]()

    def task(self, example: Example) -> Task[QuestionsAnswer]:
        """Split an example and build its task.

        Raises:
            BadRow: the question or the response is empty.
        """
        keyed = key_example(example, self.splitter)
        _require_content(keyed)
        spec, prompt, schema = self.judge.spec, load_questions_prompt(), load_schema(SCHEMA)
        signature = spec.signature(prompt, schema, keyed.splitter, trial=self.trial)
        key = questions_key(keyed, signature)
        return Task(key, keyed, signature, prompt, schema, self.kind)


def _require_content(example: KeyedExample) -> None:
    empty = {"question": not example.question.strip(), "response": not example.response}
    for part, is_empty in empty.items():
        if is_empty:
            raise BadRow(
                f"{example.id!r}: empty {part}; there is nothing to compare, so the judge was not "
                "asked",
                reason=f"empty_{part}",
            )
