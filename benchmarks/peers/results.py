"""The tools of the comparison (``tools.toml``), its plan, and its results for each tool."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SHARED = (
    "faithfulness",
    "answer-relevancy",
    "context-precision",
    "context-recall",
    "context-relevancy",
)
"""The metrics that ragas, deepeval and labeler have."""


@dataclass(frozen=True)
class Subject:
    """A tool in one of its forms, and how it is asked."""

    name: str
    peer: str
    """Whose environment and script it is."""
    form: str
    metrics: Sequence[str]
    """All that are asked for."""
    imports: str = ""
    """What a run imports, as Python; empty if its environment is listed with another form."""
    calls: int = 20
    """A record, about."""
    threshold: bool = False
    """True if what it finds depends on a threshold."""
    reuses: bool = True
    """True if it keeps anything."""

    @property
    def own_column(self) -> bool:
        """True if its environment is listed; of two forms of one tool, only the first's."""
        return bool(self.imports)

    @property
    def fewer(self) -> Sequence[str]:
        """The metrics of a first run, to which another is added."""
        shared = [name for name in self.metrics if name in SHARED]
        return shared if len(shared) < len(self.metrics) else shared[:-1]


TOOLS = [
    Subject(**one)
    for one in tomllib.loads(Path(__file__).with_name("tools.toml").read_text("utf-8"))["tools"]
]


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    records: int = 50
    concurrency: int = 16
    latency: float = 0.2
    """Seconds before each answer."""
    rounds: int = 3
    calls: int = 1_000
    """About as many as the run has that CPU time is taken from."""
    reused: int = 10
    """Records of the runs that keep something."""
    timeout: float = 30.0
    """Seconds for one request."""
    small: bool = False
    """True if times say too little to be held to a goal."""

    @classmethod
    def quick(cls) -> Plan:
        """For a look at whether everything runs; its figures say little."""
        return cls(records=4, concurrency=4, latency=0.01, rounds=1, calls=8, reused=2, small=True)


class Spent(NamedTuple):
    """What the server was sent in one run, all records together."""

    calls: int
    """To the model."""
    embeddings: int
    """Requests for embeddings."""
    prompt: int
    """Tokens, those of schemas included."""
    schema: int
    """Tokens of schemas that are sent next to the messages."""
    cached: int
    """Tokens of prompts that a provider's prompt cache could have read."""
    completion: int
    """Tokens."""
    contexts: float
    """How often the context of a record was sent, on average."""
    models: Mapping[str, int]
    """Calls by the model that was asked."""


class Run(NamedTuple):
    """One run of a tool."""

    records: int
    seconds: float
    """On the clock, imports aside."""
    cpu: float
    """Seconds of the tool's own process, imports aside."""
    spent: Spent
    missing: int = 0
    """Values that are no numbers, where every metric should have one."""
    ended_by: str | None = None
    """An error that ended it."""


class Reuse(NamedTuple):
    """Runs one after the other, with what the tool keeps; each is recognized by its calls."""

    records: int
    metrics: int
    """Of the first run."""
    first: int
    """Calls with these."""
    rerun: int
    """The same again."""
    added: int
    """With more metrics."""
    threshold: int | None
    """With another threshold; ``None`` where its metrics have none."""
    other_model: int
    """All metrics by another judge model."""
    whole: float
    """Calls that all metrics take without a cache."""

    @property
    def served(self) -> str:
        """True if the old model's answers were given for the new one's."""
        if not self.other_model:
            return "yes"
        return "no" if self.other_model >= self.whole else "in part"


class Installed(NamedTuple):
    """What a tool takes before it has done anything."""

    megabytes: float
    """In site-packages, without pip and without byte code."""
    packages: int
    """The tool itself among them."""
    import_seconds: float
    """Of what a run needs, median."""


@dataclass(frozen=True)
class Tool:
    """All that was measured of one tool."""

    name: str
    metrics: Sequence[str]
    """That it was asked for, by the names in this comparison."""
    rounds: Sequence[Run]
    """The same few records, again and again."""
    loaded: Run
    """As many records as make about a thousand calls."""
    reuse: Reuse | None
    """``None`` where there is nothing to reuse."""
    installed: Installed | None
    """``None`` where it is part of another."""
