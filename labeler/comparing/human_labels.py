"""What people said of records and sentences, read from JSON Lines or CSV.

A row names a record (``id``), where it speaks of a sentence that sentence's key (``sentence``),
and, where several people judged, who did (``annotator``). What was judged stands either in the
columns ``field`` and ``value``, or in columns named after the fields themselves::

    id,sentence,annotator,field,value          id,sentence,annotator,supported
    r1,a,ann,supported,yes                     r1,a,ann,yes
    r1,,ann,adherence,1                        r1,b,ann,no

Fields of a sentence are ``relevant`` and ``utilized`` (document sentences, ``0a``) and
``supported`` (response sentences, ``a``); fields of a record are ``overall_supported`` and the id
of any metric. A verdict is yes or no; a metric's value is a number from 0 to 1.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labeler.calculators import METRICS
from labeler.data.lines import Line, parse_object, read_lines
from labeler.data.parsing import id_of, reject_surrogates
from labeler.errors import BadRow
from labeler.sentences.keys import position

DOCUMENT_FIELDS = ("relevant", "utilized")
RESPONSE_FIELDS = ("supported",)
SENTENCE_FIELDS = (*DOCUMENT_FIELDS, *RESPONSE_FIELDS)
OVERALL = "overall_supported"

_YES = frozenset({"1", "1.0", "true", "yes", "y"})
_NO = frozenset({"0", "0.0", "false", "no", "n"})
_FRAME = ("id", "sentence", "annotator", "field", "value")
_GUARDED = re.compile(r"'[=+\-@\t\r]")
"""How a cell begins that was kept from reading as a formula, as in CSV files that we write."""
_PLACES = {0: "document", 1: "response", 2: "reference"}


class HumanLabel(NamedTuple):
    """One judgement of one person.

    Attributes:
        id: the record's id.
        field: ``relevant``, ``utilized``, ``supported``, ``overall_supported``, or a metric's id.
        sentence: key of the sentence that it speaks of; ``None`` where it speaks of the record.
        annotator: who judged; empty where the file does not say.
        value: from 0 to 1; 1 is yes.
        where: ``FILE:LINE``.
    """

    id: str
    field: str
    sentence: str | None
    annotator: str
    value: float
    where: str


class HumanLabels(NamedTuple):
    """What a file of human labels holds.

    Attributes:
        labels: the judgements, in the order of the file.
        repeated: judgements that repeat an earlier one, and are left out.
        ignored: columns that name no field, such as comments.
    """

    labels: tuple[HumanLabel, ...]
    repeated: int
    ignored: tuple[str, ...]


def read_human_labels(path: str | Path) -> HumanLabels:
    """Read human labels from JSON Lines, or from CSV where the name ends in ``.csv``.

    Either may be packed by gzip; ``-`` is JSON Lines from standard input.

    Raises:
        UsageError: the file cannot be read, a row is wrong, or one person says two things of the
            same; the message names file and line.
    """
    name = str(path).lower().removesuffix(".gz")
    rows = _csv_rows(path) if name.endswith(".csv") else _json_rows(path)
    found: dict[tuple[str, str, str | None, str], HumanLabel] = {}
    repeated, ignored = 0, dict[str, None]()
    for where, row in rows:
        cells, others = _cells(row, where)
        ignored.update(dict.fromkeys(others))
        for label in _labels(row, cells, where):
            known = found.setdefault(label[:4], label)
            if known.value != label.value:
                raise _contradiction(known, label)
            repeated += known is not label
    return HumanLabels(tuple(found.values()), repeated, tuple(ignored))


def _contradiction(known: HumanLabel, label: HumanLabel) -> BadRow:
    who = f"annotator {label.annotator!r:.40}" if label.annotator else "the same unnamed annotator"
    return BadRow(
        f"{label.where}: record {label.id!r:.80}: {who} gives {label.field} the value "
        f"{label.value:g} here and {known.value:g} at {known.where}; keep one of the two, or name "
        "the annotators",
        reason="contradiction",
    )


def _json_rows(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in read_lines(path):
        yield line.where, parse_object(line)


def _csv_rows(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows by the names in the first line; empty cells are ``None``."""
    source = _Texts(read_lines(path))
    reader = csv.reader(source, strict=True)
    names: list[str] | None = None
    try:
        for cells in reader:
            if names is None:
                names = _header(cells, source.where)
                continue
            if len(cells) != len(names):
                raise BadRow(
                    f"{source.where}: {len(cells)} cells under {len(names)} columns; put cells "
                    "that hold a comma into double quotes",
                    reason="wrong_type",
                )
            yield source.where, _filled(names, cells)
    except csv.Error as error:
        raise BadRow(
            f"{source.where}: not CSV: {error}; write commas between cells, double quotes round "
            "cells that hold a comma or a quote",
            reason="invalid_csv",
        ) from error


