"""Terminal view of one record: texts, label or score, and explanations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    SentenceSupport,
    Verdict,
    judged_sentences,
)
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, LabelRecord
from labeler.sentences.characters import visible
from labeler.sentences.display import console
from labeler.sentences.example import Sentence

_INDENT = 2
_VERDICTS: dict[Verdict, str] = {"entailment": "✓", "neutral": "·", "contradiction": "✗"}
_STYLES: dict[Verdict, str] = {"entailment": "green", "neutral": "yellow", "contradiction": "red"}


def outcome_text(outcome: AnyOutcome) -> str:
    """Return what :func:`print_outcome` prints, without styles."""
    shown = console()
    with shown.capture() as captured:
        print_outcome(outcome, shown)
    return "\n".join(map(str.rstrip, captured.get().strip("\n").splitlines()))


def print_outcome(outcome: AnyOutcome, shown: Console | None = None) -> None:
    """Print a record or a failure, by default on standard output."""
    view = _RecordView(shown or console())
    if isinstance(outcome, LabelFailure):
        view.failure(outcome)
    elif isinstance(outcome, LabelRecord):
        view.record(outcome)
    else:
        view.other(outcome)


class _RecordView:
    """Prints blocks of untrusted text, with control characters escaped."""

    def __init__(self, shown: Console) -> None:
        self._console = shown

    def failure(self, failure: LabelFailure) -> None:
        self._heading(f"{failure.id}: no label ({failure.reason})")
        self._text(failure.message)

    def record(self, record: LabelRecord) -> None:
        judged = judged_sentences(record.label).values()
        supported = sum(one.fully_supported for one in judged)
        self._heading(f"{record.id}: {supported} of {len(judged)} sentences supported")
        self._text(f"{record.signature}")
        self._conversation(record)
        self._heading("question")
        self._text(record.example.question)
        self._documents(record)
        self._response(record)
        label = record.label
        if isinstance(label, ClaimsLabelingOutput):
            self._claims(label)
        if isinstance(label, ReferenceLabelingOutput):
            self._reference(record, label)
        verdict = "supported" if label.overall_supported else "not supported"
        self._heading(f"response as a whole: {verdict}")
        absent = record.UNEXPLAINED if record.lacks_explanations else ""
        self._text(label.overall_supported_explanation or absent)
        for violation in record.violations:
            self._text(f"kept as stored: {violation}", style="yellow")

    def other(self, record: AnyRecord) -> None:
        """Print a record of another kind, as its class says."""
        for heading, below in record.shown():
            self._heading(heading)
            sentences = [each for each in below if isinstance(each, Sentence)]
            if sentences:
                self._sentences(sentences)
            for text in below:
                if isinstance(text, str):
                    self._text(text)

    def _conversation(self, record: LabelRecord) -> None:
        for turn in record.example.history:
            self._heading(f"earlier turn: {turn.role}")
            self._sentences(turn.sentences)
        for output in record.example.tool_outputs:
            self._heading(f"tool output{f': {output.name}' if output.name else ''}")
            self._sentences(output.sentences)

    def _documents(self, record: LabelRecord) -> None:
        relevant = set(record.label.all_relevant_sentence_keys)
        utilized = set(record.label.all_utilized_sentence_keys)
        self._heading("documents  (R relevant, U utilized)")
        grid = _grid()
        for sentence in record.example.document_sentences():
            marks = "R" if sentence.key in relevant else "·"
            marks += "U" if sentence.key in utilized else "·"
            style = "bold" if marks != "··" else "dim"
            _add(grid, marks, sentence.key, sentence.text, style)
        self._print(grid)
        self._heading("relevance")
        if record.label.relevance_explanation:
            self._text(record.label.relevance_explanation)
        if record.retrieval:
            self._text(str(record.retrieval))

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
                _add(grid, "", "", f"{support}: {record.why(entry)}", "")
        self._print(grid)

    def _claims(self, label: ClaimsLabelingOutput) -> None:
        self._heading("claims of the response  (✓ entailed, · neutral, ✗ contradicted, Q relevant)")
        grid = _grid()
        for claim in label.response_claims:
            mark = _VERDICTS[claim.verdict] + ("Q" if claim.relevant_to_question else "·")
            _add(grid, mark, claim.response_sentence_key, claim.claim, _STYLES[claim.verdict])
            _add(grid, "", "", _verdicts(claim), "")
        self._print(grid)
        self._without(label.response_sentences_without_claims)

    def _reference(self, record: LabelRecord, label: ReferenceLabelingOutput) -> None:
        self._heading("reference answer")
        self._sentences(record.example.reference or ())
        self._heading("claims of the reference  (response: ✓ entails, · neutral, ✗ contradicts)")
        grid = _grid()
        for claim in label.reference_claims:
            mark, style = _VERDICTS[claim.response_verdict], _STYLES[claim.response_verdict]
            _add(grid, mark, claim.reference_sentence_key, claim.claim, style)
            stated = ", ".join(claim.supporting_sentence_keys) or "no document sentence"
            _add(grid, "", "", f"documents: {stated}", "")
        self._print(grid)
        self._without(label.reference_sentences_without_claims)

    def _sentences(self, sentences: Iterable[Sentence]) -> None:
        grid = _grid()
        for sentence in sentences:
            _add(grid, "", sentence.key, sentence.text, "")
        self._print(grid)

    def _without(self, keys: Sequence[str]) -> None:
        if keys:
            self._text(f"without claims: {', '.join(keys)}")

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(visible(text), style="bold underline"))

    def _text(self, text: str, *, style: str = "") -> None:
        self._print(Text(visible(text), style=style))

    def _print(self, block: Text | Table) -> None:
        self._console.print(Padding(block, (0, 0, 0, _INDENT)))


def _verdicts(claim: ResponseClaim) -> str:
    """Return the verdicts on a claim, with their sentence keys."""
    found = [f"documents: {claim.verdict}"]
    if claim.supporting_sentence_keys:
        found.append(f"by {', '.join(claim.supporting_sentence_keys)}")
    if claim.contradicting_sentence_keys:
        found.append(f"against {', '.join(claim.contradicting_sentence_keys)}")
    verdicts = " ".join(found)
    if isinstance(claim, ComparedClaim):
        verdicts += f"; reference: {claim.reference_verdict}"
    return verdicts


def _grid() -> Table:
    """Return an empty table with columns for marks, keys and texts."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(overflow="fold")
    return grid


def _add(grid: Table, mark: str, key: str, text: str, style: str) -> None:
    grid.add_row(*(Text(visible(part), style=style) for part in (mark, key, text)))
