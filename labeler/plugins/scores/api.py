"""Functions of the Python API that score rows by criteria."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from labeler.calculators.frame import measured_columns, to_library
from labeler.calculators.outcomes import checked_outcomes
from labeler.catalog import named_keywords, with_named_keywords
from labeler.data.options import keywords
from labeler.errors import UsageError
from labeler.labeling.starting import begin, judges_of
from labeler.labels.record import records_of
from labeler.outcomes_object import Outcomes
from labeler.plugins.scores import ScoreOptions
from labeler.plugins.scores.criteria import choose_criteria
from labeler.plugins.scores.records import ScoreOutcome
from labeler.plugins.scores.tasks import ScoreTasks, score_rows
from labeler.sentences.splitting import SPLITTERS

if TYPE_CHECKING:
    from labeler.data.options import RowSource


@with_named_keywords
class ScoreRun(Outcomes[ScoreOutcome]):
    """Scores and failures, in the order of rows, criteria and trials.

    Example:
        >>> scores = labeler.score(  # doctest: +SKIP
        ...     "rows.jsonl", judge="openai:MODEL", criteria="rubric_faithfulness"
        ... )
        >>> scores.check(rubric_faithfulness=4).passed  # doctest: +SKIP
        True
    """

    records_name = "score"

    def _to_frame(self, library: str, ids: str | Iterable[str] | None, *, documents: bool) -> Any:  # noqa: ANN401 - either library's
        if documents:
            raise UsageError("a frame of scores has no documents: join it to the rows by id")
        rows = self.metrics(ids)
        return to_library(measured_columns(rows, {"id": [row.id for row in rows]}), library)


@keywords(ScoreOptions)
def iter_scores(rows: RowSource, options: ScoreOptions) -> Generator[ScoreOutcome, None, None]:
    """Score rows by criteria, in input order; within a row by judge, criterion and trial.

    A stored score costs nothing, whatever its row's id and whatever changed in fields that the
    criterion does not show. Evaluation steps that a criterion lacks are written by the judge once,
    and stored too.

    Args:
        rows: as for :func:`open_rows`.
        options: ``criteria`` are names such as ``rubric_faithfulness``, TOML files, or criteria;
            several names may stand in one text, separated by commas (see
            :mod:`labeler.plugins.scores.criteria`). Each of several ``judges`` scores every row;
            :func:`~labeler.plugins.scores.collected.compare_raters` measures their agreement.
            Each of ``samples`` is an outcome of its own.

    Yields:
        A score record or a failure for each row, judge, criterion and trial.

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
    chosen, splitter = choose_criteria(options.criteria), SPLITTERS[options.splitter]
    opened, judges = options.open(rows), judges_of(options, default="openai")
    plans = [
        [
            ScoreTasks(judge, splitter, one, trial, options.samples, options.logprobs)
            for one in chosen
            for trial in range(options.samples * options.repeat)
        ]
        for judge in judges
    ]
    with begin(options) as run:
        yield from score_rows(run, opened, plans)


@keywords(ScoreOptions)
def score(rows: RowSource, options: ScoreOptions) -> ScoreRun:
    """Score rows and return an outcome for each, criterion and trial; see :func:`iter_scores`.

    Args:
        rows: as for :func:`open_rows`.
        options: as for :func:`iter_scores`.

    Returns:
        Score records and failures, in input order, with their table, gates, page and file.

    Raises:
        UsageError: as for :func:`iter_scores`.

    Example:
        >>> labeler.score(  # doctest: +SKIP
        ...     "rows.jsonl", judge="openai:MODEL", criteria="rubric_faithfulness"
        ... )
    """
    return ScoreRun(iter_scores(rows, **vars(options)), name="scores")


@named_keywords
def read_scores(scores: str | Path) -> Iterator[ScoreOutcome]:
    """Read scores and failures to score from a file, standard input or a store's folder.

    Args:
        scores: path of the file or folder.

    Returns:
        Scores and failures, read one by one.

    Raises:
        UsageError: the file or folder does not exist, or a line is not an outcome.
        StoreError: the store is damaged.

    Example:
        >>> import labeler.plugins.scores
        >>> _ = labels.save("labels.jsonl")
        >>> list(labeler.plugins.scores.read_scores("labels.jsonl"))
        []
    """
    found = checked_outcomes(scores).through(partial(records_of, kind="score"))
    return cast("Iterator[ScoreOutcome]", found)
