"""A record for readers: as JSON for the pages' scripts, and as text for a terminal.

The report, the review app and the label diff draw the same JSON. Every text is safe to show:
control and direction characters are written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from labeler.audit.registry import Finding
from labeler.calculators import Ratio
from labeler.calculators.tally import tally
from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    Verdict,
    judged_sentences,
)
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.sentences.characters import visible
from labeler.sentences.citations import locate_citations, source_sentences
from labeler.sentences.display import console, shortened
from labeler.sentences.example import Sentence

View = dict[str, Any]
"""A JSON object for a page's scripts, with every text safe to show."""


def safe(view: Mapping[str, object]) -> View:
    """Return a JSON object with control and direction characters of all texts written out."""
    return {visible(name): _safe(value) for name, value in view.items()}


def _safe(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return safe(value)
    return [_safe(each) for each in value] if isinstance(value, list | tuple) else value


def record_view(
    record: LabelRecord,
    *,
    metrics: Mapping[str, Ratio] | None = None,
    findings: Sequence[Finding] = (),
    doubt: float | None = None,
) -> View:
    """Return a record as JSON.

    Args:
        record: the record.
        metrics: its metrics by id.
        findings: its audit findings.
        doubt: its suspicion score, from 0 to 1.

    Returns:
        ``made`` has facts about the label's creation, for readers: model, time, requests, repairs,
        relevance. ``history`` and ``tool_outputs`` are there if the record has some, and ``cites``
        of a response sentence if it has citation markers; see :func:`label_view` for ``label``.
    """
    example, reply = record.example, record.reply
    made = {
        "model": reply.served_model,
        "at": reply.created_at,
        "requests": str(reply.attempts),
        "repairs": ", ".join(f"{count} {name}" for name, count in record.normalised.items()),
        "relevance": record.retrieval and str(record.retrieval),
        "answers": record.UNEXPLAINED if record.lacks_explanations else "",
    }
    view = {
        "id": record.id,
        "key": record.key,
        "signature": str(record.signature),
        "question": example.question,
        "documents": [_sentences(document) for document in example.documents],
        "response": _response(example.response, len(example.documents)),
        "reference": None if example.reference is None else _sentences(example.reference),
        "label": label_view(record),
        "metrics": {name: _metric(ratio) for name, ratio in (metrics or {}).items()},
        "findings": [finding_view(finding) for finding in findings],
        "doubt": doubt,
        "metadata": {name: str(value) for name, value in example.metadata.items()},
        "made": {name: fact for name, fact in made.items() if fact},
    }
    if example.history:
        view["history"] = [
            {"role": turn.role, "sentences": _sentences(turn.sentences)} for turn in example.history
        ]
    if example.tool_outputs:
        view["tool_outputs"] = [
            {"name": one.name or "", "sentences": _sentences(one.sentences)}
            for one in example.tool_outputs
        ]
    return safe(view)


def _sentences(sentences: Iterable[Sentence]) -> list[View]:
    return [{"key": sentence.key, "text": sentence.text} for sentence in sentences]


def _response(sentences: Sequence[Sentence], documents: int) -> list[View]:
    """Return response sentences with their citation markers, documents counted from 0.

    Those that only name sources, which no metric counts, have ``sources``.
    """
    views = _sentences(sentences)
    texts = [sentence.text for sentence in sentences]
    for place in source_sentences(texts):
        views[place]["sources"] = True
    for view, text, row in zip(views, texts, locate_citations(texts, documents), strict=True):
        if row:
            view["cites"] = [
                {
                    "marker": text[marker.start : marker.end],
                    "documents": sorted(cited.documents),
                    "missing": sorted(cited.missing),
                }
                for marker, cited in row
            ]
    return views


def label_view(record: LabelRecord) -> View:
    """Return a label of any profile as JSON.

    ``support`` has each judged response sentence by key. The documents give the ``verdict`` on a
    claim; the response gives it on a claim of the reference answer.
    """
    label = record.label
    claims = label.response_claims if isinstance(label, ClaimsLabelingOutput) else None
    reference = label.reference_claims if isinstance(label, ReferenceLabelingOutput) else None
    return safe(
        {
            "relevant": label.all_relevant_sentence_keys,
            "utilized": label.all_utilized_sentence_keys,
            "support": {
                key: {
                    "supported": entry.fully_supported,
                    "keys": entry.supporting_sentence_keys,
                    "explanation": record.why(entry),
                }
                for key, entry in judged_sentences(label).items()
            },
            "overall": label.overall_supported,
            "overall_explanation": label.overall_supported_explanation,
            "relevance_explanation": label.relevance_explanation,
            "claims": claims and [*map(_claim, claims)],
            "reference_claims": reference and [*map(_reference_claim, reference)],
        }
    )


def _claim(claim: ResponseClaim) -> View:
    return {
        "sentence": claim.response_sentence_key,
        "claim": claim.claim,
        "verdict": claim.verdict,
        "supporting": claim.supporting_sentence_keys,
        "contradicting": claim.contradicting_sentence_keys,
        "relevant": claim.relevant_to_question,
        "reference_verdict": claim.reference_verdict if isinstance(claim, ComparedClaim) else None,
    }


def _reference_claim(claim: ReferenceClaim) -> View:
    return {
        "sentence": claim.reference_sentence_key,
        "claim": claim.claim,
        "verdict": claim.response_verdict,
        "supporting": claim.supporting_sentence_keys,
        "contradicting": [],
        "relevant": None,
        "reference_verdict": None,
    }


def _metric(ratio: Ratio) -> View:
    """Return a value, and as it is printed: ``0.2500 (1/4)``, or ``undefined: REASON``."""
    value = ratio.value
    if value is None:
        return {"value": None, "text": f"undefined: {ratio.undefined or 'no value'}"}
    is_count = isinstance(ratio.numerator, int) and ratio.denominator
    parts = f" ({ratio.numerator}/{ratio.denominator})" if is_count else ""
    return {"value": value, "text": f"{value:.4f}{parts}"}


def finding_view(finding: Finding) -> View:
    """Return a finding, whose message may quote a judge, as JSON."""
    names = ("check", "severity", "message", "keys")
    return safe({name: getattr(finding, name) for name in names})


def failure_view(failure: LabelFailure) -> View:
    """Return a failed row as JSON; a file from elsewhere may give no reason."""
    failed = {"reason": failure.reason or "(none)", "message": failure.message}
    return safe({"id": failure.id, "failed": failed})


# Text for a terminal.

Row = list[Text]
"""Marks, a key and a text."""
Block = tuple[str, Sequence[Row], Sequence[Text]]
"""A heading, rows below it, and texts below these."""

_INDENT = 2
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "entailment": ("✓", "green"),
    "neutral": ("·", "yellow"),
    "contradiction": ("✗", "red"),
}
"""Mark and style of each verdict."""


