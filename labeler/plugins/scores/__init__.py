"""Scores by rubrics and criteria of one's own, and their dependence on length.

Annotations of options are evaluated, as in :mod:`labeler.data.options`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from labeler.data.options import JUDGE, MAIN, REPEATS, ExampleOptions, Option
from labeler.extensions import importer
from labeler.judges.options import JudgeLike, JudgeOptions
from labeler.labeling.options import RunOptions, SeveralJudges

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from labeler.plugins.scores.api import iter_scores, read_scores, score
    from labeler.plugins.scores.criteria import Criterion
    from labeler.plugins.scores.records import ScoreRecord

    Criteria: TypeAlias = str | Path | Criterion | Iterable[str | Path | Criterion]
else:  # the type of the command line
    Criteria = str

__all__ = ["Criterion", "ScoreRecord", "iter_scores", "read_scores", "score"]
_HOMES = {"api": "iter_scores read_scores score", "criteria": "Criterion", "records": "ScoreRecord"}
__getattr__ = importer(__name__, _HOMES)


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ExampleOptions, JudgeOptions, RunOptions):
    """Options of ``score``."""

    PANEL: ClassVar = REPEATS
    DOING: ClassVar = "scoring"

    judge: Annotated[
        JudgeLike | None,
        Option("PROVIDER:MODEL; embedded and replay cannot score.", takes=(object,)),
    ] = None
    criteria: Annotated[
        Criteria,
        Option(
            "Criteria, comma-separated: names such as rubric_faithfulness, or TOML files.",
            panel=MAIN,
            takes=(object,),
        ),
    ]
    samples: Annotated[int, Option("Judge calls per score; the score is their mean.", min=1)] = 1
    logprobs: Annotated[
        bool,
        Option("Weight scores by token probabilities, where the server returns them.", panel=JUDGE),
    ] = False
    repeat: Annotated[
        int, Option("Independent scores per row, to measure their spread.", min=1)
    ] = 1
    judges: Annotated[
        SeveralJudges | None,
        Option("Judges that each score every row, comma-separated.", takes=(object,)),
    ] = None
