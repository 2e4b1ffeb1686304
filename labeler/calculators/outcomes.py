"""Reading stored outcomes, and measuring them."""

from __future__ import annotations

import logging
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from pydantic import BaseModel

from labeler.calculators.metrics_row import DigestMap, Measurer, MetricsRow, row_digest
from labeler.calculators.registry import LABEL, Metric
from labeler.calculators.tally import COMPARED, other_texts
from labeler.catalog import named_keywords
from labeler.data.label_files import (
    holds_numbers,
    is_store,
    lines_of,
    local_files,
    outcome_of,
    parts_of,
)
from labeler.errors import UsageError, path_in
from labeler.labels.record import (
    RECORDS,
    AnyOutcome,
    LabelFailure,
    Outcome,
    given_outcome,
    records_of,
    requested_kind,
    require_labels,
)
from labeler.sentences.characters import visible
from labeler.sentences.display import plural
from labeler.sentences.example import KeyedExample

if TYPE_CHECKING:
    from labeler.calculators.numbers_file import NumbersFile


class Located(NamedTuple):
    """An outcome and its origin: ``FILE:LINE``, a store, or its number among those given."""

    where: str
    outcome: AnyOutcome


class CheckedOutcomes(Iterator[AnyOutcome]):
    """Outcomes in which an id names one row, and no two records of a key have different answers.

    Equal records are copies; every caller counts one.

    Args:
        located: the outcomes; consumed once.
        through: generators that the checked outcomes pass through, such as one that counts them.
        one_row: False if the caller chooses among the rows of an id.

    Raises:
        UsageError: on reading, a record has the id of an earlier one and another question,
            documents or response, or its key and another answer.
    """

    def __init__(
        self, located: Iterable[Located], through: tuple[Through, ...] = (), *, one_row: bool = True
    ) -> None:
        self._located, self._through, self._one_row = located, through, one_row

    def through(self, *generators: Through) -> CheckedOutcomes:
        """Return the outcomes as they come out of generators; they are not checked again."""
        return CheckedOutcomes(self._located, (*self._through, *generators), one_row=self._one_row)

    def of_several_rows(self) -> CheckedOutcomes:
        """Return the outcomes for a caller that chooses among the rows that an id names."""
        return CheckedOutcomes(self._located, self._through, one_row=False)

    @cached_property
    def _started(self) -> Iterator[AnyOutcome]:
        outcomes: Iterable[AnyOutcome] = self._checked()
        for generator in self._through:
            outcomes = generator(outcomes)
        return iter(outcomes)

    def __iter__(self) -> Iterator[AnyOutcome]:  # noqa: PYI034 - a generator is faster
        return self._started

    def __next__(self) -> AnyOutcome:
        return next(self._started)

    def _checked(self) -> Iterator[AnyOutcome]:
        known, foreign, texts = DigestMap(), Counter[str](), RowTexts()
        read = set[str | None]({None})
        for where, outcome in self._located:
            if (kind := requested_kind(outcome)) not in read:
                if kind in RECORDS:
                    read.add(kind)
                else:
                    foreign[str(kind)] += 1
            if not isinstance(outcome, LabelFailure):
                if self._one_row:
                    texts.check(where, outcome)
                content = row_digest(outcome.content(), None)
                if known.add(row_digest(outcome.id, outcome.key), content) not in {0, content}:
                    raise UsageError(
                        f"{where}: record {outcome.id!r:.80} has another answer than an earlier "
                        f"record with its id and key {outcome.key}. A record counts once: leave "
                        "out one of the two. Compare two runs with 'labeler agree A B'; a judge "
                        "asked again needs a trial of its own (repeat)"
                    )
            yield outcome
        for kind, count in foreign.items():
            _LOG.warning(_FOREIGN, plural(count, "record"), visible(kind))


_LOG = logging.getLogger("labeler")
_FOREIGN = (
    "left out %s of kind '%s', which no installed package reads: install the package "
    "that wrote them; 'labeler store export' keeps them as they are"
)
Through = Callable[[Iterable[AnyOutcome]], Iterable[AnyOutcome]]


def numbers_of(*sources: str | Path) -> NumbersFile | None:
    """Return the rows of numbers files; ``None`` if the sources hold outcomes.

    Raises:
        UsageError: only some of them are numbers files, or one is damaged.
    """
    files = {name: [*map(str, local_files(name))] or [name] for name in map(str, sources)}
    numbers = [name for name, parts in files.items() if holds_numbers(parts[0])]
    if not numbers:
        return None
    if len(numbers) < len(files):
        other = next(name for name in files if name not in numbers)
        raise UsageError(f"{numbers[0]} holds numbers, {other} does not: read one kind at a time")
    from labeler.calculators.numbers_file import NumbersFile  # noqa: PLC0415 - loads numpy

    return NumbersFile.read(chain.from_iterable(files.values()))


