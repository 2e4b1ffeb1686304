"""Labels as one object: their table, metrics, audit, comparisons, gates, pages and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from labeler.calculators.frame import UNKNOWN, Framed, Given
from labeler.calculators.outcomes import as_outcomes, metrics, summary
from labeler.catalog import Positions, position_of, positions_of
from labeler.data.label_files import write_outcomes
from labeler.errors import UsageError
from labeler.labels.metering import LabelFacts, RunCost
from labeler.labels.record import AnyOutcome, LabelFailure, Outcome
from labeler.sentences.display import Display, Displayed

if TYPE_CHECKING:
    from labeler.audit import Audit, Check, SecondJudge
    from labeler.calculators import Intervals
    from labeler.calculators.metrics_row import MetricsTable
    from labeler.calculators.summary_table import SummaryTable
    from labeler.calculators.worst import WorstRecords
    from labeler.comparing.comparison import Comparison
    from labeler.comparing.diff import LabelDiff
    from labeler.comparing.gates import On
    from labeler.comparing.verdicts import GateResults
    from labeler.data.label_view import Glance
    from labeler.evidence.anchors import Anchors
    from labeler.evidence.doubt import Doubt
    from labeler.evidence.plan import Plan


class Labels(Framed, Displayed, Sequence[Outcome]):
    """The outcomes of labeling rows, in their order: label records and failures.

    A position or an id gives one outcome, a slice further labels. ``labels == [...]`` compares
    outcomes. Labels never change; their table of metrics is computed once.

    Args:
        outcomes: the outcomes; a sequence is kept as it is, such as a view of a file.
        name: name of the labels in tables and pages, such as that of their file.
        path: file or store that holds exactly these outcomes, if there is one.
        cost: the cost of the run that made them; by default that of all their answers.
        given: what is known of the rows that were labeled.

    Example:
        >>> labels[0].kind, labels["tide-gate-height"].id, len(labels[:3])
        ('label', 'tide-gate-height', 3)
    """

    __hash__ = None  # type: ignore[assignment] # equal to lists, which have none either

    def __init__(
        self,
        outcomes: Iterable[Outcome],
        *,
        name: str = "labels",
        path: str | Path | None = None,
        cost: RunCost | None = None,
        given: Given = UNKNOWN,
    ) -> None:
        self._outcomes = outcomes if isinstance(outcomes, Sequence) else list(outcomes)
        self.name = name
        self._path, self._cost, self._given = path, cost, given

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._outcomes)

    @overload
    def __getitem__(self, key: int | str) -> Outcome: ...
    @overload
    def __getitem__(self, key: slice) -> Labels: ...
    def __getitem__(self, key: int | str | slice) -> Outcome | Labels:
        """Return the outcome at a position or with an id, or the labels of a slice.

        Raises:
            IndexError: the position is out of range.
            UnknownName: no row has the id; the message has near ones.
            UsageError: several rows have the id; the message has their positions.
        """
        if isinstance(key, slice):
            return Labels(self._outcomes[key], name=self.name, given=self._given.part(key))
        place = position_of("record", key, self._positions) if isinstance(key, str) else key
        return self._outcomes[place]

    @cached_property
    def _positions(self) -> Positions:
        return positions_of(outcome.id for outcome in self._glances())

    def _glances(self) -> Iterable[Outcome | Glance]:
        """Return what counts need of each outcome."""
        glances = getattr(self._outcomes, "glances", None)
        return self if glances is None else glances()

    def __eq__(self, other: object) -> bool:
        """Return True for labels or a list with equal outcomes in the same order."""
        if not isinstance(other, Labels | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __add__(self, other: Iterable[Outcome]) -> Labels:
        """Return the outcomes of both, in memory."""
        return Labels([*self, *other], name=self.name)

    def __radd__(self, other: Iterable[Outcome]) -> Labels:
        return Labels([*other, *self], name=self.name)

    @cached_property
    def failures(self) -> Labels:
        """The rows without a label, each with its reason.

        Example:
            >>> len(labels.failures)
            0
        """
        failed = [outcome for outcome in self if isinstance(outcome, LabelFailure)]
        return Labels(failed, name=f"failures of {self.name}")

    @cached_property
    def cost(self) -> RunCost:
        """The cost of the run; of loaded labels the tokens of all their answers.

        Example:
            >>> print(labels.cost)
            no token was paid for
        """
        return self._cost or self._facts.cost

    def at(
        self,
        *,
        support: float | None = None,
        relevance: float | None = None,
        utilization: float | None = None,
    ) -> Labels:
        """Return the labels with the verdicts of other thresholds; no judge is asked.

        A probability at or above its threshold makes a positive verdict. Only verdicts whose
        threshold is given change. A sentence that becomes unsupported loses its keys; one that
        becomes supported names ``supported_without_sentence``. Signatures name moved thresholds.

        Args:
            support: least probability of a supported response sentence.
            relevance: least probability of a relevant document sentence.
            utilization: least probability of a utilized document sentence.

        Returns:
            New labels; failures stay.

        Raises:
            UsageError: no threshold is given, one is outside 0 to 1, or a label has no
                probabilities, such as those of a judge that writes text.

        Example:
            >>> labels.at(support=0.95).check(adherence=0.6).passed
            False
        """
        from labeler.labels.thresholds import outcomes_at, read_thresholds

        given = {"support": support, "relevance": relevance, "utilization": utilization}
        moved = read_thresholds(given)
        named = ", ".join(f"{name} {value:g}" for name, value in moved.items())
        return Labels(
            outcomes_at(self, moved),
            name=f"{self.name} at {named}",
            cost=self._cost,
            given=self._given,
        )

    def metrics(self, ids: str | Iterable[str] | None = None) -> MetricsTable:
        """Compute metrics of each row, as :func:`labeler.metrics` does.

        Args:
            ids: metric ids; by default each quantity once that the labels have the fields for.

        Returns:
            One row a label or failure; repeated ones count once.

        Raises:
            UnknownName: there is no such metric.

        Example:
            >>> labels.metrics()["tide-gate-height"]["adherence"].value
            1.0
        """
        return metrics(self, ids)

    def summary(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        by: str | None = None,
        intervals: Intervals | bool | None = True,
    ) -> SummaryTable:
        """Summarize metrics over all rows, or over each group of a metadata column.

        Args:
            ids: as for :meth:`metrics`.
            by: name of a metadata column.
            intervals: settings of the intervals of the means, by default of 95 %; ``False`` or
                ``None`` for none.

        Returns:
            One row for each judge configuration, group and metric.

        Raises:
            UnknownName: there is no such metric.
            UsageError: no row has the column.

        Example:
            >>> round(labels.summary()["adherence"].mean, 4)
            0.6429
            >>> labels.summary(by="domain")["adherence", "clinic"].defined
            4
        """
        from labeler.calculators import Intervals

        next(iter(self._outcomes), None)  # raises if the file has changed
        drawn = (Intervals() if intervals is True else intervals) or None
        return summary(self._path or self, ids, by=by, intervals=drawn)

    def worst(self, most: int = 5) -> WorstRecords:
        """Return the records with the least support, with their unsupported sentences.

        Args:
            most: number of records.

        Returns:
            The records, the worst first; printed, each sentence with the nearest evidence and the
            judge's reason.

        Example:
            >>> labels.worst(1)[0].id
            'tide-gate-wrong-year'
        """
        from labeler.calculators.worst import worst_records

        return worst_records(self, most)

    def audit(
        self,
        checks: str | Iterable[str | Check] | None = None,
        *,
        by: str | None = None,
        second_opinion: bool = False,
    ) -> Audit:
        """Audit the labels: contradictions of the judge with itself and with the texts.

        Args:
            checks: ids or checks; by default all.
            by: name of a metadata column to group by.
            second_opinion: whether to compare the labels with the embedded judge's, without a
                request.

        Returns:
            Rates by check, and the findings of each record.

        Raises:
            UnknownName: a check is not registered.
            UsageError: no record has the column.

        Example:
            >>> len(labels.audit().records)
            14
        """
        from labeler.audit import audit_labels

        judge: SecondJudge | None = None
        if second_opinion:
            from labeler.judges.embedded import opinion

            judge = opinion.second_opinion

        return audit_labels(self, checks=checks, by=by, second_opinion=judge)

    def compare(
        self,
        other: str | Path | Iterable[AnyOutcome],
        metrics: str | Iterable[str] | None = None,
        **options: Any,  # noqa: ANN401 - checked by labeler.compare
    ) -> Comparison:
        """Compare with other labels of the same rows, metric by metric: differences are other's.

        Args:
            other: labels, a label file or a store.
            metrics: metric ids, as for :meth:`metrics`.
            options: those of :func:`labeler.compare`, such as ``by``.

        Returns:
            A row for each group and metric: means, difference, interval, p value and verdict.

        Raises:
            UsageError: as for :func:`labeler.compare`.

        Example:
            >>> labels.compare(labels, "adherence").rows[0].verdict
            'no difference'
        """
        from labeler.comparing.compare import compare

        options = {"names": self._names(other)} | options
        return compare(self, as_outcomes(other), metrics, **options)

    def anchors(self, n: int = 80, *, seed: int = 0) -> Anchors:
        """Choose records to ask the same judge about again, to see whether it has changed.

        Args:
            n: number of records, 2 or more; fewer if there are not so many.
            seed: another seed chooses other records.

        Returns:
            The records, whose ``check(judge=…).changed`` tells; ``save`` keeps them in a file.

        Raises:
            UsageError: there are fewer than 2 complete labels.

        Example:
            >>> labels.anchors(n=10).check(judge="embedded").changed
            False
        """
        from labeler.evidence.anchors import choose_anchors

        return choose_anchors(self, n, seed=seed)

    def diff(
        self,
        other: str | Path | Iterable[AnyOutcome],
        metrics: str | Iterable[str] | None = None,
        **options: Any,  # noqa: ANN401 - checked by labeler.comparing.diff_labels
    ) -> LabelDiff:
        """Show the decisions on which other labels differ, and the changes of metrics.

        Args:
            other: labels, a label file or a store.
            metrics: metric ids, as for :meth:`metrics`.
            options: those of :func:`labeler.comparing.diff_labels`, such as ``by`` and ``top``.

        Returns:
            Flipped decisions by field, and each metric's change over them.

        Raises:
            UsageError: as for :func:`labeler.comparing.diff_labels`.

        Example:
            >>> labels.diff(labels).flipped
            0
        """
        from labeler.comparing.diff import diff_labels

        options = {"names": self._names(other)} | options
        return diff_labels(self, as_outcomes(other), metrics, **options)

    def _names(self, other: str | Path | Iterable[AnyOutcome]) -> tuple[str, str]:
        if isinstance(other, str | Path):
            return self.name, str(other)
        named = other.name if isinstance(other, Labels) else "other"
        return self.name, named if named != self.name else f"other {named}"

    def check(
        self,
        thresholds: Mapping[str, float] | None = None,
        /,
        *,
        on: On = "point",
        by: str | None = None,
        intervals: Intervals | None = None,
        max_failed: float = 0.05,
        max_undefined: float = 0.05,
        **metrics: float,
    ) -> GateResults:
        """Check gates on the means of metrics; a missed gate raises nothing.

        A mean must be at least its threshold, or at most where lower is better. A gate is also
        missed where too many rows failed or are undefined, as for ``labeler check``.

        Args:
            thresholds: thresholds by metric id, for ids that are no Python names.
            on: ``point`` checks the mean, ``interval`` the worse end of its interval.
            by: name of a metadata column, each of whose groups must pass.
            intervals: settings of the intervals.
            max_failed: largest allowed share of failed rows, from 0 to 1.
            max_undefined: largest allowed share of rows that are undefined because of the record.
            metrics: further thresholds by metric id.

        Returns:
            The verdicts; true if all gates are passed.

        Raises:
            UnknownName: there is no such metric.
            UsageError: no gate is given, a threshold has no metric, or an option is out of range.

        Example:
            >>> bool(labels.check(adherence=0.6)), bool(labels.check(adherence=0.8))
            (True, False)
        """
        from labeler.comparing.checking import GateSettings, check_gates
        from labeler.comparing.gates import Allowed, Demand

        if not isinstance(thresholds, Mapping | None):
            raise UsageError(
                f"a threshold needs a metric, such as check(adherence=0.8), got {thresholds!r:.40}"
            )
        every = {**(thresholds or {}), **metrics}
        demands = [Demand(name, float(value)) for name, value in every.items()]
        allowed = Allowed(max_failed, max_undefined)
        settings = GateSettings(on=on, by=by, intervals=intervals, allowed=allowed)
        return check_gates(self, demands, settings=settings).results

    def certify(
        self,
        metric: str,
        *,
        within: float | None = None,
        at_least: float | None = None,
        level: float = 0.95,
        seed: int = 0,
        population: bool = False,
        doubt: Doubt | None = None,
    ) -> Plan:
        """Plan which sentences people read, so that a metric gets an interval that holds.

        Args:
            metric: a metric of :data:`labeler.evidence.units.CERTIFIABLE`.
            within: half-width of the interval to reach.
            at_least: value to decide on, instead of a width.
            level: confidence level.
            seed: seed of the draws.
            population: True for the stream that the records are a sample of.
            doubt: forecasts answers better than bare verdicts, see :meth:`doubt`.

        Returns:
            The plan: its ``sentences``, and ``certificate(answers)``.

        Raises:
            UsageError: an option is out of range, or the labels are of several configurations.
            UnknownName: the metric cannot be certified.

        Example:
            >>> plan = labels.certify("adherence_fraction", within=0.1)
            >>> certificate = plan.certificate({(s.id, s.sentence): True for s in plan.sentences})
            >>> certificate.value
            1.0
        """
        from labeler.evidence.plan import Goal, make_plan

        goal = Goal(metric, within, at_least, level, seed, population)
        return make_plan(self, goal, doubt.by_sentence() if doubt else None)

    def doubt(
        self, corrections: str | Path | Mapping[tuple[str, str], bool] | None = None
    ) -> Doubt:
        """Estimate how likely each stored verdict on a response sentence is wrong.

        Args:
            corrections: a file of corrections or human labels, or people's verdicts by record id
                and sentence; works from 30, better from 200. Without any, the audit's order.

        Returns:
            The model, and ``verdicts`` with one ``doubt`` each.

        Raises:
            UsageError: the file cannot be read, or says nothing about these labels.

        Example:
            >>> labels.doubt({("tide-gate-height", "a"): True}).corrections
            1
        """
        from labeler.evidence.doubt import fit_doubt

        return fit_doubt(self, corrections)

    def report(self, path: str | Path, **options: Any) -> list[Path]:  # noqa: ANN401 - checked by write_report
        """Write the labels as an offline page: figures, findings, and every record.

        Args:
            path: the HTML file.
            options: those of :func:`labeler.report.write_report`, such as ``by`` and ``title``.

        Returns:
            The files.

        Raises:
            UsageError: as for :func:`labeler.report.write_report`.

        Example:
            >>> [file.name for file in labels.report(folder / "report.html")]
            ['report.html']
        """
        from labeler.report.writing import write_report

        return write_report(self, path, **({"name": self.name} | options))

    def save(self, path: str | Path) -> Path:
        """Write the labels to a file, which appears when complete.

        Args:
            path: JSON Lines, ``.jsonl`` or ``.jsonl.gz``, or ``.parquet``.

        Returns:
            The path, for :func:`labeler.load`.

        Raises:
            UsageError: the name stands for another format, or the file cannot be written.

        Example:
            >>> labeler.load(labels.save(folder / "labels.jsonl")) == labels
            True
        """
        for _ in write_outcomes(self, path):
            pass
        return Path(path)

    @cached_property
    def _facts(self) -> LabelFacts:
        return LabelFacts(self._glances())

    @cached_property
    def _table(self) -> SummaryTable:
        return self.summary()

    def _display(self) -> Display:
        from labeler.calculators.labels_table import labels_display

        return labels_display(self, self._facts, self._table, str(self.cost))