def outcome_text(outcome: AnyOutcome) -> str:
    """Return what :func:`print_outcome` prints, without styles."""
    shown = console()
    with shown.capture() as captured:
        print_outcome(outcome, shown)
    return captured.get().strip("\n")


def print_outcome(outcome: AnyOutcome, shown: Console | None = None) -> None:
    """Print a record or a failure, by default on standard output."""
    shown = shown or console()
    found = list[Segment]()
    for heading, rows, texts in _blocks(outcome):
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, justify="right")
        grid.add_column(overflow="fold")
        for row in rows:
            grid.add_row(*row)
        below = ([grid] if rows else []) + [*texts]
        indented = [Padding(block, (0, 0, 0, _INDENT), expand=False) for block in below]
        found.append(Segment.line())
        for block in (_text(heading, "bold underline"), *indented):
            for line in shown.render_lines(block, pad=False):  # type: ignore[arg-type]  # Padding is one
                found += [*_stripped(line), Segment.line()]
    shown.print(Segments(found), end="")


def _stripped(line: Sequence[Segment]) -> list[Segment]:
    """Return a line without the blanks at its end, which a table adds."""
    found = list(line)
    while found and not found[-1].text.strip():
        found.pop()
    if found:
        found[-1] = found[-1]._replace(text=found[-1].text.rstrip())
    return found


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _row(mark: str, key: str, text: str, style: str = "") -> Row:
    return [_text(part, style) for part in (mark, key, text)]


def _rows(sentences: Iterable[Sentence]) -> list[Row]:
    return [_row("", sentence.key, sentence.text) for sentence in sentences]


