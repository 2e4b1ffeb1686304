"""Labels as a data frame: one row an outcome, in input order, to join to the rows they judge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from numbers import Integral
from typing import Any, NamedTuple, cast

from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.outcomes import measure_outcomes
from labeler.calculators.registry import select_metrics
from labeler.calculators.tally import tally
from labeler.catalog import with_named_keywords
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure, Outcome
from labeler.sentences.example import Sentence
from labeler.version import pip_install

LIBRARIES = ("pandas", "polars")
_LARGEST = 1 << 63

Columns = dict[str, list[Any]]


class Given(NamedTuple):
    """What is known of the rows that were labeled.

    Attributes:
        ids: their ids in the type that they came in; ``None`` if unknown.
        index: the index of their data frame; ``None`` if they came in none.
    """

    ids: Sequence[Any] | None = None
    index: Any = None

    def part(self, key: slice) -> Given:
        """Return what is known of some of the rows."""
        return Given(*(value if value is None else value[key] for value in self))

    def numbers(self) -> frozenset[str]:
        """Return the ids that came as whole numbers, which positions could be mistaken for."""
        return frozenset(str(one) for one in self.ids or () if isinstance(one, Integral))


UNKNOWN = Given()


def columns_of(
    outcomes: Sequence[Outcome],
    rows: Iterable[MetricsRow],
    ids: Sequence[Any] | None,
    *,
    documents: bool = False,
) -> Columns:
    """Return outcomes with the metrics of each as the columns of :meth:`Framed.to_pandas`.

    The ids are in the type that the rows came with, or else texts.
    """
    if ids is None or len(ids) != len(outcomes):
        ids = [outcome.id for outcome in outcomes]
    first: Columns = {"id": list(ids)}
    texts = [_texts(outcome) for outcome in outcomes]
    names = ("question", "response", *["documents"] * documents)
    first |= {name: [one.get(name) for one in texts] for name in names}
    last = {name: [one.get(name) for one in texts] for name in ("worst_sentence", "explanation")}
    return measured_columns(rows, first, last)


def measured_columns(
    rows: Iterable[MetricsRow], first: Columns, last: Columns | None = None
) -> Columns:
    """Return the metadata and the metrics of rows as columns between others.

    A metadata column with the name of another is ``metadata.NAME``.
    """
    measured = list(rows)
    found: Columns = {"failed": [row.failed for row in measured]}
    for name in dict.fromkeys(name for row in measured for name in row.metrics):
        ratios = [row.metrics.get(name) for row in measured]
        found[name] = [float(r) if r is not None and r.value is not None else None for r in ratios]
        found[f"{name}.reason"] = [
            ratio.undefined if ratio is not None else None for ratio in ratios
        ]
    found |= last or {}
    return first | _metadata(measured, {*first, *found, "documents"}) | found


def to_library(columns: Columns, library: str, index: Any = None) -> Any:  # noqa: ANN401 - either library's
    """Return columns as a data frame; metrics are numbers, and their reasons texts.

    Args:
        columns: equally long lists, by :func:`measured_columns`.
        library: one of :data:`LIBRARIES`.
        index: the index of a frame of pandas; by default positions.

    Raises:
        UsageError: the library is not installed.
    """
    numbers = [name for name in columns if f"{name}.reason" in columns]
    reasons = [f"{name}.reason" for name in numbers]
    try:
        if library == "polars":
            import polars as pl  # noqa: PLC0415 - optional

            empty = (name for name, own in columns.items() if all(one is None for one in own))
            types: dict[str, Any] = dict.fromkeys((*empty, *reasons), pl.String)
            types |= dict.fromkeys(numbers, pl.Float64)
            return pl.DataFrame(columns, schema_overrides=types, strict=False)
        import pandas as pd  # noqa: PLC0415 - optional
    except ImportError as error:
        raise UsageError(f"{library} is not installed: {pip_install(library)}") from error
    fits = index is not None and len(index) == len(columns["id"])
    made = pd.DataFrame(columns, index=index if fits else None)
    return made.astype(dict.fromkeys(numbers, "float64") | dict.fromkeys(reasons, "string"))


def _texts(outcome: Outcome) -> dict[str, Any]:
    """Return texts of a label by column, among them the worst sentence; none of a failure.

    It is the unsupported sentence that is least probable to be true, the first one without
    probabilities; its explanation is why it lacks support.
    """
    if isinstance(outcome, LabelFailure):
        return {}
    example, counted = outcome.example, tally(outcome)
    found: dict[str, Any] = {
        "question": example.question,
        "response": _joined(example.response),
        "documents": list(map(_joined, example.documents)),
    }
    support: Mapping[str, float] = outcome.scores.support if outcome.scores else {}
    lacking = (key for key in counted.response if key in counted.unsupported)
    worst = min(lacking, key=lambda key: support.get(key, 0.0), default="")
    for entry in outcome.label.sentence_support_information:
        if entry.response_sentence_key == worst and not entry.fully_supported:
            why = {"worst_sentence": counted.texts[worst], "explanation": outcome.why(entry)}
            return found | why
    return found


def _joined(sentences: Iterable[Sentence]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def _metadata(rows: Sequence[MetricsRow], taken: set[str]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row.metadata)
    return {
        f"metadata.{name}" if name in taken else name: _uniform(
            [row.metadata.get(name) for row in rows]
        )
        for name in names
    }


def _uniform(values: list[Any]) -> list[Any]:
    """Return values of one type: as they are, as floats, or else as texts."""
    kinds = {type(value) for value in values if value is not None}
    large = any(isinstance(value, int) and abs(value) >= _LARGEST for value in values)
    if kinds == {int, float} and not large:
        return [None if value is None else float(value) for value in values]
    if len(kinds) <= 1 and kinds <= {str, int, float, bool} and not large:
        return values
    return [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values
    ]


@with_named_keywords
class Framed:
    """Outcomes that become data frames."""

    _given: Given

    @property
    def frame(self) -> Any:  # noqa: ANN401 - either library's
        """The labels as a data frame: :meth:`to_pandas`, or :meth:`to_polars` without pandas.

        Example:
            >>> labels.frame["adherence"].to_list()[:2]
            [1.0, 0.0]
        """
        installed = (name for name in LIBRARIES if find_spec(name))
        return self._to_frame(next(installed, LIBRARIES[0]), None, documents=False)

    def to_pandas(self, ids: str | Iterable[str] | None = None, *, documents: bool = False) -> Any:  # noqa: ANN401 - optional
        """Return the labels as a data frame of pandas.

        It has one row for each labeled row, in input order, and the index of the data frame that
        was labeled, so that ``rows.join(labels.to_pandas(), rsuffix="_label")`` or a merge by
        ``id`` joins both.

        Args:
            ids: as for :meth:`metrics`.
            documents: True for a column with each row's documents.

        Returns:
            Columns ``id``, ``question``, ``response``, the metadata, ``failed``, each metric as a
            number with a column ``METRIC.reason`` for missing ones, ``worst_sentence`` and
            ``explanation``.

        Raises:
            UsageError: pandas is not installed.
        """
        return self._to_frame("pandas", ids, documents=documents)

    def to_polars(self, ids: str | Iterable[str] | None = None, *, documents: bool = False) -> Any:  # noqa: ANN401 - optional
        """Return the labels as a data frame of polars, with the columns of :meth:`to_pandas`.

        Args:
            ids: as for :meth:`metrics`.
            documents: True for a column with each row's documents.

        Raises:
            UsageError: polars is not installed.
        """
        return self._to_frame("polars", ids, documents=documents)

    def _to_frame(self, library: str, ids: str | Iterable[str] | None, *, documents: bool) -> Any:  # noqa: ANN401 - as above
        chosen = None if ids is None else select_metrics(ids)
        own = cast("Sequence[Outcome]", self)
        rows = measure_outcomes(own, chosen)
        columns = columns_of(own, rows, self._given.ids, documents=documents)
        return to_library(columns, library, self._given.index)
