"""One record, readable in a terminal: what was asked, what was judged, and why."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from labeler.characters import visible
from labeler.cli.terminal import console
from labeler.labels import SentenceSupport
from labeler.record import LabelFailure, LabelRecord, Outcome

_INDENT = 2


def print_outcome(outcome: Outcome) -> None:
    """Print a record, or why a row has none."""
    if isinstance(outcome, LabelFailure):
        _Page().failure(outcome)
    else:
        _Page().record(outcome)


class _Page:
    """Writes blocks of strangers' text, each made visible first."""

    def __init__(self) -> None:
        self._console = console()

    def failure(self, failure: LabelFailure) -> None:
        self._heading(f"{failure.id}: no label ({failure.reason})")
        self._text(failure.message)

    def record(self, record: LabelRecord) -> None:
        self._heading(record.id)
        self._text(f"{record.signature}")
        self._heading("question")
        self._text(record.example.question)
        self._documents(record)
        self._response(record)
        label = record.label
        verdict = "supported" if label.overall_supported else "not supported"
        self._heading(f"response as a whole: {verdict}")
        self._text(label.overall_supported_explanation)
        for violation in record.violations:
            self._text(f"kept as stored: {violation}", style="yellow")

    def _documents(self, record: LabelRecord) -> None:
        relevant = set(record.label.all_relevant_sentence_keys)
        utilized = set(record.label.all_utilized_sentence_keys)
        self._heading("documents  (R relevant, U utilized)")
        grid = _grid()
        for sentence in record.example.document_sentences():
            marks = ("R" if sentence.key in relevant else "·") + (
                "U" if sentence.key in utilized else "·"
            )
            style = "bold" if marks != "··" else "dim"
            _add(grid, marks, sentence.key, sentence.text, style)
        self._print(grid)
        self._heading("relevance")
        self._text(record.label.relevance_explanation)

    def _response(self, record: LabelRecord) -> None:
        judged: dict[str, list[SentenceSupport]] = {}
        for entry in record.label.sentence_support_information:
            judged.setdefault(entry.response_sentence_key, []).append(entry)
        self._heading("response  (✓ supported, ✗ not, ? not judged)")
        grid = _grid()
        for sentence in record.example.response:
            entries = judged.get(sentence.key, [])
            supported = bool(entries) and all(entry.fully_supported for entry in entries)
            mark = "?" if not entries else "✓" if supported else "✗"
            _add(grid, mark, sentence.key, sentence.text, "green" if supported else "red")
            for entry in entries:
                support = ", ".join(entry.supporting_sentence_keys) or "no support"
                _add(grid, "", "", f"{support}: {entry.explanation}", "")
        self._print(grid)

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(visible(text), style="bold underline"))

    def _text(self, text: str, *, style: str = "") -> None:
        self._print(Text(visible(text), style=style))

    def _print(self, block: Text | Table) -> None:
        self._console.print(Padding(block, (0, 0, 0, _INDENT)))


def _grid() -> Table:
    """Marks and keys in columns of their own, so that long sentences stay beside them."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(overflow="fold")
    return grid


def _add(grid: Table, mark: str, key: str, text: str, style: str) -> None:
    grid.add_row(*(Text(visible(part), style=style) for part in (mark, key, text)))
