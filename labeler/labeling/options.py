"""Options of a run, and those of each function and command that judges rows.

Annotations are evaluated, as in :mod:`labeler.data.options`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from labeler.data.options import (
    DEFAULT_STORE,
    JUDGE,
    LIMITS,
    REPEATS,
    STORE,
    ExampleOptions,
    Option,
    given,
)
from labeler.errors import UsageError, number_in
from labeler.judges.options import PACE, JudgeLike, JudgeOptions

if TYPE_CHECKING:
    from labeler.calculators.rater_agreement import Votes
    from labeler.judges.limits import Limits
    from labeler.labeling.progress import OnEvent
    from labeler.store import LabelStore

    StoreLike: TypeAlias = str | Path | LabelStore
    Dollars: TypeAlias = str | float | Decimal
    SeveralJudges: TypeAlias = str | Sequence[JudgeLike]
    FileLike: TypeAlias = str | Path
else:  # the types of the command line
    StoreLike = Dollars = SeveralJudges = FileLike = str

SHORT_WAIT = 120.0
"""Seconds that a server may ask to wait before ``--no-wait`` ends the run."""


WITH_RESPONSE, BLIND = RELEVANCE = ("with-response", "blind")
"""Ways to judge relevance."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Contents of a label request."""

    PANEL: ClassVar = JUDGE

    profile: Annotated[str, Option("What the call asks for: trace, claims, reference or auto.")] = (
        "trace"
    )
    prompt: Annotated[
        FileLike,
        Option("Prompt version, name such as trace/v1, or file of your own.", takes=(Path,)),
    ] = "v1"
    instructions: Annotated[
        FileLike | None,
        Option(
            "Domain rules for the judge, added to the prompt: a text, or a file of it.",
            takes=(Path,),
        ),
    ] = None
    relevance: Annotated[
        str,
        Option(
            "with-response: in the same call; blind: once for each question and documents, in a "
            "call that shows no response."
        ),
    ] = WITH_RESPONSE
    trial: Annotated[
        int, Option("Trial number; a new number asks the judge again.", min=0, panel=REPEATS)
    ] = 0
    max_input_tokens: Annotated[
        int | None,
        Option(
            "Maximum prompt tokens; longer rows fail unasked. By default the model's.",
            min=1,
            panel=LIMITS,
        ),
    ] = None