def stored_outcomes(outcomes: str | Path) -> Iterator[AnyOutcome]:
    """Read outcomes of every kind one by one, without the check of :func:`checked_outcomes`.

    Args:
        outcomes: a label file, JSON Lines or Parquet; a store's folder; a folder of Parquet files,
            nested or not; a pattern such as ``labels/*.parquet``; or ``-`` for standard input.

    Raises:
        UsageError: the file or folder does not exist, or a line is not an outcome.
        StoreError: the store is damaged.
    """
    return (outcome for _, outcome in _located(outcomes))


def checked_outcomes(*outcomes: str | Path) -> CheckedOutcomes:
    """Read the outcomes of files and stores together, as numbers and findings need them.

    Args:
        outcomes: as for :func:`stored_outcomes`.

    Raises:
        UsageError: as for :func:`stored_outcomes` and :class:`CheckedOutcomes`.
        StoreError: a store is damaged.
    """
    return CheckedOutcomes(chain.from_iterable(map(_located, outcomes)))


def checked(outcomes: Iterable[AnyOutcome], name: str = "") -> CheckedOutcomes:
    """Return given outcomes, not a path, with the check of :class:`CheckedOutcomes`.

    ``name`` begins the place in errors, such as ``"B: "``.
    """
    if isinstance(outcomes, CheckedOutcomes):
        return outcomes
    if isinstance(outcomes, str):
        raise UsageError(f"{outcomes!r} is a path: pass labeler.api.read_labels({outcomes!r})")
    given: object = outcomes
    if not isinstance(given, Iterable):
        raise UsageError(f"{name}outcomes must be a list, got {given!r:.40}")
    return CheckedOutcomes(_placed(outcomes, name))


def _placed(outcomes: Iterable[AnyOutcome], name: str) -> Iterator[Located]:
    for number, outcome in enumerate(outcomes, start=1):
        where = f"{name}outcome {number}"
        yield Located(where, given_outcome(where, outcome))


def _located(outcomes: str | Path) -> Iterator[Located]:
    name = str(outcomes or path_in("labels", outcomes))
    found = _of_store(name) if is_store(Path(name)) else _of_files(name)
    first = next(found, None)
    if first is None:
        raise UsageError(
            f"no labels in {name}: it is empty; label rows first, with 'labeler label', or check "
            "that it is the right file"
        )
    return chain([first], found)


def _of_store(name: str) -> Iterator[Located]:
    from labeler.store.disk import DiskStore  # noqa: PLC0415 - not needed for files

    with DiskStore(name, create=False) as store:
        yield from (Located(name, outcome) for outcome in store)


def _of_files(name: str) -> Iterator[Located]:
    parts = parts_of(name)
    if parts is None and Path(name).is_dir():
        near = next((f", such as {one}" for one in sorted(Path(name).glob("*.jsonl*"))), "")
        raise UsageError(
            f"{name} is a folder without a label store and without Parquet files: name a label "
            f"file{near}"
        )
    for part in parts or [name]:
        for line in lines_of(part):
            yield Located(line.where, outcome_of(line))


def source_state(name: str) -> Hashable:
    """Return what changes when stored outcomes are written again; nothing of remote files."""
    if is_store(Path(name)):
        from labeler.store.disk import DiskStore  # noqa: PLC0415 - not needed for files

        with DiskStore(name, create=False) as store:
            return store.extent
    states = ((file, file.stat()) for file in local_files(name))
    return tuple((file, one.st_ino, one.st_size, one.st_mtime_ns) for file, one in states)


def as_outcomes(outcomes: str | Path | Iterable[AnyOutcome]) -> Iterable[AnyOutcome]:
    """Return the outcomes of a Python function's argument: of a file or store, or the same ones.

    Raises:
        UsageError: the argument is neither; or as for :func:`checked_outcomes`.
    """
    if isinstance(outcomes, str | Path):
        return checked_outcomes(outcomes)
    given: object = outcomes
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes | BaseModel):
        return checked(outcomes)
    raise UsageError(
        f"outcomes are a label file, a store's folder, or a list of what labeler.label returns, "
        f"not {type(given).__name__}; put one record in a list"
    )


def measurable(outcomes: str | Path | Iterable[AnyOutcome]) -> Iterable[AnyOutcome] | NumbersFile:
    """Return outcomes as :func:`as_outcomes`, or the rows of a numbers file."""
    numbers = numbers_of(outcomes) if isinstance(outcomes, str | Path) else None
    return numbers or as_outcomes(outcomes)


