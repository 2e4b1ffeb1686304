"""The kind of tasks about relevance: which documents help to answer a question."""

from __future__ import annotations

from labeler.judges.prompting import Message, Prompt
from labeler.judges.task import CheckedAnswer, JudgeReply, Task, TaskKind
from labeler.judges.tokens import RELEVANCE_TOKENS
from labeler.labels.answers import RetrievalLabel
from labeler.labels.contract import check_retrieval
from labeler.labels.record import retrieval_key
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.labels.signature import Signature
from labeler.sentences.example import KeyedExample


class RetrievalKind(TaskKind[RetrievalLabel]):
    """The relevance of documents, judged without a response."""

    name = "retrieval"
    answer_type = RetrievalLabel
    typical_tokens = RELEVANCE_TOKENS
    rules = (
        "all_relevant_sentence_keys holds keys of document sentences and nothing else, each "
        "exactly as it begins its line."
    )

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the key of the retrieval label."""
        return retrieval_key(example, signature)

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the question and the documents."""
        return prompt.render(example)

    def check(self, answer: RetrievalLabel, example: KeyedExample) -> CheckedAnswer[RetrievalLabel]:
        """Check the relevant sentences against those that were shown."""
        checked = check_retrieval(answer, example)
        return CheckedAnswer(checked.label, checked.violations, checked.normalised)

    def record(
        self,
        task: Task[RetrievalLabel],
        check: CheckedAnswer[RetrievalLabel],
        reply: JudgeReply[RetrievalLabel],
    ) -> RetrievalRecord:
        """Build the retrieval record."""
        return RetrievalRecord(
            key=task.key,
            example=task.example,
            label=check.answer,
            verbatim=reply.answer if check.answer != reply.answer else None,
            normalised={**reply.repairs, **check.repairs},
            signature=task.signature,
            reply=reply.facts,
            scores=reply.scores,
            not_measured=reply.not_measured,
        )

    def unsupported(self, judge: str) -> str:
        """Return the error message for a judge that gives whole labels only."""
        return f"judge {judge!r} judges relevance with the response alone: leave --relevance out"
