"""Labels as one object: metrics, audit, comparisons, gates, pages; stored ones read when needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from typing_extensions import Unpack

from labeler.calculators.frame import UNKNOWN, Given
from labeler.calculators.outcomes import (
    as_outcomes,
    checked,
    measurable,
    source_state,
    stored_outcomes,
)
from labeler.catalog import check_options, keywords_of, named_keywords, with_named_keywords
from labeler.data.label_files import LabelView, is_table
from labeler.data.lines import STDIO, is_gzipped, is_remote
from labeler.errors import UsageError, path_in
from labeler.labels.answering import RunCost
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome, records_of, requested_kind
from labeler.outcomes_object import Outcomes
from labeler.sentences.display import VIEWS, View

if TYPE_CHECKING:
    from labeler.audit import Audit, Check, SecondJudge
    from labeler.calculators.tables import WorstRecords
    from labeler.comparing.comparison import Comparison
    from labeler.comparing.diff import LabelDiff
    from labeler.evidence.anchors import Anchors
    from labeler.evidence.doubt import Doubt
    from labeler.evidence.plan import Plan
    from labeler.labels.thresholds import Thresholds
    from labeler.report.page import Plot


@with_named_keywords
class Labels(Outcomes[Outcome]):
    """The outcomes of labeling rows, in their order: label records and failures.

    A position or an id gives one outcome, a slice further labels. ``labels == [...]`` compares
    outcomes. Labels never change; their table of metrics is computed once.

    Args:
        outcomes: the outcomes; a sequence is kept as it is, such as a view of a file.
        name: name of the labels in tables and pages, such as their file's.
        cost: the cost of the run that made them; by default the cost of all their answers.
        given: what is known of the rows that were labeled.

    Example:
        >>> labels[0].kind, labels["tide-gate-height"].id, len(labels[:3])
        ('label', 'tide-gate-height', 3)
    """

    def at(self, **thresholds: Unpack[Thresholds]) -> Labels:
        """Return the labels with the verdicts of other thresholds; no judge is asked.

        A probability at or above its threshold makes a positive verdict. Only verdicts whose
        threshold is given change. A sentence that becomes unsupported loses its keys; one that
        becomes supported names ``supported_without_sentence``. Signatures name moved thresholds.

        Args:
            thresholds: ``support``, the least probability of a supported response sentence;
                ``relevance`` and ``utilization``, of a document sentence.

        Returns:
            New labels; failures stay.

        Raises:
            UnknownName: a threshold is not one of these.
            UsageError: no threshold is given, one is outside 0 to 1, or a label has no
                probabilities, such as labels of a judge that writes text.

        Example:
            >>> labels.at(support=0.95).check(adherence=0.6).passed
            False
        """
        from labeler.labels.thresholds import outcomes_at, read_thresholds

        moved = read_thresholds(thresholds)
        named = ", ".join(f"{name} {value:g}" for name, value in moved.items())
        return Labels(
            outcomes_at(self, moved),
            name=f"{self.name} at {named}",
            cost=self._cost,
            given=self._given,
        )

    def report(self, path: str | Path, **options: Any) -> list[Path]:  # noqa: ANN401 - checked by write_report
        """Write the labels as an offline page: figures, findings, and every record.

        Args:
            path: the HTML file.
            options: as for :func:`labeler.report.write_report`, such as ``by``.

        Returns:
            The files.

        Raises:
            UsageError: as for :func:`labeler.report.write_report`.

        Example:
            >>> [file.name for file in labels.report(folder / "report.html")]
            ['report.html']
        """
        from labeler.report.writing import write_report

        check_options("report", options, keywords_of(write_report)[2:])
        return write_report(self, path_in("path", path), **({"name": self.name} | options))

    def worst(self, most: int = 5) -> WorstRecords:
        """Return the records with the least support, with their unsupported sentences.

        Args:
            most: number of records.

        Returns:
            The records, the worst first; printed, each sentence with the nearest evidence and the
            judge's reason.

        Raises:
            UsageError: the number is below 1.

        Example:
            >>> labels.worst(1)[0].id
            'tide-gate-wrong-year'
        """
        from labeler.calculators.tables import worst_records

        return worst_records(checked(self), most)

    def plot(self, metric: str = "adherence_fraction", by: str | None = None) -> Plot:
        """Draw the distribution of a metric, and the mean of each group, without any library.

        Args:
            metric: id of the metric.
            by: name of a metadata column.

        Returns:
            The drawing, which a notebook shows; ``.svg`` is its text.

        Raises:
            UnknownName: there is no such metric.
            UsageError: no row has the column.

        Example:
            >>> labels.plot("adherence_fraction", by="domain").svg[:4]
            '<svg'
        """
        from labeler.report.page import draw_labels

        return draw_labels(self, metric, by)

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
            second_opinion: True to compare the labels with the embedded judge's, without a
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
            from labeler.judges.embedded import second_opinion as judge

        return audit_labels(self, checks=checks, by=by, second_opinion=judge)

    def compare(
        self,
        other: str | Path | Iterable[AnyOutcome],
        metrics: str | Iterable[str] | None = None,
        **options: Any,  # noqa: ANN401 - checked by labeler.compare
    ) -> Comparison:
        """Compare with other labels of the same rows, metric by metric: differences are other's.

        Args:
            other: labels, a label file, a store or a numbers file.
            metrics: metric ids, as for :meth:`metrics`.
            options: as for :func:`labeler.compare`, such as ``by``.

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
        return compare(self, measurable(other), metrics, **options)

    def anchors(self, n: int = 80) -> Anchors:
        """Choose records to ask the same judge about again, to see whether it has changed.

        Args:
            n: number of records, 2 or more; fewer if there are not so many.

        Returns:
            The records, whose ``check(judge=…).changed`` tells; ``save`` keeps them in a file.

        Raises:
            UsageError: there are fewer than 2 complete labels.

        Example:
            >>> labels.anchors(n=10).check(judge="embedded").changed
            False
        """
        from labeler.evidence.anchors import choose_anchors

        return choose_anchors(checked(self), n)

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
            options: as for :func:`labeler.comparing.diff_labels`, such as ``by`` and ``top``.

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

    def certify(
        self,
        metric: str,
        *,
        within: float | None = None,
        at_least: float | None = None,
        level: float = 0.95,
        seed: int = 0,
        population: bool = False,
        doubt: Doubt | str | Path | None = None,
    ) -> Plan:
        """Plan which sentences people read, so that a metric gets an interval that holds.

        Args:
            metric: a metric of :data:`labeler.evidence.units.CERTIFIABLE`.
            within: half-width of the interval to reach.
            at_least: value to decide on, instead of a width.
            level: confidence level.
            seed: seed of the draws.
            population: True for the stream that the records are a sample of.
            doubt: forecasts answers better than bare verdicts: a result of :meth:`doubt`, or the
                file that it was saved to.

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
        from labeler.evidence.certificate import Goal
        from labeler.evidence.plan import make_plan

        goal = Goal(metric, within, at_least, level, seed, population)
        if isinstance(doubt, str | Path):
            from labeler.evidence.doubt import Doubt

            doubt = Doubt.load(doubt)
        elif doubt is not None and not hasattr(doubt, "verdicts"):
            raise UsageError(
                f"doubt must be the result of labels.doubt(…) or its file, got {doubt!r:.40}"
            )
        return make_plan(self, goal, doubt)

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

        return fit_doubt(checked(self), corrections)


def _text(record: LabelRecord) -> str:
    from labeler.report.views import outcome_text

    return outcome_text(record)


def _html(record: LabelRecord) -> str:
    from labeler.report.page import record_html

    return record_html(record)


VIEWS[LabelRecord] = View(_text, _html)


# Stored labels.


class _Streamed(Sequence[Outcome]):
    """Labels of a store or a large file, read from the beginning each time."""

    def __init__(self, path: str) -> None:
        self._path, self._state = path, source_state(path)

    def __iter__(self) -> Iterator[Outcome]:
        if source_state(self._path) != self._state:
            raise UsageError(f"{self._path} has changed since it was opened: load it again")
        return records_of(stored_outcomes(self._path), "label")

    def __len__(self) -> int:
        return self._length

    @cached_property
    def _length(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Outcome]: ...
    def __getitem__(self, place: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(place, slice):
            wanted = range(len(self))[place]
            found = [one for number, one in enumerate(self) if number in wanted]
            return found if wanted.step > 0 else found[::-1]
        return next(islice(self, range(len(self))[place], None))


@named_keywords
def load(path: str | Path) -> Labels:
    """Return stored labels as one object; records are read when they are needed.

    Args:
        path: a label file of JSON Lines or Parquet, a folder of Parquet files, a pattern, a store's
            folder, or ``-`` for standard input, which is kept in memory. Of uncompressed JSON Lines
            each record is found directly; others are read from the beginning for each look-up.

    Returns:
        The labels and failures; other outcomes, such as scores, are left out.

    Raises:
        UsageError: the file or folder does not exist, has no labels, or a line is not an outcome.
        StoreError: the store is damaged.

    Example:
        >>> labeler.load(labels.save(folder / "labels.jsonl")).metrics()["tide-gate-height"].failed
    """
    return open_labels(path)


def open_labels(path: str | Path, cost: RunCost | None = None, given: Given = UNKNOWN) -> Labels:
    """Return stored labels, and the cost of the run that made them; see :func:`load`."""
    name = str(path_in("path", path) if not isinstance(path, str) else path)
    if name not in {"", STDIO} and Path(name).exists():
        name = str(Path(name).absolute())  # the program may change to another folder
    view: Sequence[Outcome]
    place, is_here = Path(name), not is_remote(name)
    is_stream = is_here and place.exists() and not place.is_file() and not place.is_dir()
    if name == STDIO or is_stream:  # can be read once, such as the output of another command
        view = list(records_of(stored_outcomes(name), "label"))
    elif is_here and place.is_file() and not (is_table(name) or is_gzipped(place)):
        view = LabelView(name)
        # If a run has just written it, they are looked at later. A row that could not be read may
        # be one of scores.
        labels = (one for one in view if not view.others or requested_kind(one) == "label")
        if cost is None and next(labels, None) is None:
            others = f"; numbers of other records: labeler metrics {name}" if view.others else ""
            raise UsageError(f"{name} has no labels{others}")
    else:
        view = _Streamed(name)
        next(iter(view), None)  # a path that cannot be read is reported here
    named = Path(name).name or name
    return Labels(view, name=named, cost=cost, given=given)
