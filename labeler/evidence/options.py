"""Options of functions and commands that ask a judge again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from labeler.data.options import REPEATS, ExampleOptions, Option
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import RunOptions, TaskOptions

if TYPE_CHECKING:
    from labeler.judges.options import JudgeLike
else:  # the type of the command line
    JudgeLike = str


@dataclass(frozen=True, kw_only=True)
class AskOptions(JudgeOptions, RunOptions):
    """Judge, store, pace and budget of questions about stored texts."""


@dataclass(frozen=True, kw_only=True)
class ExamOptions(ExampleOptions, JudgeOptions, TaskOptions, RunOptions):
    """Options of ``exam``."""

    n: Annotated[
        int, Option("Copies of each kind, made of as many rows.", "-n", min=1, panel=REPEATS)
    ] = 200
    against: Annotated[
        JudgeLike | None, Option("Another judge, compared on the same copies.", panel=REPEATS)
    ] = None