def _blocks(outcome: AnyOutcome) -> Iterator[Block]:
    if isinstance(outcome, LabelFailure):
        yield f"{shortened(outcome.id)}: no label ({outcome.reason})", [], [_text(outcome.message)]
    elif isinstance(outcome, LabelRecord):
        yield from _label_blocks(outcome)
    else:  # of another kind, as its class says
        for heading, below in outcome.shown():
            texts = [_text(one) for one in below if isinstance(one, str)]
            yield heading, _rows(one for one in below if isinstance(one, Sentence)), texts


def _label_blocks(record: LabelRecord) -> Iterator[Block]:
    example, label = record.example, record.label
    head = f"{shortened(record.id)}: {tally(record).support_in_words}"
    yield head, [], [_text(str(record.signature))]
    for turn in example.history:
        yield f"earlier turn: {turn.role}", _rows(turn.sentences), []
    for output in example.tool_outputs:
        name = f": {output.name}" if output.name else ""
        yield f"tool output{name}", _rows(output.sentences), []
    yield "question", [], [_text(example.question)]
    yield "documents  (R relevant, U utilized)", [*_document_rows(record)], []
    about = (label.relevance_explanation, record.retrieval and str(record.retrieval))
    yield "relevance", [], [_text(text) for text in about if text]
    yield "response  (✓ supported, ✗ not, ? not judged)", [*_response_rows(record)], []
    if isinstance(label, ClaimsLabelingOutput):
        heading = "claims of the response  (✓ entailed, · neutral, ✗ contradicted, Q relevant)"
        yield heading, [*_claim_rows(label)], _without(label.response_sentences_without_claims)
    if isinstance(label, ReferenceLabelingOutput):
        yield "reference answer", _rows(example.reference or ()), []
        heading = "claims of the reference  (response: ✓ entails, · neutral, ✗ contradicts)"
        rows = [*_reference_rows(label)]
        yield heading, rows, _without(label.reference_sentences_without_claims)
    absent = record.UNEXPLAINED if record.lacks_explanations else ""
    texts = [_text(label.overall_supported_explanation or absent)]
    texts += [_text(f"kept as stored: {violation}", "yellow") for violation in record.violations]
    yield f"response as a whole: {'' if label.overall_supported else 'not '}supported", [], texts


def _document_rows(record: LabelRecord) -> Iterator[Row]:
    relevant = set(record.label.all_relevant_sentence_keys)
    utilized = set(record.label.all_utilized_sentence_keys)
    for sentence in record.example.document_sentences():
        uses = (("R", sentence.key in relevant), ("U", sentence.key in utilized))
        marks = "".join(letter if used else "·" for letter, used in uses)
        yield _row(marks, sentence.key, sentence.text, "dim" if marks == "··" else "bold")


def _response_rows(record: LabelRecord) -> Iterator[Row]:
    judged = judged_sentences(record.label)
    for sentence in record.example.response:
        entry = judged.get(sentence.key)
        mark = "?" if entry is None else "✓" if entry.fully_supported else "✗"
        style = "green" if entry and entry.fully_supported else "red"
        yield _row(mark, sentence.key, sentence.text, style)
        if entry is not None:
            support = ", ".join(entry.supporting_sentence_keys) or "no support"
            yield _row("", "", f"{support}: {record.why(entry)}")


def _claim_rows(label: ClaimsLabelingOutput) -> Iterator[Row]:
    for claim in label.response_claims:
        mark, style = _VERDICTS[claim.verdict]
        mark += "Q" if claim.relevant_to_question else "·"
        yield _row(mark, claim.response_sentence_key, claim.claim, style)
        by, against = claim.supporting_sentence_keys, claim.contradicting_sentence_keys
        found = f"documents: {claim.verdict}"
        found += f" by {', '.join(by)}" if by else ""
        found += f" against {', '.join(against)}" if against else ""
        if isinstance(claim, ComparedClaim):
            found += f"; reference: {claim.reference_verdict}"
        yield _row("", "", found)


def _reference_rows(label: ReferenceLabelingOutput) -> Iterator[Row]:
    for claim in label.reference_claims:
        mark, style = _VERDICTS[claim.response_verdict]
        yield _row(mark, claim.reference_sentence_key, claim.claim, style)
        stated = ", ".join(claim.supporting_sentence_keys) or "no document sentence"
        yield _row("", "", f"documents: {stated}")


def _without(keys: Sequence[str]) -> list[Text]:
    return [_text(f"without claims: {', '.join(keys)}")] if keys else []
