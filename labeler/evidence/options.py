"""Options of functions and commands that ask a judge again."""

from dataclasses import dataclass

from labeler.judges.options import JudgeOptions
from labeler.labeling.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class AskOptions(JudgeOptions, RunOptions):
    """Judge, store, pace and budget of questions about stored texts."""
