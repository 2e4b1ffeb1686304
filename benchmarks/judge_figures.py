"""Agreement of a judge's labels with RAGBench's own, as figures; no files, no printing.

Any judge is measured the same way: its label records are joined by id with the records that
``read_ragbench`` makes of the published rows, and every figure is of the joined rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import labeler
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import shown


class Kind(NamedTuple):
    """A ratio of document sentences.

    Attributes:
        name: id of the metric that computes it from a label.
        keys: field of the label that holds the sentences it counts.
        truth: published column that holds the true ratio.
        others: published columns of other judges.
    """

    name: str
    keys: str
    truth: str
    others: tuple[str, ...]


RELEVANCE = Kind(
    "relevance",
    "all_relevant_sentence_keys",
    "relevance_score",
    ("ragas_context_relevance", "trulens_context_relevance", "gpt3_context_relevance"),
)
UTILIZATION = Kind(
    "utilization", "all_utilized_sentence_keys", "utilization_score", ("gpt35_utilization",)
)
ADHERENCE_OTHERS = ("ragas_faithfulness", "trulens_groundedness", "gpt3_adherence")
"""Published columns of other judges that score adherence."""

_FRACTION = "adherence_fraction"
_METRICS = (RELEVANCE.name, UTILIZATION.name, _FRACTION)


# -- joining what is true with what was said ------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row: what is true of it, and what the judge said."""

    truth: LabelRecord
    judged: LabelRecord
    support: Mapping[str, float]
    """Support scores by response key; 1 or 0, the verdict, where the judge gives no scores."""
    adherence: float
    """The record's score."""
    ratios: Mapping[str, float]
    """The judge's relevance and utilization, by metric id."""

    def published(self, column: str) -> Any:  # noqa: ANN401 - flags and scores
        """The value of a column of the data set, ``None`` where it has none."""
        return self.truth.example.metadata["published"][column]

    @property
    def subset(self) -> str:
        """Its data set, without the split: ``covidqa`` of ``covidqa_test``."""
        return str(self.truth.example.metadata["dataset_name"]).rsplit("_", 1)[0]

    @property
    def adherent(self) -> bool:
        """Whether the whole response is supported in truth."""
        return self.truth.label.overall_supported

    @property
    def lowest(self) -> float:
        """Another score of the record: that of its worst sentence."""
        return min(self.support.values(), default=0.0)

    @property
    def verdict(self) -> bool:
        """The judge's yes or no on the whole response."""
        return self.judged.label.overall_supported

    @property
    def sentences(self) -> int:
        """How many document sentences it has."""
        return len(self.truth.example.document_keys())


class Joined(NamedTuple):
    """What can be measured, and what cannot.

    Attributes:
        rows: the rows that both sides have.
        left_out: how many rows of the truth are not among them, by reason.
    """

    rows: list[Row]
    left_out: Counter[str]


def join(truth: Iterable[Outcome], judged: Iterable[Outcome]) -> Joined:
    """Join true and judged records by id; judged rows that the truth lacks play no part.

    Raises:
        UsageError: an id was judged twice, the judge was shown other sentences than the truth is
            about, or no row has a counterpart.
    """
    said = _by_id(judged)
    joined = Joined([], Counter())
    for true in truth:
        row = _row(true, said.get(true.id))
        if isinstance(row, Row):
            joined.rows.append(row)
        else:
            joined.left_out[row] += 1
    if not joined.rows:
        raise UsageError(
            f"nothing to measure: of the true rows {dict(joined.left_out)}; the judged ids look "
            f"like {next(iter(said), 'nothing')!r}; label the rows with "
            "--id dataset_name,id,generation_model_name"
        )
    return joined


