"""What columns mean by their names: presets of other systems, and words of many languages.

Names are compared word by word, so ``model_answer``, ``modelAnswer`` and ``Model Answer`` mean a
response, ``expected_answer`` a reference, and ``answer_length`` neither.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from string import ascii_lowercase
from typing import Any

from labeler.catalog import Catalog, snake_case
from labeler.data.columns import AMBIGUOUS, Choice, ColumnPath, Columns
from labeler.data.documents import empty_remedy, read_documents
from labeler.data.parsing import REQUIRED, is_native, said
from labeler.data.written_values import is_missing, written_or_same
from labeler.errors import BadRow, UsageError
from labeler.sentences.words import read_table


@dataclass(frozen=True)
class Preset:
    """The columns of one system's rows.

    Attributes:
        system: the system that writes such rows.
        columns: for each field of an example, its candidate columns; the first that a row has is
            used. :mod:`labeler.data.columns` defines their syntax.
        turns: column of messages that hold question, response and history, if there is one.
    """

    system: str
    columns: Mapping[str, tuple[str, ...]]
    turns: str = ""


_TABLE = read_table(__file__, "presets")
PRESETS: Catalog[Preset] = Catalog("preset")


def _preset(table: Mapping[str, str]) -> Preset:
    """Return a preset as ``presets.toml`` writes it: with spaces between candidates."""
    own = table if "question" in table else {**_TABLE["next_to_turns"], **table}
    columns = {name: tuple(own[name].split()) for name in own if name not in {"system", "turns"}}
    return Preset(own["system"], columns, own.get("turns", ""))


for _name, _columns_of_system in _TABLE["presets"].items():
    PRESETS.add(_name, _preset(_columns_of_system))


def choose_columns(
    given: Mapping[str, Any] | None = None,
    preset: str | None = None,
    split: str | None = None,
) -> Columns:
    r"""Return the column of each field.

    Args:
        given: columns by field, several as a list or separated by commas; they override those of
            the preset.
        preset: the name of a preset, or of a third party's as ``package.module:name``.
        split: separator of documents in one text; ``\\n`` and ``\\t`` may stand for characters.

    Raises:
        UnknownName: no preset has that name.
        UsageError: the named object is not a preset, a field is unknown, a column is neither a name
            nor a path, or the separator is empty.
    """
    if split is not None:
        split = split.replace("\\n", "\n").replace("\\t", "\t")
        if not split:
            raise UsageError("--split-documents is empty: give a separator, such as '\\n\\n'")
    named = {field: (Choice.parse(field, names),) for field, names in (given or {}).items()}
    own = Columns(named, frozenset(named), split)
    if preset is None:
        return own
    found: object = PRESETS[preset]
    if not isinstance(found, Preset):
        raise UsageError(f"{preset!r} is a {type(found).__name__}, no labeler.data.presets.Preset")
    return own.over(_columns_in(found))


def _columns_in(preset: Preset) -> Columns:
    found = Columns(
        {
            field: tuple(Choice.parse(field, one) for one in names)
            for field, names in preset.columns.items()
        }
    )
    if preset.turns:
        found = replace(found, turns=ColumnPath.parse(preset.turns))
    return found


def recognized(
    row: Mapping[str, Any], where: str, own: Columns
) -> tuple[Columns | None, dict[str, str]]:
    """Return the columns of a row whose fields have other names; ``None`` if none are known.

    Args:
        row: the row.
        where: its place, for errors and notices.
        own: the columns that the user named, which take precedence.

    Returns:
        The columns of the only preset that fits, numbered columns as documents, or both; and
        notices about them, by the preset's name or ``numbered``.

    Raises:
        BadRow: several presets fit.
    """
    notices: dict[str, str] = {}
    found = only_preset(row, where, own)
    if not found:
        has_documents = row.get("documents") is not None or own.reads("documents", row)
        names = [] if has_documents else numbered_documents(row)
        if not names:
            return None, notices
        paths = Choice(tuple(ColumnPath(name, (name,)) for name in names), combined=True)
        numbered = replace(own, choices={**own.choices, "documents": (paths,)})
        read = str(numbered.choices["documents"][0]).replace(",", ", ")
        notices["numbered"] = f"{where} has numbered documents, read in this order: {read}"
        if is_native(row, numbered.choices) or not (found := only_preset(row, where, numbered)):
            return numbered, notices
    name, columns = found
    used = ", ".join(f"{field}={path}" for field, path in columns.used(row).items())
    notices[name] = f"{where} has the columns of {name}: reading by --preset {name} ({used})"
    return columns, notices


def only_preset(row: Mapping[str, Any], where: str, own: Columns) -> tuple[str, Columns] | None:
    """Return the preset that fits a row, with its columns; ``None`` if none fits.

    Of several that read the same columns it is the one that reads the most fields. Columns of texts
    count more than one of messages.

    Args:
        row: the row.
        where: its place, for errors.
        own: the columns that the user named, which take precedence.

    Raises:
        BadRow: several fit that read other columns.
    """
    columns = {name: own.over(_columns(name)) for name in PRESETS}
    used = {name: one.used(row) for name, one in columns.items()}
    every = {name: fields for name, fields in used.items() if fields.keys() >= set(REQUIRED)}
    fitting = {name: fields for name, fields in every.items() if not PRESETS[name].turns} or every
    if not fitting:
        return None
    most = max(fitting, key=lambda name: len(fitting[name]))
    others = [name for name in fitting if _differ(fitting[name], fitting[most])]
    if others:
        names = [name for name in fitting if name in (most, *others)]
        raise BadRow(
            f"{where} has the columns of {' and of '.join(names)}: pass "
            f"{' or '.join(f'--preset={name}' for name in names)}",
            reason=AMBIGUOUS,
        )
    read = fitting[most]["response"]
    if "response" not in own.named and meaning_of(read) == ("response", _MAYBE_RIGHT):
        listed = (name for name, value in row.items() if _are_texts(value))
        lone = {name: f"{name}[0]" for name in listed if meaning_of(str(name)) != meaning_of(read)}
        texts = {n: v[0] if n in lone else v for n, v in row.items()}
        texts = {name: value for name, value in texts.items() if isinstance(value, str)}
        if (clearer := mappings(texts).get("response", read)) != read and clearer in texts:
            path = lone.get(clearer, clearer)
            other, right = shlex.quote(f"response={path}"), shlex.quote(f"reference={read}")
            raise BadRow(
                f"{where} has {read!r}, which may be the right answer, and {clearer!r}: pass --map "
                f"{other} --map {right} or --map {shlex.quote(f'response={read}')}",
                reason=AMBIGUOUS,
            )
    return most, columns[most]


def _differ(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    shared = one.keys() & other.keys()
    return any(one[field].removesuffix("[]") != other[field].removesuffix("[]") for field in shared)


def has_fields(row: Mapping[str, Any]) -> bool:
    """Return True if a row can be read, or its columns mean a question and a response."""
    if is_native(row) or any(_columns(name).fits(row) for name in PRESETS):
        return True
    meant = {name: path for name, path in mappings(row).items() if "[" not in path}
    return all(row.get(name) is not None or name in meant for name in ("question", "response"))


@cache
def _columns(name: str) -> Columns:
    return _columns_in(PRESETS[name])


_NOUNS = {field: nouns.split() for field, nouns in _TABLE["nouns"].items()}
"""The last words of names, in singular, the clearest first."""
_SINGULAR = {noun: field for field, nouns in _NOUNS.items() for noun in nouns}
_MAYBE_RIGHT = _NOUNS["response"].index("answer")
"""Rank of an answer that may be the right one where another column means a response."""
_WORDS = {name: frozenset(words.split()) for name, words in _TABLE["words"].items()}
_EXPECTED = _WORDS["expected"].union(_NOUNS["reference"])
_OF_MODEL = _WORDS["of_model"].union(_NOUNS["response"][:_MAYBE_RIGHT])
"""Words that make a reference, and a model's, of an answer."""
_NUMBERED = re.compile(
    r"([\w .-]*?[^\W\d_])[_ ./\[-]?(\d{1,6}|(?:(?<=[a-z])(?=[A-Z])|(?<=[_ ./\[-]))[a-zA-Z]{1,5})\]?"
    r"((?:[./](?:\w+[._])?(?:text|content))?)"
)
"""A stem and a number, of an object perhaps with the name of its text."""
_LETTERS = (list(ascii_lowercase), _TABLE["numerals"].split())
"""Letters that number columns, in their order, and Roman numerals."""
_PAIR = frozenset("ab12")
"""Numbers of two answers that are compared."""
_DEEPEST = 3
_MOST_COLUMNS = 1_000
_LIKE = 0.7
"""Likeness of a misspelled name, from 0 to 1."""