def _filled(names: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    stripped = (cell.strip() for cell in cells)
    return {
        name: (cell[1:] if _GUARDED.match(cell) else cell) or None
        for name, cell in zip(names, stripped, strict=True)
    }


def _header(cells: Sequence[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and (parted := re.search("[;\t|]", names[0])):
        raise BadRow(
            f"{where}: cells are parted by {parted[0]!r} here; write commas between them",
            reason="invalid_csv",
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadRow(f"{where}: column {twice[0]!r:.40} stands twice", reason="wrong_type")
    return names


class _Texts:
    """Lines as text, remembering where the last one stands."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.where = ""
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        for where, content in self._lines:
            self.where = where
            try:
                yield content.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadRow(
                    f"{where}: byte {error.start} ({error.object[error.start]:#04x}) is not UTF-8; "
                    "convert the file to UTF-8",
                    reason="not_utf8",
                ) from error


def _cells(row: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    """The judged fields of a row with their values, and the columns that are none.

    Raises:
        BadRow: the row judges nothing, or a field does not exist.
    """
    if "field" in row:
        field = row["field"]
        if not isinstance(field, str) or not _is_field(field):
            raise BadRow(
                f"{where}{_of(row)}: 'field' is {_shown(field)}; "
                f"{_fields_like(*[field] if isinstance(field, str) else [])}",
                reason="unknown_field",
            )
        if row.get("value") is None:
            raise BadRow(
                f"{where}{_of(row)}: no 'value' for {field!r}; leave the row out where nobody "
                "judged",
                reason="missing_field",
            )
        return {field: row["value"]}, [name for name in row if name not in _FRAME]
    if row.get("kind") == "correction":
        raise BadRow(
            f"{where}{_of(row)}: a correction of a label; the labels that it speaks of are needed "
            "to read it: labeler.comparing.corrected_labels.human_labels, or "
            "'labeler agree --human'",
            reason="wrong_type",
        )
    judged = {name: value for name, value in row.items() if _is_field(name)}
    others = [name for name in row if name not in _FRAME and name not in judged]
    if not judged:
        raise BadRow(
            f"{where}{_of(row)}: nothing is judged here; give 'field' and 'value', or a column "
            f"named after a field; {_fields_like(*others)}",
            reason="missing_field",
        )
    return {name: value for name, value in judged.items() if value is not None}, others


def _is_field(name: str) -> bool:
    # Never a look-up by dotted name: a column of a stranger's file would import what it names.
    return name in SENTENCE_FIELDS or name == OVERALL or name in METRICS


def _fields_like(*names: str) -> str:
    """The fields that there are, the nearest to some wrong names first."""
    fields = [*SENTENCE_FIELDS, OVERALL, *METRICS]
    near = [each for name in names for each in difflib.get_close_matches(name, fields, n=1)]
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    verdicts = ", ".join([*SENTENCE_FIELDS, OVERALL])
    return f"{hint}fields are {verdicts}, and the ids of metrics (labeler metrics --list)"


def _of(row: Mapping[str, Any]) -> str:
    return "" if row.get("id") is None else f" ({_shown(row['id'])})"


def _shown(value: object) -> str:
    """A value as errors show it; of what is nested, only its type: its depth has no limit."""
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.80}"
    return f"a {type(value).__name__}"


def _labels(row: Mapping[str, Any], cells: Mapping[str, Any], where: str) -> Iterable[HumanLabel]:
    """The judgements of a row.

    Raises:
        BadRow: its id, sentence, annotator or a value is missing or wrong.
    """
    if row.get("id") is None:
        raise BadRow(
            f"{where}: no 'id'; a row needs the id of the record that it speaks of",
            reason="missing_field",
        )
    name = id_of({"id": row["id"]}, where)
    where_of = f"{where} ({name!r:.80})"
    annotator = _text(row, "annotator", where_of) or ""
    sentence = _text(row, "sentence", where_of)
    reject_surrogates({"id": name, "annotator": annotator, "sentence": sentence}, where_of)
    for field, given in cells.items():
        _check_sentence(field, sentence, where_of)
        value = _value(field, given, where_of)
        yield HumanLabel(name, field, sentence, annotator, value, where)


def _text(row: Mapping[str, Any], name: str, where: str) -> str | None:
    given = row.get(name)
    if given is None or given == "":
        return None
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise BadRow(
            f"{where}: {name!r} must be a text, got {type(given).__name__}", reason="wrong_type"
        )
    return str(given)


def _check_sentence(field: str, sentence: str | None, where: str) -> None:
    """Refuse a sentence field without a fitting key, and a record field with one."""
    if field not in SENTENCE_FIELDS:
        if sentence is not None:
            raise BadRow(
                f"{where}: {field!r} speaks of the whole record, and 'sentence' is "
                f"{sentence!r:.40}; leave it empty",
                reason="wrong_type",
            )
        return
    wanted = "document" if field in DOCUMENT_FIELDS else "response"
    example = "0a" if wanted == "document" else "a"
    got = _place(sentence)
    if got != wanted:
        raise BadRow(
            f"{where}: {field!r} speaks of a sentence of a {wanted}, and 'sentence' is "
            f"{sentence!r:.40}; give its key, such as {example} (labeler show prints all)",
            reason="wrong_key",
        )


def _place(sentence: str | None) -> str | None:
    """Whether a key is of a document or of the response; ``None`` where it is no key."""
    try:
        return None if sentence is None else _PLACES[position(sentence).part]
    except ValueError:
        return None


def _value(field: str, given: object, where: str) -> float:
    verdict = field in SENTENCE_FIELDS or field == OVERALL
    read: Callable[[str], float | None] = _yes_or_no if verdict else _number
    allowed = "yes or no (true, false, 1, 0)" if verdict else "a number from 0 to 1, or yes or no"
    value = read(str(given).strip().lower()) if isinstance(given, str | int | float) else None
    if value is None:
        scale = "" if verdict else "; bring other scales to it: 1 to 4 as (value - 1) / 3"
        raise BadRow(
            f"{where}: {field!r} is {_shown(given)}; allowed: {allowed}{scale}",
            reason="wrong_value",
        )
    return value


def _yes_or_no(text: str) -> float | None:
    if text in _YES:
        return 1.0
    return 0.0 if text in _NO else None


def _number(text: str) -> float | None:
    verdict = _yes_or_no(text)
    if verdict is not None:
        return verdict
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
