"""Certificates: a metric's value as people would judge it, with an interval that holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from labeler.calculators.headline import plain_name
from labeler.calculators.registry import METRICS
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.evidence.units import digest_of
from labeler.sentences.display import (
    Column,
    Display,
    Displayed,
    Grid,
    in_percent,
    number,
    percent,
)
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.evidence.plan import Plan

VERSION = "certificate/v1"
_METHOD = "betting, weighted sampling without replacement"


@dataclass(frozen=True, repr=False)
class Certificate(Displayed):
    """A metric of these records as it would be if the same people read every sentence.

    Attributes:
        metric: the metric.
        goal: the question that is answered, such as ``within 0.02`` or ``at least 0.9``.
        failed_goal: True if the value is below that of ``at least``, or is too close to tell.
        value: the estimate.
        interval: both ends; they hold with probability ``level``, at every look.
        level: confidence level.
        conclusion: the certificate in words.
        judged: the judge's own value; ``None`` if it is undefined.
        checked: number of sentences that were read.
        drawn: number of units that were drawn; a unit of adherence and completeness is a record.
        sentences: number of sentences of the records.
        records: number of certified records.
        failed: rows without a label, about which nothing is certified.
        looks: number of units read at each look.
        design: how the units were drawn and the interval made.
        population: True if the stream is certified that the records are a sample of.
        records_interval: interval of the records alone.
        who: names of the people who read.
        second_read: number of sentences that were read a second time.
        second_agreed: number of these with the same answer.
        signature: the judge configuration.
        digests: SHA-256 of labels, prompt, plan and answers.
        seed: seed of the draws.
        date: day of the certificate, in UTC.
    """

    issued: ClassVar[bool] = True
    """True for a certificate, False for a plan."""
    REMARK: ClassVar[str] = (
        "It certifies the answers that these people would give to every sentence: where they slip, "
        "it is the value with their slips."
    )

    metric: str
    goal: str
    failed_goal: bool
    value: float
    interval: tuple[float, float]
    level: float
    conclusion: str
    judged: float | None
    checked: int
    drawn: int
    sentences: int
    records: int
    failed: int
    looks: tuple[int, ...]
    design: str
    population: bool
    records_interval: tuple[float, float]
    who: tuple[str, ...]
    second_read: int
    second_agreed: int
    signature: str
    digests: dict[str, str | None]
    seed: int
    date: str

    @classmethod
    def of(
        cls,
        plan: Plan,
        value: float,
        interval: tuple[float, float],
        records_interval: tuple[float, float],
    ) -> Self:
        """Return the certificate of a plan whose goal is met."""
        units, goal, answers = plan.units, plan.goal, plan.answers
        signature = units.readable[0].signature
        agreed = [answer == answers[item] for item, answer in plan.second.items()]
        read = [f"{name}\0{key}\0{answers[name, key]}" for name, key in sorted(answers)]
        design = [goal.metric, str(goal), str(goal.level), str(goal.seed), str(plan.looks)]
        return cls(
            metric=goal.metric,
            goal=str(goal),
            failed_goal=goal.at_least is not None and interval[0] < goal.at_least,
            value=value,
            interval=interval,
            level=goal.level,
            conclusion=_conclusion(plan, value, interval),
            judged=units.judged,
            checked=len(answers),
            drawn=sum(plan.looks),
            sentences=units.sentences,
            records=len(units.readable),
            failed=units.failed,
            looks=plan.looks,
            design=_METHOD,
            population=goal.population,
            records_interval=records_interval,
            who=plan.who,
            second_read=len(agreed),
            second_agreed=sum(agreed),
            signature=str(signature),
            digests={
                "labels": units.digest(),
                "prompt": None if signature.prompt is None else digest_of([str(signature.prompt)]),
                "plan": digest_of(design),
                "answers": digest_of(read),
            },
            seed=goal.seed,
            date=datetime.now(UTC).date().isoformat(),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {"version": VERSION, "labeler_version": __version__, **asdict(self)}

    def save(self, path: str | Path) -> Path:
        """Write the certificate as JSON, or as an offline page if the name ends in ``.html``.

        Args:
            path: the file, ``.json`` or ``.html``; it appears when it is complete.

        Returns:
            The path.

        Raises:
            UsageError: the name ends otherwise, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix not in {".json", ".html"}:
            raise UsageError(f"{path}: a certificate is a .json file or a .html page")
        text = json.dumps(self.as_json(), indent=2, ensure_ascii=True) + "\n"
        if path.suffix == ".html":
            from labeler.evidence.certificate_page import certificate_page  # noqa: PLC0415 - jinja

            text = certificate_page(self)
        with replaced(path) as file:
            file.write(text)
        return path

    def facts(self) -> Sequence[tuple[str, str]]:
        """Return the certificate as lines of a name and a text, the most important first."""
        low, high = self.interval
        again = f"{self.second_agreed} of {self.second_read} answers agree"
        facts = [
            ("Value", f"{self.value:.4f}"),
            ("Interval", f"{low:.4f} to {high:.4f}, level {self.level:g}"),
            ("Judge's own value", number(self.judged, ".4f")),
            ("Sentences read", f"{self.checked:,} of {self.sentences:,}"),
            ("Records", f"{self.records:,}; {self.failed:,} rows without a label are left out"),
            ("Looks", ", ".join(map(str, self.looks))),
            ("Design", f"{self.design}; seed {self.seed}"),
            ("Read by", ", ".join(self.who) or "not named"),
            ("Second reading", again if self.second_read else "none"),
            ("Judge", self.signature),
            ("Date", self.date),
        ]
        if self.population:
            ends = "{:.4f} to {:.4f}".format(*self.records_interval)
            facts.insert(2, ("Interval of these records alone", ends))
        digests = [(f"Digest of {name}", value or "none") for name, value in self.digests.items()]
        return [*facts, *digests]

    def _display(self) -> Display:
        rows = [*self.facts()]
        grid = Grid((Column("certificate", words=True), Column("", words=True)), rows)
        return Display(self.conclusion, grid, [self.REMARK])


def _conclusion(plan: Plan, value: float, interval: tuple[float, float]) -> str:
    goal, units = plan.goal, plan.units
    low, high = interval
    of = (
        "the stream of these records"
        if goal.population
        else f"these {len(units.readable):,} records"
    )
    name, level = plain_name(METRICS[goal.metric]), f"{goal.level:.6g}"
    between = f"{in_percent(low, 1)} to {percent(high, 1)}"
    span = f"{percent(value, 1)} ({between}, level {level}) for {of}"
    read = f"{len(plan.answers):,} sentences read"
    if goal.at_least is None:
        return f"{name}: {span}; {read}."
    if low >= goal.at_least:
        verdict = "at least"
    elif high < goal.at_least:
        verdict = "below"
    else:
        verdict = "too close to tell from"
    return f"{name}: {verdict} {goal.at_least:.6g}, {span}; {read}."
