"""The function of the Python API that compares questions with generated ones."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from labeler.data.options import keywords
from labeler.labeling.starting import begin, judges_of
from labeler.plugins.similarity.comparing import EmbeddingWork, compare_rows
from labeler.plugins.similarity.embedder import open_embedder
from labeler.plugins.similarity.options import SimilarityOptions
from labeler.plugins.similarity.questioning import QuestionsTasks
from labeler.plugins.similarity.records import QuestionsOutcome
from labeler.sentences.splitting import SPLITTERS

if TYPE_CHECKING:
    from labeler.data.options import RowSource


@keywords(SimilarityOptions)
def iter_similarity(
    rows: RowSource, options: SimilarityOptions
) -> Generator[QuestionsOutcome, None, None]:
    """Compare each row's question with questions generated from its response, in input order.

    The judge writes three questions for each response without seeing the real one; the embedder
    measures their similarity. :func:`metrics` computes numbers from the outcomes.
    Stored questions and comparisons cost nothing.

    Args:
        rows: as for :func:`open_rows`; documents are ignored.
        options: ``embedder`` is a name or an embedder such as ``OpenAIEmbedder(model=…)``;
            ``budget`` covers judge and embedder together.

    Yields:
        A record of questions, or a failure, for each row.

    Raises:
        UsageError: the rows cannot be read; nothing was sent.
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the options allow.
        StoreError: the store cannot be read or written.

    Example:
        >>> from labeler.plugins.similarity import iter_similarity
        >>> for outcome in iter_similarity("rows.jsonl", judge="openai:MODEL"):  # doctest: +SKIP
        ...     print(outcome.id)
    """
    opened = options.open(rows)
    [judge] = judges_of(options, default="openai")
    task = QuestionsTasks(judge, SPLITTERS[options.splitter], options.trial)
    embedder = open_embedder(options.embedder, options.server)
    work = options.work or EmbeddingWork()
    with begin(options) as run:
        yield from compare_rows(run, opened, task, embedder, work)
