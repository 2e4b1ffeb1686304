"""Numbers files: the exact metrics of each row, written once and read in place of the labels.

A row has its id, the facts by which commands choose, group, pair and count rows, and for each
metric its value, ``METRIC.numerator``, ``METRIC.denominator`` and ``METRIC.reason``. Fractions are
texts such as ``2/3``. Texts of records are not in it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, starmap
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.encoded import (
    Columns,
    Encoded,
    Places,
    combined,
    first_places,
    joined,
    joint_codes,
    numbered,
    split,
)
from labeler.calculators.export import COLUMNS
from labeler.calculators.groups import group_key
from labeler.calculators.metrics_row import (
    DigestMap,
    Identity,
    MetricsRow,
    printed_versions,
    row_digest,
)
from labeler.calculators.ratio import CONVENTION, Ratio
from labeler.calculators.registry import (
    ALL,
    COLLECTED,
    LABEL,
    METRICS,
    Metric,
    select_metrics,
    split_ids,
)
from labeler.calculators.summary import SHARE, SUPPORTED, GroupedSums, GroupKey, GroupSums
from labeler.calculators.tally import COMPARED, RowFacts, Tally, other_texts
from labeler.errors import UsageError
from labeler.labels.answering import AnsweringModel
from labeler.labels.answers import PROFILES, VerbatimLabel
from labeler.labels.record import RECORDS

_FILLED = ("versions", "label")
"""Columns that are empty in no row with a label."""
_ROUNDED = 1e-9
"""A value may be off by this from its exact parts: spreadsheets show nine digits of it."""
_DECIMAL = re.compile(r"\s*-?\d{1,99}(\.\d{0,99})?([eE][+-]?\d{1,2})?\s*")
"""A decimal number of bounded size: 1e999999999 would fill the memory."""


class NumbersFile:
    """The rows of numbers files.

    Args:
        columns: columns of the files.
        metrics: the chosen metrics.
        is_asked: True if they were named: rows without one then have the reason why.

    Attributes:
        name: name of the files.
        metrics: the chosen metrics.
        own: ids of the metrics in the files.
    """

    def __init__(self, columns: Columns, metrics: Iterable[Metric], *, is_asked: bool) -> None:
        self._columns, self._is_asked = columns, is_asked
        self.metrics: Sequence[Metric] = tuple(metrics)
        self.name, self._column = columns.name, columns.column
        parts = [one.rpartition(".") for one in columns.names]
        self.own = list(dict.fromkeys(a for a, _, b in parts if b in {"numerator", "denominator"}))
        if not self.own and self._is_failed.all():  # failures alone have no column of a metric
            versions = filter(None, self._column("versions", _versions).values)
            self.own = list(dict.fromkeys(chain.from_iterable(versions)))

    @classmethod
    def read(cls, paths: Iterable[str]) -> Self:
        """Open files; :meth:`chosen` returns the rows with metrics.

        Args:
            paths: the files, as ``.parquet``, ``.csv`` or ``.jsonl``.

        Raises:
            UsageError: a file is damaged or was written by another program.
        """
        columns = Columns(paths)
        if not columns.names:
            raise columns.fault("it has no row")
        # Without one of them, rows are counted, grouped or paired otherwise.
        if missing := [name for name in COLUMNS if name not in columns.names]:
            raise columns.fault(f"it has no column {missing[0]!r}")
        found = cls(columns, (), is_asked=False)
        found._check_facts()
        found._check_texts()
        return found

    def chosen(self, ids: str | Iterable[str] | None) -> Self:
        """Return the rows with metrics.

        Args:
            ids: metric ids, or ``all`` in the files; by default each metric once, in its default
                definition, that they have.

        Raises:
            UsageError: the files have no such metric or rows without metrics of their own, or
                their numbers are of another version of a metric.
        """
        metrics, is_asked = self._select(ids), ids is not None
        found = type(self)(self._columns, metrics, is_asked=is_asked)
        found._check()  # noqa: SLF001 - its own
        return found

    def _select(self, ids: str | Iterable[str] | None) -> tuple[Metric, ...]:
        own, wanted = self.own, None if ids is None else split_ids(ids)
        if wanted is not None and wanted != [ALL]:
            chosen = select_metrics(wanted, kind=None)
            if lacking := next((metric.id for metric in chosen if metric.id not in own), None):
                raise UsageError(
                    f"{self.name} has no numbers of {lacking}: write it again from the labels with "
                    f"--metrics {lacking}"
                )
            return chosen
        known = (select_metrics([name], kind=None)[0] for name in own if name in METRICS)
        others = [one for one in known if one.kind != LABEL and (wanted or one.default)]
        every = dict.fromkeys((*select_metrics(ids), *others))
        found = tuple(metric for metric in every if metric.id in own)
        return found if found or wanted else tuple(map(self._registered, own))

    def _registered(self, name: str) -> Metric:
        if name not in METRICS:
            raise UsageError(
                f"{self.name}: the metric {name!r} is not registered here: name it with --metrics "
                "package.module:name"
            )
        return select_metrics([name], kind=None)[0]

    def _check(self) -> None:
        """Check kinds of rows, and versions of metrics."""
        for kind in map(str, self._column("kind").values):
            if kind in COLLECTED:
                raise UsageError(
                    f"{self.name} has rows of kind {kind!r}: labeler metrics summarizes them from "
                    "their own file"
                )
        present = {metric.id: metric.version for metric in self.metrics}
        for versions in filter(None, self._column("versions", _versions).values):
            for name, version in versions.items():
                if present.get(name, version) != version:
                    raise UsageError(
                        f"{self.name}: numbers of {name} version {version}, which has version "
                        f"{present[name]} now: write it again from the labels"
                    )

    def _check_facts(self) -> None:
        """Check that no row lacks its kind and id, nor a label its facts and metrics."""
        for name in ("kind", "label", "failed"):
            self._column(name, str.__str__)  # rejects cells of another type
        if kinds := [one for one in self._column("kind").values if one and one not in RECORDS]:
            raise self._columns.fault(f"column 'kind' has {kinds[0]!r:.40}, which no record has")
        labeled = ~self._is_failed
        for name in ("kind", "id", *_FILLED):
            lacking = self._column(name).where(lambda one: one is None)
            empty = np.flatnonzero(lacking & labeled if name in _FILLED else lacking)
            if len(empty):
                raise self._columns.fault(
                    f"{self._columns.place(int(empty[0]))} has no value in column {name!r}"
                )
        if labeled.any() and not self.own:
            raise self._columns.fault("it has no metric, such as the column adherence.numerator")

    def _check_texts(self) -> None:
        """Check that an id names one row, as :class:`~labeler.calculators.outcomes.RowTexts` does.

        Raises:
            UsageError: labels of an id that one splitter cut have different texts.
        """
        labeled = np.flatnonzero(~self._is_failed)
        ids, label = self._column("id"), self._column("label")
        splitter = label.mapped(lambda one: str(one).partition("|splitter:")[2].partition("|")[0])
        rows, size = joint_codes(ids, self._column("kind"), joined([splitter]))
        rows = rows[labeled]
        first_of = first_places(rows, size)
        for part in COMPARED:
            texts = self._column(part).codes[labeled]
            other = np.flatnonzero(texts != texts[first_of[rows]])
            if len(other):
                place, first = labeled[[other[0], first_of[rows[other[0]]]]].tolist()
                (id_,) = ids.listed(np.array([place]))
                where, before = self._columns.place(place), self._columns.place(first)
                raise other_texts(where, str(id_), [part], before)

    def ratios(self, name: str) -> Encoded:
        """Return the ratio of each row by a metric; ``None`` where it was not measured.

        Raises:
            UsageError: a value is not its numerator over its denominator.
        """
        parts = (("", float), (".numerator", _exact), (".denominator", _whole), (".reason", str))
        found = combined(*(self._column(f"{name}{end}", read) for end, read in parts))

        def ratio(parts: tuple[Any, ...]) -> Ratio | None:
            value, numerator, denominator, reason = parts
            if value is numerator is denominator is reason is None:
                return None
            is_convention = (reason or "").startswith(CONVENTION)
            convention = float(reason.removeprefix(CONVENTION)) if is_convention else None
            made = Ratio(numerator, denominator, None if is_convention else reason, convention)
            is_right = _is_near(value, made.value) and (value is not None or reason)
            if not is_right or (denominator or 0) < 0:
                raise self._columns.fault(
                    f"column {name!r} has {value}, but its parts {numerator} / {denominator} "
                    f"({reason or 'no reason'}) are {made.value}"
                )
            return made

        return found.mapped(ratio)

    @cached_property
    def _is_failed(self) -> NDArray[np.bool_]:
        return self._column("failed").where(lambda reason: reason is not None)

    @cached_property
    def _is_chosen(self) -> NDArray[np.bool_]:
        """True for rows of a kind that the metrics are of."""
        return self._column("kind").where({metric.kind for metric in self.metrics}.__contains__)

    @cached_property
    def _answered(self) -> Encoded:
        names = ("judge", "model", "answered", "host")
        columns = (self._column(name, str).mapped(lambda one: one or "") for name in names)
        return combined(*columns).mapped(lambda one: AnsweringModel(*one))

    @cached_property
    def _metadata(self) -> Encoded:
        return self._column("metadata", _object).mapped(lambda one: one or {})

    def __iter__(self) -> Iterator[MetricsRow]:
        """Yield the rows with their facts and the chosen metrics."""
        places = np.flatnonzero(self._is_chosen)
        return self.rows(places, with_facts=True)

    def models(self) -> Iterable[AnsweringModel]:
        """Return the models that answered."""
        codes = np.unique(self._answered.codes[~self._is_failed])
        return {self._answered.values[code] for code in codes}

    def own_rows(self) -> Iterator[MetricsRow]:
        """Yield the rows with the chosen metrics; by default with aliases, as rows of labels."""
        if self._is_asked:
            return iter(self)
        every = [self._registered(name) for name in self.own]
        default = [one for one in every if one.default]
        return iter(type(self)(self._columns, default, is_asked=False) if default else self)

    def rows(self, places: Places, *, with_facts: bool = False) -> Iterator[MetricsRow]:
        """Yield the rows at some places."""
        if not len(places):
            return
        names = [metric.id for metric in self.metrics]
        completed = [self._complete(one) for one in self.metrics]
        columns = [
            self._column("id", str),
            self._column("label"),
            self._measured,
            self._column("failed"),
            self._metadata,
            self._column("key", lambda one: int(one, 16)),
            self._column("question_group", lambda one: int(one, 16)),
            self._answered,
        ]
        facts = self._facts(places) if with_facts else iter(lambda: None, 0)
        ratios = zip(*(one.listed(places) for one in completed), strict=True)
        cells = zip(*(one.listed(places) for one in columns), strict=True)
        for one, values, fact in zip(cells, ratios, facts, strict=False):
            id_, label, measured, failed, metadata, key, question, answered = one
            if failed is None:
                own = {
                    n: ratio for n, ratio in zip(names, values, strict=True) if ratio is not None
                }
            else:
                own = dict.fromkeys(measured, Ratio.missing(f"failed:{failed}"))
            yield MetricsRow(
                id_,
                own,
                label,
                printed_versions(measured.values()),
                failed,
                metadata,
                Identity(row_digest(id_, label), key or 0),
                question or 0,
                None if failed else answered,
                fact,
            )

    @cached_property
    def _measured(self) -> Encoded:
        """The chosen metrics that each row was measured with, by id."""

        def measured(cells: tuple[Any, ...]) -> dict[str, Metric]:
            versions, kind, profile = cells
            return {
                one.id: one
                for one in self.metrics
                if one.kind == kind
                and (self._is_asked or (one.id in (versions or {}) and _has_fields(profile, one)))
            }

        versions = self._column("versions", _versions)
        return combined(versions, self._column("kind"), self._column("profile")).mapped(measured)

    def _complete(self, metric: Metric) -> Encoded:
        """Return the ratio of each row that was measured with a metric.

        If the metric is named, labels without its fields have the reason why.
        """

        def ratio(cells: tuple[Any, ...]) -> Ratio | None:
            found, measured, failed = cells
            if failed is not None and found is not None:
                raise self._columns.fault(f"a row that failed ({failed}) has {metric.id}")
            if failed is not None or metric.id not in measured:
                return None
            return _lacking(metric) if found is None else cast("Ratio", found)

        cells = self.ratios(metric.id), self._measured, self._column("failed")
        return combined(*cells).mapped(ratio)

    def _facts(self, places: Places) -> Iterator[RowFacts]:
        """Yield the facts of rows."""

        def listed(name: str, default: object) -> list[Any]:
            column = self._column(name, _READERS[type(default)])
            return column.mapped(lambda one: default if one is None else one).listed(places)

        columns = starmap(listed, RowFacts._field_defaults.items())
        return map(RowFacts._make, zip(*columns, strict=True))

    def least_supported(self) -> Iterator[MetricsRow]:
        """Yield the first two ids of each share of support; see :class:`CountedRows`."""
        chosen = {metric.id: metric for metric in self.metrics}
        if not chosen.keys() >= {SUPPORTED, SHARE}:
            return
        supported, share = (self._complete(chosen[name]) for name in (SUPPORTED, SHARE))
        ids, label, model = self._column("id"), self._column("label"), self._answered
        lacking = np.flatnonzero(supported.where(lambda ratio: ratio == 0))
        found = list[int]()
        for _, places in split(combined(label, model, share), lacking):
            _, first_of_id = np.unique(ids.codes[places], return_index=True)
            found += np.sort(places[first_of_id])[:2].tolist()
        columns = (ids, label, model, supported, share)
        cells = (one.listed(np.array(sorted(found), dtype=np.int64)) for one in columns)
        for id_, by, answered, no, part in zip(*cells, strict=True):
            yield MetricsRow(str(id_), {SUPPORTED: no, SHARE: part}, by, "", answered=answered)

    def fill(
        self, groups: GroupedSums, by: str | None, column: str | None, *, by_model: bool
    ) -> tuple[DigestMap, Iterator[MetricsRow]]:
        """Add all labels to sums, as counts of distinct ratios; see :class:`CountedRows`."""
        failed = np.flatnonzero(self._is_failed & self._is_chosen)
        labeled = np.flatnonzero(~self._is_failed & self._is_chosen)
        ids, label, key = map(self._column, ("id", "label", "key"))
        if by or column:
            groups.columns.update(chain.from_iterable(self._metadata.values))
        names = self._metadata.mapped(lambda one: group_key(one, by)) if by else None
        parts = combined(label, self._answered, *(names,) if names else ())
        # The first record of an id, a configuration and a key counts.
        distinct, size = joint_codes(ids, label, key)
        first = first_places(distinct[labeled], size)
        repeats = np.ones(len(labeled), dtype=bool)
        repeats[first[first < len(labeled)]] = False
        units = numbered(self._column("question_group"))
        keys = self._metadata.mapped(lambda one: group_key(one, column)) if column else None
        copies = self._column("copies", _whole).mapped(lambda one: one or 0)
        ratios = {one.id: self._complete(one) for one in self.metrics}
        for (own_label, model, *group), places in split(parts, labeled):
            name = model.name if by_model else ""
            sums = groups[GroupKey(own_label, group[0] if group else None, name)]
            sums.models.add(model)
            counted = places[~repeats[np.searchsorted(labeled, places)]]
            sums.duplicates += len(places) - len(counted) + sum(copies.listed(counted))
            for code in np.unique(self._measured.codes[counted]).tolist():
                sums.measured.update(self._measured.values[code])
            for name, found in ratios.items():
                _extend(sums, name, found, counted)
            sums.questions.frombytes(units[counted].tobytes())
            if keys:
                sums.units.frombytes(numbered(keys)[counted].tobytes())
        return self._labels_of(failed, labeled), self.rows(failed)

    def _labels_of(self, failed: Places, labeled: Places) -> DigestMap:
        """Return the entries of labels whose ids are among failed rows."""
        found = DigestMap()
        if not len(failed):
            return found
        ids = self._column("id", str)
        is_failed = np.zeros(ids.size, dtype=bool)
        is_failed[ids.codes[failed]] = True
        places = labeled[is_failed[ids.codes[labeled]]]
        label, key = (self._column(name).listed(places) for name in ("label", "key"))
        for id_, one, digest in zip(ids.listed(places), label, key, strict=True):
            found.add(*Identity(row_digest(id_, one), int(digest or "0", 16)).entry)
        return found


def _extend(sums: GroupSums, name: str, found: Encoded, places: Places) -> None:
    """Add the ratios of rows by one metric to sums."""
    codes = found.codes[places]
    counts = np.bincount(codes, minlength=found.size)
    present = np.flatnonzero(counts)
    first = first_places(codes, found.size)
    order = present[np.argsort(first[present])]
    ratios = [found.values[code] for code in order]
    table = np.zeros(found.size, dtype=np.uint32)
    table[order] = sums.of[name].extend(ratios, counts[order].tolist())
    sums.of[name].place(table[codes].tobytes())


@lru_cache(maxsize=256)
def _versions(printed: str) -> dict[str, int]:
    """Return the versions of metrics by id, as printed by :func:`printed_versions`."""
    parts = printed.removeprefix("metrics:").split(",")
    named = (part.rpartition(".v") for part in parts if part)
    return {name: int(version) for name, _, version in named}


def _exact(cell: Any) -> int | Fraction:  # noqa: ANN401 - any cell
    return Fraction(cell.removeprefix("'")) if "/" in str(cell) else _whole(cell)


def _whole(cell: Any) -> int:  # noqa: ANN401 - any cell
    """Return a whole number, which data frames make ``3.0`` of in a column with empty cells."""
    plain = str(cell).removeprefix("'")
    if plain.isdecimal():  # much faster
        return int(plain)
    if not _DECIMAL.fullmatch(plain) or (found := Fraction(plain)).denominator != 1:
        raise ValueError(f"{cell} is not a whole number")
    return int(found)


def _flag(cell: Any) -> bool:  # noqa: ANN401 - any cell
    """Return a flag, which data frames write as ``True`` and spreadsheets as ``TRUE``."""
    if (text := str(cell).lower()) not in {"true", "false"}:
        raise ValueError(f"{cell} is not true or false")
    return text == "true"


def _object(cell: str) -> dict[str, Any]:
    found = json.loads(cell)
    if not isinstance(found, dict):
        raise ValueError(f"{cell} is not a JSON object")  # noqa: TRY004 - as for other cells
    return found


def _is_near(value: float | None, exact: float | None) -> bool:
    if value is None or exact is None:
        return value is exact
    return math.isclose(value, exact, rel_tol=_ROUNDED, abs_tol=_ROUNDED)


_READERS: dict[type, Callable[[Any], Any]] = {
    int: _whole,
    str: str,
    bool: _flag,
    frozenset: lambda cell: frozenset(cell.split(" ")),
}
"""Functions that read cells of facts, by the type of these."""
_NO: frozenset[str] = frozenset()
_BLANK = Tally((), {}, _NO, _NO, (), _NO, _NO, _NO, _NO, VerbatimLabel.model_construct())


def _has_fields(profile: str | None, metric: Metric) -> bool:
    """Return True if labels of a profile have the fields that a metric needs."""
    return not profile or issubclass(PROFILES[profile].output, metric.profile.output)


@lru_cache(maxsize=256)
def _lacking(metric: Metric) -> Ratio:
    """Return the undefined ratio of a label that lacks the fields of a metric."""
    found = metric.ratio(_BLANK, "")
    if not (found.undefined or "").startswith("needs_"):
        raise UsageError(
            f"some rows have no numbers of {metric.id}: write the file again from the labels with "
            f"--metrics {metric.id}"
        )
    return found
