"""Imports RAGBench rows: their sentences, their labels, and their quirks.

RAGBench (Friel, Belyi, Sanyal 2024, arXiv 2407.11005). What is spelled oddly is normalised and
counted; what cannot be normalised is kept as stored and named as a violation. The answer as
stored stays in the record, so that the ``ragbench`` dialect reproduces the published columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from labeler.data.formats import Raw, is_rereadable, json_rows, read_file
from labeler.data.label_files import parts_of
from labeler.data.lines import is_remote, read_lines
from labeler.data.parsing import joined_id, to_example
from labeler.errors import BadRow
from labeler.labels.answers import VerbatimLabel, VerbatimSupport
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, ReplyFacts, label_key
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Signature
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import document_key, response_key
from labeler.sentences.splitting import SPLITTERS, key_example

JUDGE = "ragbench"
"""Names these labels' origin in their signature."""

_IDENTITY = ("dataset_name", "id", "generation_model_name")
PUBLISHED = (
    "relevance_score",
    "utilization_score",
    "completeness_score",
    "adherence_score",
    "unsupported_response_sentence_keys",
    "ragas_faithfulness",
    "ragas_context_relevance",
    "trulens_groundedness",
    "trulens_context_relevance",
    "gpt3_adherence",
    "gpt3_context_relevance",
    "gpt35_utilization",
)
"""Columns of the data set that are kept as metadata, to compare with."""


def read_ragbench(*paths: str | Path) -> Iterator[Outcome]:
    """Read RAGBench rows; a row that cannot be read becomes a failure, named by file and row.

    Args:
        paths: Parquet, as the data set is published, or JSON Lines or any other format of rows;
            folders of Parquet files, patterns such as ``covidqa/*.parquet``, or ``-``.

    Raises:
        UsageError: a file cannot be read, or a pattern fits none.
    """
    for raw in chain.from_iterable(map(_raws, map(str, paths))):
        try:
            if isinstance(raw.fields, BadRow):
                raise raw.fields
            yield to_record(raw.fields, raw.where)
        except BadRow as error:
            yield LabelFailure(id=raw.where, reason=error.reason, message=str(error))


def _raws(name: str) -> Iterator[Raw]:
    """The rows that a name stands for; of what can be read once only, such as a pipe, the lines."""
    files = None if is_remote(name) else parts_of(name)
    for file in files or [name]:
        yield from read_file(file) if is_rereadable(file) else json_rows(read_lines(file))


def to_record(row: Mapping[str, Any], where: str = "row") -> LabelRecord:
    """Make a label record of one published row.

    The record's id is ``DATASET_NAME/ID/GENERATION_MODEL_NAME``: an id alone occurs twice where
    two generators answered one question.

    Raises:
        BadRow: a column is missing or malformed, or keys are not in RAGBench's scheme.
    """
    name = joined_id(row, _IDENTITY, where)
    if not isinstance(row.get("annotating_model_name"), str):
        raise BadRow(
            f"{where}: no annotating_model_name: is this RAGBench?", reason="missing_field"
        )
    where = f"{where} ({name!r})"
    example = _key(row, name, where)
    verbatim = _verbatim(row, where)
    signature = Signature(
        judge=JUDGE,
        model=row["annotating_model_name"],
        response_schema=load_schema().artifact,
        splitter=example.splitter,
        source=name,
    )
    checked = check_label(verbatim, example)
    changed = checked.label.model_dump() != verbatim.model_dump()
    return LabelRecord(
        key=label_key(example, signature),
        example=example,
        label=checked.label,
        verbatim=verbatim if changed else None,
        normalised=checked.normalised,
        violations=checked.violations,
        signature=signature,
        reply=ReplyFacts(served_model=row["annotating_model_name"], attempts=0),
    )


def _key(row: Mapping[str, Any], name: str, where: str) -> KeyedExample:
    _check_keys(row, where)
    metadata = {column: row.get(column) for column in (*_IDENTITY, "annotating_model_name")}
    metadata["published"] = {column: row.get(column) for column in PUBLISHED}
    shown = ("question", "documents", "response", "documents_sentences", "response_sentences")
    fields = {column: row.get(column) for column in shown} | {"id": name, "metadata": metadata}
    example = to_example(fields, where)
    try:
        return key_example(example, SPLITTERS["given"])
    except BadRow as error:
        raise BadRow(f"{where}: {error}", reason=error.reason) from error


def _check_keys(row: Mapping[str, Any], where: str) -> None:
    """Refuse rows whose sentences are not keyed by position: their labels would point elsewhere."""
    try:
        documents = [[key for key, _ in sentences] for sentences in row["documents_sentences"]]
        response = [key for key, _ in row["response_sentences"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BadRow(
            f"{where}: documents_sentences and response_sentences must hold [key, text] pairs",
            reason="wrong_type",
        ) from error
    expected = [[document_key(d, s) for s in range(len(keys))] for d, keys in enumerate(documents)]
    if documents != expected or response != [response_key(s) for s in range(len(response))]:
        raise BadRow(f"{where}: sentence keys do not follow their positions", reason="wrong_keys")


def _verbatim(row: Mapping[str, Any], where: str) -> VerbatimLabel:
    """The published answer, as stored.

    ``overall_supported`` is not a column; ``adherence_score`` carries its effect and stands in for
    it. It decides where a row is called adherent although one of its sentences is not supported,
    which is so in 62 of the 3,017 rows of covidqa, delucionqa, emanual and msmarco that were
    looked at; in all others the sentences alone give the same score.
    """
    try:
        return VerbatimLabel(
            relevance_explanation=row.get("relevance_explanation") or "",
            all_relevant_sentence_keys=row["all_relevant_sentence_keys"],
            overall_supported_explanation=row.get("overall_supported_explanation") or "",
            overall_supported=row["adherence_score"],
            sentence_support_information=tuple(
                VerbatimSupport(
                    response_sentence_key=entry["response_sentence_key"],
                    explanation=entry.get("explanation") or "",
                    supporting_sentence_keys=entry["supporting_sentence_keys"] or (),
                    fully_supported=entry["fully_supported"],
                )
                for entry in row["sentence_support_information"]
            ),
            all_utilized_sentence_keys=row["all_utilized_sentence_keys"],
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise BadRow(
            f"{where}: its label cannot be read ({type(error).__name__}); "
            "needed: the columns of the RAGBench data set",
            reason="wrong_type",
        ) from error