def meaning_of(name: str) -> tuple[str, int] | None:
    """Return the field that a column's name means, and the rank of its noun in the field's nouns.

    Args:
        name: a column, or a path into it.
    """
    parts = name.replace("[0]", "").split(".")
    words = [word for part in parts for word in snake_case(part).split("_")]
    words = [w if w in _SINGULAR else re.sub("ies$", "y", w).removesuffix("s") for w in words]
    while len(words) > 1 and (words[-1] in _WORDS["generic"] or len(words[-1]) == 1):
        words.pop()
    noun = words[-1]
    if noun in {"result", "reference"} and not _WORDS["found"].isdisjoint(words):
        return "documents", 0
    field = _SINGULAR.get(noun)
    if field is None or not _WORDS["others"].isdisjoint(words):
        return None
    if field != "reference" and not _EXPECTED.isdisjoint(words):
        return ("reference", 0) if field == "response" else None
    is_models = noun == "answer" and not _OF_MODEL.isdisjoint(words)
    return field, 0 if is_models else _NOUNS[field].index(noun)


def mappings(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field that rows lack under the field's own name, so far as known.

    Args:
        columns: the columns of all rows, each with a value.

    Returns:
        For each field a column or path, as ``--map`` takes it.
    """
    ranked: dict[str, tuple[tuple[int, ...], str, Any]] = {}
    for path, value, is_written in _paths(columns, ""):
        for field, rank in _meant(path, value, is_written=is_written).items():
            is_object = isinstance(value, Mapping) and field != "documents"
            # Texts are clearer than objects, and an empty value may hold anything.
            place = (is_object, "[" in path, value in ([], ""), rank, path.count("."))
            known = ranked.get(field)
            if path != field and (not known or place < known[0]) and _fits(field, value):
                ranked[field] = (place, path, value)
    wanted = [name for name in (*REQUIRED, "reference") if not _fits(name, columns.get(name))]
    if "documents" in wanted and numbered_documents(columns):
        wanted.remove("documents")
    words = [one for one in columns if isinstance(one, str) and "_" not in snake_case(one)]
    for name in wanted:  # perhaps misspelled
        others = [one for one in words if columns[one] and one != name]
        if name not in ranked and (close := get_close_matches(name, others, 1, _LIKE)):
            ranked[name] = ((), close[0], columns[close[0]])
    if ranked.get("reference", ())[1:] == ranked.get("response", ())[1:]:
        ranked.pop("reference", None)
    found = {name: ranked[name][1:] for name in wanted if name in ranked}
    # A text is one document, unless a separator is named.
    return {
        name: f"{path}," if name == "documents" and isinstance(value, str) else path
        for name, (path, value) in found.items()
    }


def _meant(path: str, value: object, *, is_written: bool) -> dict[str, int]:
    """Return the fields that a column may be read as, each with the rank of its name."""
    field, rank = meaning_of(path) or ("", 0)
    is_object = isinstance(value, Mapping) and field != "documents"
    if not field or (is_written and (is_object or field in {"question", "response"})):
        return {}  # a text is judged as it is
    holder = meaning_of(path.rpartition("[0]")[0]) or ("", 0)
    if "[" in path and field == "documents" and isinstance(value, str):
        return {}  # other rows may have several
    if holder[0] == "documents" != field:  # a text of a document
        return {}
    last = {"reference": len(_NOUNS["reference"])}
    is_several = _are_texts(value) or (not isinstance(value, str) and path.endswith("answers"))
    is_right = is_several or not {"doc", "document"}.isdisjoint(path.lower().split(".")[:-1])
    # Several answers are the right ones, but for options; so are those in a data set's document.
    if field == "response" and is_right and not path.endswith("choices"):
        return last
    return {field: rank, **(last if (field, rank) == ("response", _MAYBE_RIGHT) else {})}


def numbered_documents(row: Mapping[str, Any]) -> list[str]:
    """Return columns such as ``context_1`` and ``context_2``, in the order of their numbers.

    Numbers may be letters. Of several groups it is the one whose name means documents most clearly.
    One column alone is a group if it is the first, by a digit. There are none for ``context_a`` and
    ``context_b`` next to ``answer_a`` and ``answer_b``: each answer has its own.
    """
    groups = defaultdict[tuple[str, str, bool], list[tuple[str, str]]](list)
    for name, value in row.items():
        is_text = isinstance(name, str) and isinstance(value, str | Mapping | None)
        if is_text and (found := _NUMBERED.fullmatch(name)):
            mark = found[2].lower()
            groups[found[1], found[3], mark.isdecimal()].append((mark, name))
    meant = [(meaning_of(stem) or ("", 0), marks) for (stem, _, _), marks in groups.items()]
    ranked = [
        (rank, names, {mark for mark, _ in marks})
        for (field, rank), marks in meant
        if field == "documents" and (names := _sorted(marks))
    ]
    _, names, numbers = min(ranked, default=(0, [], set()))
    answered = {mark for (field, _), marks in meant if field == "response" for mark, _ in marks}
    is_one = row.get("response") is not None  # of the two, or next to right answers
    is_pair = answered < numbers <= _PAIR if is_one else answered == numbers
    return [] if answered and is_pair else names


def _sorted(marked: list[tuple[str, str]]) -> list[str]:
    """Return names in the order of their numbers or letters; none if these count nothing.

    Args:
        marked: numbers alone, or letters alone, each with the name of its column.
    """
    marks = {mark for mark, _ in marked}
    if marked[0][0].isdecimal():
        numbers = sorted((int(mark), name) for mark, name in marked)
        is_counted = len(numbers) > 1 or numbers[0][0] in {0, 1}
        return [name for _, name in numbers] if is_counted else []
    for letters in _LETTERS:
        if len(marks) > 1 and letters[0] in marks and marks.issubset(letters):
            return [name for _, name in sorted(marked, key=lambda one: letters.index(one[0]))]
    return []


def remedy_of(lacking: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the mappings that rows need, by the names of their columns."""
    columns: dict[str, Any] = {}
    for row in rows:
        if len(columns) < _MOST_COLUMNS:
            columns |= {n: v for n, v in row.items() if is_missing(columns.get(n))}
    for name in PRESETS:
        turns, used = PRESETS[name].turns, _columns(name).used(columns)
        if turns and turns == used.get("question") and "response" in used:
            path = shlex.quote(f"documents={mappings(columns).get('documents', 'COLUMN')}")
            return f". Pass --preset={name} --map {path}{empty_remedy('documents')}"
    empty = [name for name, value in columns.items() if is_missing(value)]
    meant = {field[0]: name for name in empty if (field := meaning_of(str(name)))}
    unknown = {
        name: str(meant.get(name, "COLUMN"))
        for name in lacking
        if is_missing(columns.get(name)) and name not in empty
    }
    found = unknown | mappings(columns)
    if not found and empty:
        return "; give each row a value there"
    if not found:
        return "; its columns have the names of fields: leave preset and columns (--map) out"
    is_text = found.get("documents", "").endswith(",")
    note = "; the comma makes a text one document, --split-documents SEP splits it" * is_text
    options = " ".join(f"--map {shlex.quote(f'{name}={path}')}" for name, path in found.items())
    return f". Pass {options}{note}"


def _paths(columns: Mapping[str, Any], prefix: str, levels: int = _DEEPEST) -> Iterator[Any]:
    """Yield paths, also into lists of one object, and values; True for one written as text."""
    for name, given in columns.items():
        value: Any = written_or_same(given)
        if not isinstance(name, str) or value is None or not set(name).isdisjoint(",[]"):
            continue
        yield prefix + name, value, isinstance(given, str) and not isinstance(value, str)
        is_one = isinstance(value, list) and len(value) == 1
        inner, step = (value[0], "[0].") if is_one else (value, ".")
        if is_one and isinstance(inner, Mapping):
            yield f"{prefix}{name}[0]", inner, False
        if isinstance(inner, Mapping) and levels > 1 and "." not in name:
            yield from _paths(inner, f"{prefix}{name}{step}", levels - 1)


def _fits(field: str, value: object) -> bool:
    if field == "documents":
        if isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value):
            return True  # empty, or an error names the field with the texts
        if isinstance(value, str):
            return bool(value.strip())
        return any(read_documents(value) or ())
    if _are_texts(value):
        return field == "reference"
    return isinstance(said(value, "question" if field == "question" else "response"), str)


def _are_texts(value: object) -> bool:
    """Return True for a list of texts that is not empty."""
    are_texts = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return are_texts and bool(value)
