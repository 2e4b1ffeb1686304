"""Certificates: a metric's value as people would judge it, with an interval that holds."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict

from labeler.calculators.intervals import LEVEL, check_level
from labeler.calculators.registry import METRICS, plain_name
from labeler.catalog import unknown
from labeler.comparing.verdicts import decimal_places
from labeler.data.label_files import replaced
from labeler.errors import UnknownName, UsageError, count_of, path_in
from labeler.evidence.units import CERTIFIABLE
from labeler.sentences.display import Column, Display, Displayed, Grid, in_percent, percent, plural
from labeler.version import __version__

VERSION = "certificate/v1"
_METHOD = "betting, weighted sampling without replacement"
_WIDEST = 48
"""Characters of a fact in the table; longer ones are lines below it."""
_NARROW, _WIDE = 0.01, 0.2
"""Least and greatest distance that a design aims at for ``at_least``."""


@dataclass(frozen=True)
class Goal:
    """What is to be certified; :meth:`labeler.Labels.certify` describes the fields.

    Raises:
        UnknownName: the metric cannot be certified.
        UsageError: not exactly one of ``within`` and ``at_least`` is given, or one is out of range.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    metric: str
    within: float | None = None
    at_least: float | None = None
    level: float = LEVEL
    seed: int = 0
    population: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str) or self.metric not in CERTIFIABLE:
            raise UnknownName(unknown("metric to certify", f"{self.metric}", [*CERTIFIABLE]))
        check_level(self.level)
        count_of("seed", self.seed)
        given = [one for one in (self.within, self.at_least) if one is not None]
        if len(given) != 1:
            raise UsageError(
                "give one goal: the width of the interval (--within=.02) or a value "
                "to decide on (--at-least=.9)"
            )
        if not isinstance(given[0], int | float) or not 0 < given[0] < 1:
            raise UsageError(f"within and at_least lie between 0 and 1, got {given[0]!r:.40}")
        if self.at_least is not None and self.metric == "hallucination_rate":
            raise UsageError(
                "hallucination_rate is better the lower it is: certify adherence_fraction, which "
                f"is 1 minus it, such as at_least={1 - self.at_least:g}"
            )

    def __str__(self) -> str:
        return f"at least {self.at_least}" if self.within is None else f"within {self.within}"

    def met(self, low: float, high: float) -> bool:
        """Return True if an interval answers the question."""
        if self.at_least is None:
            return (high - low) / 2 <= (self.within or 0.0)
        return low >= self.at_least or high < self.at_least

    def margin(self, value: float) -> float:
        """Return the distance from a value that the design aims at."""
        if self.at_least is None:
            return self.within or 0.0
        return min(max(abs(value - self.at_least), _NARROW), _WIDE)


