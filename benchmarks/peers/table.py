"""The results of the comparison as one table, next to labeler's goals."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from harness import table
from peers.results import SHARED, Installed, Plan, Reuse, Run, Spent, Tool


class Goal(NamedTuple):
    """What labeler is held to."""

    text: str
    holds: Callable[[float], bool]


def at_most(most: float, unit: str = "") -> Goal:
    """A figure with an upper bound."""
    return Goal(f"≤ {most:,g}{unit}", lambda value: value <= most)


class Figure(NamedTuple):
    """One line of the table: how a figure is taken and shown."""

    name: str
    value: Callable[[Tool], float | str | None]
    """``None`` where a tool has no such figure."""
    form: str = ",.4g"
    goal: Goal | None = None
    clock: bool = False
    """True if it depends on how busy the machine is."""


def median(tool: Tool, value: Callable[[Run], float]) -> float:
    """Of the rounds of a tool."""
    return statistics.median(map(value, tool.rounds))


def _each(value: Callable[[Spent], float]) -> Callable[[Tool], float]:
    """A count for one record."""
    return lambda tool: median(tool, lambda run: value(run.spent) / run.records)


def _reused(value: Callable[[Reuse], float | str | None]) -> Callable[[Tool], float | str | None]:
    return lambda tool: None if tool.reuse is None else value(tool.reuse)


def _again(calls: Callable[[Reuse], int | None]) -> Callable[[Tool], float | str | None]:
    """Calls for one record of a run that had something to go by."""

    def value(reuse: Reuse) -> float | None:
        made = calls(reuse)
        return None if made is None else made / reuse.records

    return _reused(value)


def _installed(value: Callable[[Installed], float]) -> Callable[[Tool], float | None]:
    return lambda tool: None if tool.installed is None else value(tool.installed)


def spread(tool: Tool) -> str:
    """The shortest and the longest of the rounds, in seconds."""
    seconds = [run.seconds for run in tool.rounds]
    return f"{min(seconds):.2f} to {max(seconds):.2f}"


NO_CALL = Goal("0", lambda value: value == 0)
EACH_CALL = Goal("every record", lambda value: value >= 1)


def figures(plan: Plan) -> list[Figure]:
    """The lines of the table."""
    return [*_asked(), *_times(plan), *_kept(), *_taken()]


def _asked() -> Iterator[Figure]:
    yield Figure("metrics asked for (below: which)", lambda tool: len(tool.metrics))
    yield Figure("LLM calls a record", _each(lambda s: s.calls), goal=at_most(1))
    yield Figure(
        "… for the five metrics that ragas, deepeval and labeler have",
        _again(lambda r: r.first if r.metrics == len(SHARED) else None),
    )
    yield Figure("embedding calls a record", _each(lambda s: s.embeddings))
    yield Figure(
        "prompt tokens a record, schemas included",
        _each(lambda s: s.prompt),
        ",.0f",
        at_most(2_500),
    )
    yield Figure("… of these, schemas next to the messages", _each(lambda s: s.schema), ",.0f")
    yield Figure("… of these, not in a prefix sent before", _each(_fresh), ",.0f")
    yield Figure("completion tokens a record", _each(lambda s: s.completion), ",.0f")
    yield Figure(
        "times the context is sent", lambda tool: median(tool, lambda run: run.spent.contexts)
    )


def _kept() -> Iterator[Figure]:
    yield Figure("calls a record: the same run again", _again(lambda r: r.rerun), goal=NO_CALL)
    yield Figure("… with one metric more", _again(lambda r: r.added), goal=NO_CALL)
    yield Figure("… with another threshold", _again(lambda r: r.threshold), goal=NO_CALL)
    yield Figure("… with another judge model", _again(lambda r: r.other_model), goal=EACH_CALL)
    yield Figure("the old model's answers served for the new one's", _reused(lambda r: r.served))


def _taken() -> Iterator[Figure]:
    yield Figure("installed, MB", _installed(lambda i: i.megabytes), ",.0f")
    yield Figure("packages", _installed(lambda i: i.packages), ",.0f")
    yield Figure("import, s", _installed(lambda i: i.import_seconds), ".2f", clock=True)


def _fresh(spent: Spent) -> float:
    return spent.prompt - spent.cached


def _times(plan: Plan) -> Iterator[Figure]:
    least = ideal(plan.records, plan.concurrency, plan.latency)
    yield Figure(
        f"wall for {plan.records} records, s",
        lambda tool: median(tool, lambda run: run.seconds),
        goal=None if plan.small else at_most(1.2),
        clock=True,
    )
    yield Figure("… shortest and longest round", spread, clock=True)
    yield Figure(
        f"… beyond the {least:g} s that one call a record waits",
        lambda tool: median(tool, lambda run: run.seconds) - least,
        clock=True,
    )
    yield Figure(
        "CPU s per 1,000 LLM calls",
        lambda tool: tool.loaded.cpu / max(1, tool.loaded.spent.calls) * 1_000,
        goal=None if plan.small else at_most(6),
        clock=True,
    )
    yield Figure(
        "CPU ms a record",
        lambda tool: tool.loaded.cpu / tool.loaded.records * 1_000,
        clock=True,
    )


def ideal(records: int, concurrency: int, latency: float) -> float:
    """Seconds that one call a record waits, in as many turns as there must be."""
    return -(-records // concurrency) * latency


# -- the table ------------------------------------------------------------------------------------


def cell(figure: Figure, tool: Tool) -> str:
    """What a figure says of a tool."""
    value = figure.value(tool)
    if value is None:
        return "n/a"
    return value if isinstance(value, str) else f"{value:{figure.form}}"


def verdict(figure: Figure, ours: Tool) -> bool | None:
    """True if labeler meets the goal; ``None`` where there is none."""
    value = figure.value(ours)
    return (
        None
        if figure.goal is None or not isinstance(value, float | int)
        else (figure.goal.holds(value))
    )


def verdicts(tools: Sequence[Tool], listed: Iterable[Figure]) -> list[bool | None]:
    """True if labeler, the first of the tools, meets each goal."""
    return [verdict(figure, tools[0]) for figure in listed]


def rows_of(tools: Sequence[Tool], listed: Iterable[Figure]) -> Iterator[str]:
    """The table, in Markdown, then which metrics each tool was asked for."""
    ours, *others = tools
    lines = []
    for figure in listed:
        met = {True: "yes", False: "**no**", None: ""}[verdict(figure, ours)]
        goal = figure.goal.text if figure.goal else ""
        name = figure.name + (" ⏱" if figure.clock else "")
        theirs = [cell(figure, tool) for tool in others]
        lines.append([name, cell(figure, ours), goal, met, *theirs])
    yield from table(["", ours.name, "goal", "met", *(tool.name for tool in others)], lines)
    yield ""
    for tool in tools:
        yield f"{tool.name}: {', '.join(tool.metrics) or 'none'}{_doubts(tool)}  "


def _doubts(tool: Tool) -> str:
    """Reasons to doubt a tool's figures."""
    missing = sum(run.missing for run in tool.rounds)
    ended = {run.ended_by for run in tool.rounds if run.ended_by}
    said = [f"{missing} values are missing"] if missing else []
    said += [f"ended by {name}" for name in sorted(ended)]
    return f" ({'; '.join(said)})" if said else ""
