"""Functions of the Python API that score rows by criteria."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from labeler.calculators.outcomes import checked_outcomes
from labeler.data.options import keywords
from labeler.errors import UsageError
from labeler.labeling.starting import begin, judges_of
from labeler.labels.record import records_of
from labeler.plugins.scores.criteria_files import choose_criteria
from labeler.plugins.scores.options import ScoreOptions
from labeler.plugins.scores.records import ScoreOutcome
from labeler.plugins.scores.runs import Plan, score_rows
from labeler.sentences.splitting import SPLITTERS

if TYPE_CHECKING:
    from labeler.data.options import RowSource


@keywords(ScoreOptions)
def iter_scores(rows: RowSource, options: ScoreOptions) -> Generator[ScoreOutcome, None, None]:
    """Score rows by criteria, in input order; each row's criteria one after the other.

    A stored score costs nothing, whatever its row's id and whatever changed in fields that the
    criterion does not show. Evaluation steps that a criterion lacks are written by the judge once,
    and stored too.

    Args:
        rows: as for :func:`open_rows`.
        options: ``criteria`` are names such as ``rubric_faithfulness``, TOML files, or criteria;
            several names may stand in one text, separated by commas (see
            :mod:`labeler.plugins.scores.criteria_files`). Each of several ``judges`` scores all
            rows, one after the other; :func:`~labeler.plugins.scores.agreement.compare_raters`
            measures their agreement. Each of ``samples`` is an outcome of its own.

    Yields:
        A score record or a failure for each row, criterion and trial.

    Raises:
        UsageError: a criterion is malformed, a judge is given twice or gives labels only, or the
            rows cannot be read.
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the options allow.
        StoreError: the store cannot be read or written.

    Example:
        >>> for outcome in labeler.plugins.scores.iter_scores(  # doctest: +SKIP
        ...     "rows.jsonl", judge="openai:MODEL", criteria="rubric_faithfulness"
        ... ):
        ...     print(outcome.id, outcome.score)
    """
    for name in ("samples", "repeat"):
        if (count := getattr(options, name)) < 1:
            raise UsageError(f"{name} must be 1 or more, got {count}")
    chosen = choose_criteria(options.criteria)
    opened, judges = options.open(rows), judges_of(options, default="openai")
    how = SPLITTERS[options.splitter], chosen, options.samples, options.repeat, options.logprobs
    plans = [Plan(judge, *how) for judge in judges]
    with begin(options) as run:
        yield from score_rows(run, opened, plans)


@keywords(ScoreOptions)
def score(rows: RowSource, options: ScoreOptions) -> list[ScoreOutcome]:
    """Score rows and return an outcome for each, criterion and trial; see :func:`iter_scores`.

    Args:
        rows: as for :func:`open_rows`.
        options: those of :func:`iter_scores`.

    Returns:
        Score records and failures, in input order.

    Raises:
        UsageError: as for :func:`iter_scores`.

    Example:
        >>> labeler.score(  # doctest: +SKIP
        ...     "rows.jsonl", judge="openai:MODEL", criteria="rubric_faithfulness"
        ... )
    """
    return list(iter_scores(rows, **vars(options)))


def read_scores(scores: str | Path) -> Iterator[ScoreOutcome]:
    """Read scores and failures to score from a file, standard input or a store's folder.

    Args:
        scores: path of the file or folder.

    Returns:
        Scores and failures, read one by one.

    Raises:
        UsageError: the file or folder does not exist, or a line is no outcome.
        StoreError: the store is damaged.

    Example:
        >>> import labeler.plugins.scores
        >>> list(labeler.plugins.scores.read_scores(".labeler"))
        []
    """
    found = checked_outcomes(scores).through(partial(records_of, kind="score"))
    return cast("Iterator[ScoreOutcome]", found)