def _by_id(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for outcome in outcomes:
        if outcome.id in found:
            raise UsageError(f"the judged labels hold {outcome.id!r} twice; give each id once")
        found[outcome.id] = outcome
    return found


def _row(truth: Outcome, judged: Outcome | None) -> Row | str:
    """The row that can be measured, else the reason why it cannot."""
    if isinstance(truth, LabelFailure):
        return f"unreadable truth: {truth.reason}"
    if judged is None:
        return "not judged"
    if isinstance(judged, LabelFailure):
        return f"failed: {judged.reason}"
    if shown(judged.example) != shown(truth.example):
        raise UsageError(
            f"record {truth.id!r} was judged on other sentences than the truth is about: splitter "
            f"{truth.example.splitter} there, {judged.example.splitter} here; "
            "label rows that bring their sentences"
        )
    return _measured(truth, judged)


def _measured(truth: LabelRecord, judged: LabelRecord) -> Row | str:
    (row,) = labeler.metrics([judged], _METRICS)
    values = {name: ratio.value for name, ratio in row.metrics.items()}
    scores = judged.scores.support if judged.scores else {}
    if scores:
        values[_FRACTION] = fmean(scores.values())
    known = {name: value for name, value in values.items() if value is not None}
    missing = sorted(values.keys() - known)
    if missing:
        return f"undefined: {', '.join(missing)}"
    support = scores or {
        entry.response_sentence_key: float(entry.fully_supported)
        for entry in judged.label.sentence_support_information
    }
    return Row(truth, judged, support, adherence=known.pop(_FRACTION), ratios=known)


# -- figures of a group of rows; None where one is undefined --------------------------------------

Rows = Sequence[Row]
Figure = Callable[[Rows], float | None]
ScoredTruth = tuple[float, bool]
"""A score and the truth that it should rank."""
Score = Callable[[Row], float]


def area(pairs: Iterable[ScoredTruth]) -> float | None:
    """AUROC of scores for true or false; undefined where one of the two is missing."""
    counts: dict[float, list[int]] = {}
    for score, truth in pairs:
        counts.setdefault(score, [0, 0])[bool(truth)] += 1
    false = true = half_pairs = 0  # half pairs are integers, so the sum is exact
    for _, (no, yes) in sorted(counts.items()):
        half_pairs += yes * (2 * false + no)
        false, true = false + no, true + yes
    return half_pairs / (2 * false * true) if false and true else None


def adherence_area(rows: Rows, score: Score) -> float | None:
    """AUROC of a record score for adherence."""
    return area((score(row), row.adherent) for row in rows)


def support_area(rows: Rows) -> float | None:
    """AUROC of the sentence scores for support."""
    return area(
        (row.support[entry.response_sentence_key], entry.fully_supported)
        for row in rows
        for entry in row.truth.label.sentence_support_information
        if entry.response_sentence_key in row.support
    )


class Verdicts(NamedTuple):
    """How the yes-or-no on whole responses compares with the truth, as shares of the rows.

    Attributes:
        prevalence: share of rows that are non-adherent.
        flagged: share of rows that the judge calls non-adherent.
        precision: of those flagged, the share that is non-adherent.
        recall: of the non-adherent, the share that is flagged.
    """

    prevalence: float | None
    flagged: float | None
    precision: float | None
    recall: float | None


def verdicts(rows: Rows) -> Verdicts:
    """Count the judge's verdicts."""
    true = sum(not row.adherent for row in rows)
    flagged = sum(not row.verdict for row in rows)
    hits = sum(not row.adherent and not row.verdict for row in rows)
    return Verdicts(
        prevalence=_share(true, len(rows)),
        flagged=_share(flagged, len(rows)),
        precision=_share(hits, flagged),
        recall=_share(hits, true),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def rmse(rows: Rows, predicted: Score, kind: Kind) -> float | None:
    """Root mean square error of a predicted ratio against the published one."""
    if not rows:
        return None
    return math.sqrt(fmean((predicted(row) - row.published(kind.truth)) ** 2 for row in rows))


def own_rmse(rows: Rows, kind: Kind) -> float | None:
    """Error of the judge's ratio."""
    return rmse(rows, lambda row: row.ratios[kind.name], kind)


def constant_rmse(rows: Rows, kind: Kind) -> float | None:
    """Error of always predicting the mean of these rows: the standard deviation."""
    mean = fmean(row.published(kind.truth) for row in rows) if rows else 0.0
    return rmse(rows, lambda _: mean, kind)


def sentence_f1(rows: Rows, kind: Kind) -> float | None:
    """F1 over all document sentences of the rows together."""
    found = predicted = true = 0
    for row in rows:
        said, right = _keys(row.judged, kind), _keys(row.truth, kind)
        found += len(said & right)
        predicted += len(said)
        true += len(right)
    return _f1(found, predicted, true)


def constant_f1(rows: Rows, kind: Kind) -> float | None:
    """F1 of calling every document sentence a yes."""
    true = sum(len(_keys(row.truth, kind)) for row in rows)
    return _f1(true, sum(row.sentences for row in rows), true)


def _keys(record: LabelRecord, kind: Kind) -> frozenset[str]:
    return frozenset(getattr(record.label, kind.keys))


def _f1(found: int, predicted: int, true: int) -> float | None:
    """F1 from counts; undefined where nothing was predicted and nothing is true."""
    return _share(2 * found, predicted + true)


# -- over subsets, and next to other judges --------------------------------------------------------


def by_subset(rows: Rows) -> dict[str, list[Row]]:
    """The rows of each subset, sorted by name."""
    groups: dict[str, list[Row]] = {name: [] for name in sorted({row.subset for row in rows})}
    for row in rows:
        groups[row.subset].append(row)
    return groups


def mean_over(groups: Iterable[Rows], figure: Figure) -> float | None:
    """Mean of a figure over the groups where it is defined."""
    defined = [value for value in map(figure, groups) if value is not None]
    return fmean(defined) if defined else None


class Both(NamedTuple):
    """A figure of another judge and of this one, on the same rows."""

    other: float | None
    own: float | None


class Comparison(NamedTuple):
    """Another judge next to this one, on the very rows where the other has a value.

    Attributes:
        used: number of those rows.
        dropped: number of rows where it has none.
        subsets: number of subsets in which its figure is defined.
        mean: means over these subsets.
        pooled: figures of all rows used.
    """

    used: int
    dropped: int
    subsets: int
    mean: Both
    pooled: Both


def compare(rows: Rows, column: str, *, other: Figure, own: Figure) -> Comparison:
    """Compare a published column with the judge; rows without a value are dropped and counted."""
    used = [row for row in rows if row.published(column) is not None]
    groups = [group for group in by_subset(used).values() if other(group) is not None]
    return Comparison(
        used=len(used),
        dropped=len(rows) - len(used),
        subsets=len(groups),
        mean=Both(mean_over(groups, other), mean_over(groups, own)),
        pooled=Both(other(used), own(used)),
    )


def compare_adherence(rows: Rows, column: str) -> Comparison:
    """Compare AUROC for adherence."""
    return compare(
        rows,
        column,
        other=lambda group: adherence_area(group, lambda row: float(row.published(column))),
        own=lambda group: adherence_area(group, lambda row: row.adherence),
    )


def compare_ratio(rows: Rows, column: str, kind: Kind) -> Comparison:
    """Compare errors of a ratio."""
    return compare(
        rows,
        column,
        other=lambda group: rmse(group, lambda row: float(row.published(column)), kind),
        own=lambda group: own_rmse(group, kind),
    )