@named_keywords
def read_labels(labels: str | Path) -> Iterator[Outcome]:
    """Read labels and failures from a label file, standard input (``-``), or a store's folder.

    Other outcomes, such as scores, are skipped.

    Args:
        labels: path of the file or folder.

    Returns:
        Labels and failures, read one by one.

    Raises:
        UsageError: the file or folder does not exist, or a line is not an outcome.
        StoreError: the store is damaged.

    Example:
        >>> path = labels.save(folder / "labels.jsonl")
        >>> sum(1 for _ in labeler.api.read_labels(folder / "labels.jsonl"))
        14
    """
    name = str(labels)
    found = checked_outcomes(labels).through(
        require_labels(name), partial(records_of, kind="label")
    )
    return cast("Iterator[Outcome]", found)


def measure_outcomes(
    outcomes: Iterable[AnyOutcome],
    metrics: Sequence[Metric] | None = None,
    *,
    facts: bool = False,
    aliases: bool = True,
    others: list[Metric] | None = None,
) -> Iterator[MetricsRow]:
    """Measure outcomes one by one.

    Args:
        outcomes: records and failures; those without a metric are skipped.
        metrics: by default each metric once, in its default definition, that records of the row's
            kind, and labels of its profile, have the fields for.
        facts: True for rows with :class:`~labeler.calculators.tally.RowFacts`.
        aliases: False to leave out default metrics that equal another.
        others: default metrics of other kinds than labels are added here as their records occur.
    """
    measurer, known = Measurer(metrics, facts=facts, aliases=aliases), {LABEL}
    for position, (outcome, kind) in enumerate(with_kinds(outcomes, measurer.measured)):
        if not (measured := measurer.measured(kind)):
            continue
        if others is not None and metrics is None and kind not in known:
            known.add(kind)
            others += measured
        yield measurer.row(outcome, position, kind)


def with_kinds(
    outcomes: Iterable[AnyOutcome], is_measured: Callable[[str], object]
) -> Iterator[tuple[AnyOutcome, str]]:
    """Yield each outcome with the kind that was asked for.

    An unreadable row counts as the kind of the first readable one if that is measured, else as a
    label; unreadable rows before it are yielded after it is known.
    """
    left = iter(outcomes)
    unread: list[AnyOutcome] = []
    of_unread = LABEL
    for outcome in left:
        unread.append(outcome)
        if kind := requested_kind(outcome):
            of_unread = kind if is_measured(kind) else LABEL
            break
    for outcome in chain(unread, left):
        yield outcome, requested_kind(outcome) or of_unread


# The texts of each id: in one set of labels, an id names one row.

_BITS = 64 // len(COMPARED)
_MASK = (1 << _BITS) - 1
_TEXT = attrgetter("text")


class RowTexts:
    """Where each id was first read and with what texts, in 25 to 30 bytes an id.

    Labels that other splitters cut are not compared: they differ in their sentences alone. Records
    of other kinds than labels are compared within their printed signature.
    """

    def __init__(self) -> None:
        self._texts, self._lines = DigestMap(), array("I")
        self._files: list[tuple[int, str]] = []
        """Each file with the number of its first id."""

    def check(self, where: str, outcome: AnyOutcome) -> None:
        """Note the texts of a record and its origin ``where``, which may end in a number.

        Raises:
            UsageError: the id was read before with other texts.
        """
        example = getattr(outcome, "example", None)
        if not isinstance(example, KeyedExample):
            return
        made_by = "" if outcome.kind == "label" else getattr(outcome, "printed", "")
        digest = row_digest(example.id, f"{outcome.kind}\0{made_by}\0{example.splitter}")
        documents = (*map(len, example.documents), *map(_TEXT, chain(*example.documents)))
        parts = (example.question, documents, tuple(map(_TEXT, example.response)))
        # A hash of each part, the same in this process only, side by side in 63 bits below a 1.
        first_two = hash(parts[0]) & _MASK | (hash(parts[1]) & _MASK) << _BITS
        texts = first_two | (hash(parts[2]) & _MASK) << 2 * _BITS | 1 << len(COMPARED) * _BITS
        if not (first := self._texts.add(digest, texts)):
            self._note(where)
        elif differing := texts ^ first:
            named = [
                part for place, part in enumerate(COMPARED) if differing >> place * _BITS & _MASK
            ]
            raise other_texts(where, example.id, named, self._place(self._texts.index(digest)))

    def _note(self, where: str) -> None:
        name = where.rstrip("0123456789")
        line = where[len(name) :]
        if line.startswith("0") or len(line) > _DIGITS:  # a part of the name
            name, line = where, ""
        if not self._files or self._files[-1][1] != name:
            self._files.append((len(self._lines), name))
        self._lines.append(int(line or 0))

    def _place(self, number: int) -> str:
        name = next(name for first, name in reversed(self._files) if first <= number)
        return f"{name}{self._lines[number] or ''}"


_DIGITS = 9
"""Digits of a line's number at most."""