@dataclass(frozen=True, repr=False)
class Certificate(Displayed):
    """A metric of these records as it would be if the same people read every sentence.

    Attributes:
        goal: the metric and the question that is answered, with level and seed.
        value: the estimate.
        interval: both ends; they hold with the goal's level, at every look.
        judged: the judge's own value; ``None`` if it is undefined.
        checked: number of sentences that were read.
        looks: number of units read at each look; a unit of adherence and completeness is a record.
        sentences: number of sentences of the records.
        records: number of certified records.
        failed: rows without a label, about which nothing is certified.
        undefined: labels without the metric, about which nothing is certified either: those without
            a sentence to read, and for completeness those in which people found nothing relevant.
        who: names of the people who read.
        second_read: number of sentences that were read a second time.
        second_agreed: number of these with the same answer.
        signature: the judge configuration.
        digests: SHA-256 of labels, prompt, plan and answers.
        date: day of the certificate, in UTC.
    """

    issued: ClassVar[bool] = True
    """True for a certificate, False for a plan."""
    REMARK: ClassVar[str] = (
        "It certifies the answers that these people would give to every sentence: where they slip, "
        "it is the value with their slips."
    )

    goal: Goal
    value: float
    interval: tuple[float, float]
    judged: float | None
    checked: int
    looks: tuple[int, ...]
    sentences: int
    records: int
    failed: int
    undefined: int
    who: tuple[str, ...]
    second_read: int
    second_agreed: int
    signature: str
    digests: dict[str, str | None]
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def failed_goal(self) -> bool:
        """True if the value is below ``at_least``, or too close to it."""
        return self.goal.at_least is not None and self.interval[0] < self.goal.at_least

    @property
    def conclusion(self) -> str:
        """The certificate in words."""
        goal, (low, high) = self.goal, self.interval
        of = "this record" if self.records == 1 else f"these {self.records:,} records"
        if goal.population:
            of = "the stream of these records"
        verdict, limit = "", goal.at_least or 0.0
        if goal.at_least is not None:
            side = "at least" if low >= limit else "too close to tell from"
            verdict = f"{'below' if high < limit else side} {limit}, "
        shown = (self.value, low, high)
        digits = max(decimal_places(one, lambda end: end >= limit, 3) for one in shown) - 2
        between = f"{in_percent(low, digits)} to {percent(high, digits)}, level {goal.level:.6g}"
        if low == high:  # nothing is left to estimate
            between = "exact"
        name = plain_name(METRICS[goal.metric]).capitalize()
        read = f"{plural(self.checked, 'sentence')} read"
        if differ := self.second_read - self.second_agreed:
            read += f", {differ:,} of {self.second_read:,} second answers differ"
        return f"{name}: {verdict}{percent(self.value, digits)} ({between}) for {of}; {read}."

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        own = asdict(self)
        facts = {"version": VERSION, "labeler_version": __version__, **own.pop("goal"), **own}
        more = {"conclusion": self.conclusion, "failed_goal": self.failed_goal}
        return facts | more | {"design": _METHOD, "drawn": sum(self.looks)}

    def save(self, path: str | Path) -> Path:
        """Write the certificate as JSON, or as an offline page if the name ends in ``.html``.

        Returns:
            The path; the file appears when it is complete.

        Raises:
            UsageError: the name ends otherwise, or the file cannot be written.
        """
        path = path_in("path", path)
        if path.suffix == ".json":
            text = json.dumps(self.as_json(), indent=2, ensure_ascii=True) + "\n"
        elif path.suffix == ".html":
            from labeler.report.page import render_page  # noqa: PLC0415 - jinja

            title = f"Certificate: {self.goal.metric}"
            values = {"title": title, "found": self, "version": __version__}
            styles = ("base.css", "report.css", "certificate.css")
            text = render_page("certificate.html.j2", values, styles=styles, scripts=()).text
        else:
            raise UsageError(f"{path}: a certificate is a .json file or a .html page")
        with replaced(path) as file:
            file.write(text)
        return path

    def facts(self) -> list[tuple[str, str]]:
        """Return the certificate as lines of a name and a text, the most important first."""
        ends = "{:.4f} to {:.4f}".format(*self.interval)
        failed = f"; {plural(self.failed, 'row')} without a label left out" if self.failed else ""
        lack = f"; {plural(self.undefined, 'label')} without the metric left out"
        again = f"{self.second_agreed} of {self.second_read} answers agree"
        return [
            ("Value", f"{self.value:.4f}"),
            ("Interval", f"{ends}, level {self.goal.level:g}"),
            ("Judge's own value", "-" if self.judged is None else f"{self.judged:.4f}"),
            ("Sentences read", f"{self.checked:,} of {self.sentences:,}"),
            ("Records", f"{self.records:,}{failed}{lack if self.undefined else ''}"),
            ("Read at each look", ", ".join(map(str, self.looks))),
            ("Design", f"{_METHOD}; seed {self.goal.seed}"),
            ("Read by", ", ".join(self.who) or "not named"),
            ("Second reading", again if self.second_read else "none"),
            ("Judge", self.signature),
            ("Date", self.date),
            *((f"Digest of {name}", value or "none") for name, value in self.digests.items()),
        ]

    def _display(self) -> Display:
        columns = Column("certificate", words=True), Column("", words=True)
        rows = [one for one in self.facts() if len(one[1]) <= _WIDEST]
        notes = [f"{name}: {text}" for name, text in self.facts() if len(text) > _WIDEST]
        return Display(self.conclusion, Grid(columns, rows), [self.REMARK, *notes])