Concurrency = Annotated[int, Option("Maximum requests in flight.", min=1)]


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """The store that answers first."""

    store: Annotated[StoreLike, STORE] = DEFAULT_STORE
    retry_failed: Annotated[
        bool, Option("Ask again about rows whose failure is stored, such as refusals.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class RunOptions(StoreOptions):
    """Pace, budget and patience of a run."""

    PANEL: ClassVar = LIMITS
    DOING: ClassVar = "labeling"
    """Name of the run in messages about its progress."""

    same_host: Annotated[
        bool, Option("Stop if a stored label comes from another host than the one asked.")
    ] = False
    concurrency: Concurrency = 16
    requests_per_minute: Annotated[
        float | None, Option("Maximum requests per minute; by default the server's limit.")
    ] = None
    tokens_per_minute: Annotated[
        float | None, Option("Maximum tokens per minute, prompts and answers together.")
    ] = None
    budget: Annotated[
        Dollars | None, Option("Maximum cost of the run in US dollars.", takes=(object,))
    ] = None
    longest_wait: Annotated[
        float | None,
        Option(
            "Stop (exit 75) if the server asks for a wait of over 2 minutes.",
            "--no-wait",
            flag=SHORT_WAIT,
            python="Seconds that the server may ask to wait; RunPaused above it. None waits.",
        ),
    ] = None
    max_outage: Annotated[
        float, Option("Seconds that a server which answered before may stay away.", cli=False)
    ] = 1800.0
    progress: Annotated[
        bool, Option("Show progress on a terminal and in a notebook.", cli=False)
    ] = True
    on_event: Annotated[
        "OnEvent | Sequence[OnEvent] | None",
        Option("Called with each event of the run; one function or several.", cli=False),
    ] = None

    @property
    def restrictions(self) -> list[str]:
        """Names of the given options that hold back requests to a hosted model."""
        return [name for name in given(self, RunOptions) if name in PACE]

    def listeners(self) -> "list[OnEvent]":
        """Return the functions that are called with each event.

        Raises:
            UsageError: one is not a function.
        """
        if self.on_event is None:
            return []
        several = [self.on_event] if callable(self.on_event) else self.on_event
        if not isinstance(several, Sequence) or not all(map(callable, several)):
            raise UsageError(
                f"on_event must be a function or a list of functions, got {self.on_event!r:.40}"
            )
        return [*several]

    def limits(self) -> "Limits":
        """Return the limits of the run.

        Raises:
            UsageError: one is not a number above 0.
        """
        from labeler.judges.limits import Limits  # noqa: PLC0415 - loads asyncio

        return Limits(
            self.requests_per_minute,
            self.tokens_per_minute,
            dollars("--budget", self.budget),
            longest_wait=self.longest_wait,
            max_outage=self.max_outage,
        )


def dollars(option: str, amount: Dollars | None) -> Decimal | None:
    """Return an amount of money.

    Raises:
        UsageError: it is not a finite number; a limit checks its own range.
    """
    if amount is None:
        return None
    if isinstance(amount, int):
        number_in(option, amount)  # Python may refuse to print a number of thousands of digits
    with suppress(InvalidOperation):
        number = Decimal(str(amount))
        if number.is_finite() and number < _MOST_DOLLARS:
            return number
    raise UsageError(f"{option} is in US dollars, such as 12.50; got {amount!r:.40}")


_MOST_DOLLARS = Decimal("1e12")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(ExampleOptions, JudgeOptions, TaskOptions, RunOptions):
    """Options of ``label``."""

    PANEL: ClassVar = REPEATS

    repeat: Annotated[int, Option("Judgments per row; the label is their majority.", min=1)] = 1
    judges: Annotated[
        SeveralJudges | None,
        Option(
            "Judges that vote, comma-separated, such as embedded,openai:MODEL.",
            takes=(object,),
            python="Judges that vote: a list of names and judges, or names with commas.",
        ),
    ] = None
    votes: Annotated[
        "Votes | None", Option("Counts the votes, to measure their agreement.", cli=False)
    ] = None
    output: Annotated[
        str | Path | None,
        Option("Label file to write; by default labels stay in memory.", cli=False, takes=(Path,)),
    ] = None

    @property
    def are_voting(self) -> bool:
        """True if each row is judged several times, and the label is the majority."""
        return self.judges is not None or self.repeat > 1


@dataclass(frozen=True, kw_only=True)
class AskOptions(JudgeOptions, RunOptions):
    """Judge, store, pace and budget of questions about stored texts."""


@dataclass(frozen=True, kw_only=True)
class ExamOptions(ExampleOptions, JudgeOptions, TaskOptions, RunOptions):
    """Options of ``exam``."""

    PANEL: ClassVar = REPEATS

    n: Annotated[int, Option("Copies of each kind, made of as many rows.", "-n", min=1)] = 200
    against: Annotated[
        JudgeLike | None, Option("Another judge, compared on the same copies.", takes=(object,))
    ] = None


@dataclass(frozen=True, kw_only=True)
class RequestOptions(ExampleOptions, JudgeOptions, TaskOptions, StoreOptions):
    """Options of requests for labels that no run sends."""


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(RequestOptions):
    """Options of ``estimate``."""

    PANEL: ClassVar = LIMITS

    concurrency: Concurrency = RunOptions.concurrency
    latency: Annotated[
        float | None, Option("Seconds for an answer; by default the mean of stored labels.", min=0)
    ] = None
