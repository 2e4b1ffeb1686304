"""Published rows of RAGBench as label records, and the splitter that they were made with.

RAGBench: Friel, Belyi, Sanyal 2024, arXiv 2407.11005. Variant spellings of keys are normalized and
counted; all else that breaks the contract is kept and reported as a violation. The record keeps the
published answer too, so that the ``ragbench`` definition reproduces the published columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from labeler.cli import options
from labeler.cli.options import check_label_target
from labeler.cli.terminal import SOME_FAILED
from labeler.data.formats import read_file
from labeler.data.label_files import parts_of
from labeler.data.parsing import joined_id, to_example
from labeler.errors import BadRow
from labeler.labels.answers import VerbatimLabel
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, ReplyFacts
from labeler.labels.signature import Signature, label_key, load_schema
from labeler.sentences.example import KeyedExample, document_key, letters
from labeler.sentences.splitting import SPLITTERS, key_example
from labeler.sentences.words import read_names

JUDGE = "ragbench"
"""The judge in the signature of imported labels."""

_IDENTITY = ("dataset_name", "id", "generation_model_name")
_LABEL = ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
_EXPLANATIONS = ("relevance_explanation", "overall_supported_explanation")
PUBLISHED = read_names(__file__, "columns")["published"]
"""Columns of the data set that are kept as metadata for comparison."""


def read_ragbench(*paths: str | Path) -> Iterator[Outcome]:
    """Read RAGBench rows; an unreadable row becomes a failure, named by file and row.

    Args:
        paths: files of any row format (the data set is published as Parquet), folders of Parquet
            files, patterns such as ``covidqa/*.parquet``, or ``-``.

    Returns:
        Label records with the published labels, and failures.

    Raises:
        UsageError: a file cannot be read, or a pattern matches no file.

    Example:
        >>> found = read_ragbench("covidqa/*.parquet")  # doctest: +SKIP
    """
    files = (file for name in map(str, paths) for file in parts_of(name) or [name])
    for raw in chain.from_iterable(map(read_file, files)):
        try:
            if isinstance(raw.fields, BadRow):
                raise raw.fields
            yield to_record(raw.fields, raw.where)
        except BadRow as error:
            yield LabelFailure(id=raw.where, reason=error.reason, message=str(error))


def to_record(row: Mapping[str, Any], where: str = "row") -> LabelRecord:
    """Convert one published row to a label record.

    The record's id is ``DATASET_NAME/ID/GENERATION_MODEL_NAME``, because an id alone occurs twice
    if two generators answered one question.

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
    changed = checked.answer.model_dump() != verbatim.model_dump()
    return LabelRecord(
        key=label_key(example, signature),
        example=example,
        label=checked.answer,
        verbatim=verbatim if changed else None,
        normalised=dict(checked.repairs),
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
    """Reject rows whose keys do not follow position; their labels would point elsewhere."""
    try:
        documents = [[key for key, _ in sentences] for sentences in row["documents_sentences"]]
        response = [key for key, _ in row["response_sentences"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BadRow(
            f"{where}: documents_sentences and response_sentences must hold [key, text] pairs"
        ) from error
    expected = [[document_key(d, s) for s in range(len(keys))] for d, keys in enumerate(documents)]
    if documents != expected or response != [letters(s) for s in range(len(response))]:
        raise BadRow(f"{where}: sentence keys do not follow their positions", reason="wrong_keys")


def _verbatim(row: Mapping[str, Any], where: str) -> VerbatimLabel:
    """Return the published answer unchanged.

    ``overall_supported`` is not a column; ``adherence_score`` stands in for it. The two differ from
    the sentences in 62 of 3,017 rows of covidqa, delucionqa, emanual and msmarco: these rows are
    adherent although a sentence is unsupported.
    """
    try:
        fields = {name: row[name] for name in _LABEL} | {
            "overall_supported": row["adherence_score"]
        }
        fields |= {name: row.get(name) or "" for name in _EXPLANATIONS}
        fields["sentence_support_information"] = [
            {
                "explanation": entry.get("explanation") or "",
                "supporting_sentence_keys": entry["supporting_sentence_keys"] or (),
                **{name: entry[name] for name in ("response_sentence_key", "fully_supported")},
            }
            for entry in row["sentence_support_information"]
        ]
        return VerbatimLabel.model_validate(fields)
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise BadRow(
            f"{where}: its label cannot be read ({type(error).__name__}); "
            "needed: the columns of the RAGBench data set"
        ) from error


def import_ragbench(
    files: Annotated[
        list[str],
        typer.Argument(
            help="RAGBench rows: Parquet or JSON Lines, folders of the former, patterns, or - for "
            "standard input."
        ),
    ],
    *,
    output: options.Output = "-",
) -> int:
    """Import published RAGBench rows as label records."""
    from labeler import api  # noqa: PLC0415 - needed by the command alone, like the next
    from labeler.cli.label import RunReport  # noqa: PLC0415

    check_label_target(files, output)
    with RunReport("importing") as progress:
        api.write_labels(progress.watching(read_ragbench(*files)), output)
    progress.close(f"{progress.counts.origins['row']} imported")
    return SOME_FAILED if progress.counts.failed else 0
