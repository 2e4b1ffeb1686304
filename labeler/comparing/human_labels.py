"""Human labels of records and sentences: of files in a format of rows, or of corrections.

A row names a record (``id``), for a judgment of a sentence its key (``sentence``), and with several
people the annotator (``annotator``). The judgment is either in the columns ``field`` and ``value``,
or in columns named after the fields::

    id,sentence,annotator,field,value          id,sentence,annotator,supported
    r1,a,ann,supported,yes                     r1,a,ann,yes
    r1,,ann,adherence,1                        r1,b,ann,no

A column ``answer``, as in the plans of ``labeler certify``, says whether a response sentence is
supported.

Fields of a sentence are ``relevant`` and ``utilized`` (document sentences, ``0a``) and
``supported`` (response sentences, ``a``); fields of a record are ``overall_supported`` and the id
of any metric. A verdict is yes or no; a metric's value is a number from 0 to 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from labeler.calculators import METRICS, SummaryRow, select_metrics, summarize
from labeler.calculators.outcomes import measure_outcomes
from labeler.catalog import named_keywords, near
from labeler.comparing.sides import Choice
from labeler.data.corrections import Correction, Judgment, decided, drawn_at_random
from labeler.data.corrections.applying import Applied, usable
from labeler.data.corrections.file import independent, is_corrections_file, read_corrections
from labeler.data.formats import read_file
from labeler.data.parsing import id_of, reject_surrogates
from labeler.errors import BadRow, UsageError
from labeler.labels.answering import configuration
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.characters import from_cell
from labeler.sentences.example import position

DOCUMENT_FIELDS = ("relevant", "utilized")
RESPONSE_FIELDS = ("supported",)
SENTENCE_FIELDS = (*DOCUMENT_FIELDS, *RESPONSE_FIELDS)
OVERALL = "overall_supported"

VERDICTS = {
    **dict.fromkeys(("1", "1.0", "1,0", "true", "yes", "y"), True),
    **dict.fromkeys(("wahr", "vrai", "verdadero", "vero", "verdadeiro", "waar"), True),
    **dict.fromkeys(("0", "0.0", "0,0", "false", "no", "n"), False),
    **dict.fromkeys(("falsch", "faux", "falso", "onwaar"), False),
}
"""Words for yes and no, in lower case, also those that a spreadsheet makes of TRUE and FALSE."""
_FRAME = ("id", "sentence", "annotator", "field", "value")
_PLACES = ("document", "response", "reference", "tool output", "turn")


class HumanLabel(NamedTuple):
    """One judgment by one person.

    Attributes:
        id: the record's id.
        field: ``relevant``, ``utilized``, ``supported``, ``overall_supported``, or a metric's id.
        sentence: key of the sentence; ``None`` for a judgment of the whole record.
        annotator: the person; empty if the file names none.
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
    """The contents of a file of human labels.

    Attributes:
        labels: the judgments, in the order of the file.
        repeated: number of judgments that repeat an earlier one, and are left out.
        ignored: columns that name no field, such as comments.
    """

    labels: tuple[HumanLabel, ...]
    repeated: int
    ignored: tuple[str, ...]


@named_keywords
def read_human_labels(path: str | Path) -> HumanLabels:
    r"""Read human labels from a file in a format of rows, by its name, such as CSV.

    Any other file, and ``-`` for standard input, is JSON Lines.

    Args:
        path: the file; columns ``id``, ``sentence``, ``annotator``, ``field`` and ``value``, or a
            column named after each field.

    Returns:
        The verdicts by record, sentence, field and person.

    Raises:
        UsageError: the file cannot be read, a row is wrong, or one person gives an item two values;
            the message names file and line.

    Example:
        >>> _ = (folder / "people.csv").write_text("id,sentence,supported\nlog-rotation,a,yes\n")
        >>> human = labeler.comparing.read_human_labels(folder / "people.csv")
    """
    found: dict[tuple[str, str, str | None, str], HumanLabel] = {}
    repeated, ignored = 0, dict[str, None]()
    for where, row in _rows(path):
        cells, others = _cells(row, where)
        ignored.update(dict.fromkeys(others))
        for label in _labels(row, cells, where):
            known = found.setdefault(label[:4], label)
            if known.value != label.value:
                raise _contradiction(known, label)
            repeated += known is not label
    return HumanLabels(tuple(found.values()), repeated, tuple(ignored))


def _contradiction(known: HumanLabel, label: HumanLabel) -> UsageError:
    who = f"annotator {label.annotator!r:.40}" if label.annotator else "the same unnamed annotator"
    return UsageError(
        f"{label.where}: record {label.id!r:.80}: {who} gives {label.field} the value "
        f"{label.value:g} here and {known.value:g} at {known.where}; keep one of the two, or name "
        "the annotators",
    )


def _rows(path: str | Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a file with their places; empty cells of text are ``None``."""
    for row in read_file(str(path)):
        if isinstance(row.fields, BadRow):
            raise row.fields
        fields = row.fields
        if row.text_only:
            cells = ((name, c if name == "id" else c.strip()) for name, c in fields.items())
            fields = {name: from_cell(cell) or None for name, cell in cells}
        yield row.where, fields


def _cells(row: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    """Return the judged fields of a row with their values, and the other columns."""
    if "field" in row:
        field = row["field"]
        if not isinstance(field, str) or not _is_field(field):
            raise UsageError(
                f"{where}{_of(row)}: 'field' is {_shown(field)}"
                f"{_fields_like(*[field] if isinstance(field, str) else [])}",
            )
        if row.get("value") is None:
            raise UsageError(
                f"{where}{_of(row)}: no 'value' for {field!r}; leave the row out where nobody "
                "judged",
            )
        return {field: row["value"]}, [name for name in row if name not in _FRAME]
    if row.get("kind") == "correction":
        raise UsageError(
            f"{where}{_of(row)}: a correction of a label; the labels that it speaks of are needed "
            "to read it: labeler.comparing.human_labels.labels_of_corrections, or "
            "'labeler agree --human'",
        )
    judged = {name: value for name, value in row.items() if _is_field(name)}
    others = [name for name in row if name not in _FRAME and name not in judged]
    if not judged and "answer" in row and _place(_text(row, "sentence", where)) == "response":
        others.remove("answer")
        return {RESPONSE_FIELDS[0]: row["answer"]} if row["answer"] is not None else {}, others
    if not judged:
        raise UsageError(
            f"{where}{_of(row)}: no judgment in this line; give 'field' and 'value', or a column "
            f"named after a field{_fields_like(*others)}",
        )
    return {name: value for name, value in judged.items() if value is not None}, others


def _is_field(name: str) -> bool:
    # Never a lookup by dotted name: a column of an untrusted file would import the module it names.
    return name in SENTENCE_FIELDS or name == OVERALL or name in METRICS


def _fields_like(*names: str) -> str:
    """Return fields like the first wrong name that has any, and all fields."""
    verdicts = [*SENTENCE_FIELDS, OVERALL]
    hint = next(filter(None, (near(name, [*verdicts, *METRICS]) for name in names)), ";")
    return (
        f"{hint} fields are {', '.join(verdicts)}, and the ids of metrics (labeler metrics --list)"
    )


def _of(row: Mapping[str, Any]) -> str:
    return "" if row.get("id") is None else f" ({_shown(row['id'])})"


def _shown(value: object) -> str:
    """Return a value for an error; of a nested value only its type, as its depth has no limit."""
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.80}"
    return f"a {type(value).__name__}"


def _labels(row: Mapping[str, Any], cells: Mapping[str, Any], where: str) -> Iterable[HumanLabel]:
    """Yield the judgments of a row."""
    if row.get("id") is None:
        raise UsageError(
            f"{where}: no 'id'; a row needs the id of the record that it speaks of",
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
        raise UsageError(f"{where}: {name!r} must be a text, got {type(given).__name__}")
    return str(given)


def _check_sentence(field: str, sentence: str | None, where: str) -> None:
    """Reject a sentence field without a fitting key, and a record field with one."""
    if field not in SENTENCE_FIELDS:
        if sentence is not None:
            raise UsageError(
                f"{where}: {field!r} speaks of the whole record, and 'sentence' is "
                f"{sentence!r:.40}; leave it empty",
            )
        return
    wanted, example = ("response", "a") if field in RESPONSE_FIELDS else ("document", "0a")
    if _place(sentence) != wanted:
        found = f"{sentence!r:.40}" if sentence else "empty"
        raise UsageError(
            f"{where}: {field!r} speaks of a sentence of a {wanted}, and 'sentence' is {found}; "
            f"give its key, such as {example} (labeler show prints all)"
        )


def _place(sentence: str | None) -> str | None:
    """Return the kind of text that a key belongs to; ``None`` if it is not a key."""
    with suppress(ValueError):
        return _PLACES[position(sentence or "").part]
    return None


def _value(field: str, given: object, where: str) -> float:
    is_verdict = field in SENTENCE_FIELDS or field == OVERALL
    text = str(given).strip().lower() if isinstance(given, str | int | float) else ""
    verdict = VERDICTS.get(text)
    value = None if verdict is None else float(verdict)
    if value is None and not is_verdict:
        with suppress(ValueError):
            value = float(text)
    if value is None or not 0 <= value <= 1:
        allowed = "a number from 0 to 1, or yes or no"
        scale = "; bring other scales to it: 1 to 4 as (value - 1) / 3"
        if is_verdict:
            allowed, scale = "yes or no (true, false, 1, 0)", ""
        raise UsageError(
            f"{where}: {field!r} is {_shown(given)}; allowed: {allowed}{scale}",
        )
    return value


# Corrections.


class CorrectedLabels(NamedTuple):
    """Corrections as human labels.

    Attributes:
        human: the labels.
        judgments: number of judgments that count, one for a person and record.
        blind: number of these that were made while the judge's verdicts were hidden.
    """

    human: HumanLabels
    judgments: int
    blind: int


def labels_of_corrections(
    corrections: Iterable[Correction],
    records: Iterable[AnyOutcome],
    *,
    choice: Choice | None = None,
    random_sample: bool = False,
    blind_only: bool = False,
    name: str = "corrections",
) -> CorrectedLabels:
    """Return the judgments of sentences and records as human labels.

    Of one person's judgments of one label, the last blind one counts, or else the last one. Of one
    person's judgments of several labels of one record, the one of the label judged last counts.

    Args:
        corrections: all events, in the order of the file.
        records: the corrected labels, among other outcomes.
        choice: the labels that are meant; by default all.
        random_sample: only corrections of records that were drawn at random, whichever queue the
            person judged them in.
        blind_only: only corrections by people who did not see the judge's verdicts.
        name: name of the corrections in errors.
    """
    events = tuple(corrections)
    drawn = drawn_at_random(events) if random_sample else None
    last: dict[str, list[Correction]] = {}
    order: dict[tuple[str, str], int] = {}
    for place, each in enumerate(independent(events)):
        if (drawn is None or each.key in drawn) and (each.blind or not blind_only):
            last.setdefault(each.key, []).append(each)
            order[each.key, each.annotator] = place
    found = defaultdict[tuple[str, str], list[tuple[int, bool, list[HumanLabel]]]](list)
    for record in _distinct(records, last, choice or Choice()):
        for correction, judgment in usable(last[record.key], record):
            labels = list(_judged(record, correction, judgment, f"{name}:{correction.id!r:.80}"))
            place = order[correction.key, correction.annotator]
            found[record.id, correction.annotator].append((place, correction.blind, labels))
    counted = [max(own, key=itemgetter(0)) for own in found.values()]
    every = tuple(label for _, _, labels in counted for label in labels)
    repeated = sum(len(labels) for own in found.values() for _, _, labels in own) - len(every)
    blind = sum(is_blind for _, is_blind, _ in counted)
    return CorrectedLabels(HumanLabels(every, repeated, ()), len(counted), blind)


def judgments_in(path: str | Path, records: Iterable[LabelRecord]) -> tuple[HumanLabel, ...]:
    """Read a file of human labels, or of corrections of records, as human labels."""
    if is_corrections_file(path):
        return labels_of_corrections(read_corrections(path).events, records).human.labels
    return read_human_labels(path).labels


def majorities(labels: Iterable[HumanLabel], field: str) -> dict[tuple[str, str], bool]:
    """Return what most people say about a field of each sentence; ties are left out."""
    votes: dict[tuple[str, str], float] = {}
    for one in labels:
        if one.field == field and one.sentence is not None:
            item = (one.id, one.sentence)
            votes[item] = votes.get(item, 0.0) + one.value - 0.5
    return {item: vote > 0 for item, vote in votes.items() if vote}


def _distinct(
    outcomes: Iterable[AnyOutcome], wanted: dict[str, list[Correction]], choice: Choice
) -> Iterator[LabelRecord]:
    """Yield the corrected labels, each once."""
    seen: set[str] = set()
    for outcome in outcomes:
        if (
            isinstance(outcome, LabelRecord)
            and outcome.key in wanted
            and outcome.key not in seen
            and choice.fits(configuration(outcome), outcome.signature.trial)
        ):
            seen.add(outcome.key)
            yield outcome


def _judged(
    record: LabelRecord, correction: Correction, judgment: Judgment, where: str
) -> Iterator[HumanLabel]:
    """Yield one judgment as human labels: every sentence decided on, and the record."""
    example = record.example
    response = decided(record, correction).union(judgment.support)
    by_field = {
        "relevant": (example.document_keys(), frozenset(judgment.relevant)),
        "utilized": (example.document_keys(), frozenset(judgment.utilized)),
        "supported": (
            [key for key in example.response_keys() if key in response],
            frozenset(judgment.support),
        ),
    }
    for field, (keys, yes) in by_field.items():
        for key in keys:
            value = float(key in yes)
            yield HumanLabel(record.id, field, key, correction.annotator, value, where)
    overall = float(judgment.overall_supported)
    yield HumanLabel(record.id, OVERALL, None, correction.annotator, overall, where)


class MeanChange(NamedTuple):
    """A metric's mean over the labels of one judge configuration.

    Attributes:
        before: summary of the judge's labels.
        after: summary of the corrected ones.
    """

    before: SummaryRow
    after: SummaryRow


def mean_changes(
    judged: Iterable[AnyOutcome], corrected: Iterable[AnyOutcome], applied: Applied
) -> list[MeanChange]:
    """Return the means that corrections changed, of the metrics that people can correct.

    Args:
        judged: the judge's labels and failures; consumed first.
        corrected: the corrected labels.
        applied: the corrections that are applied to them.
    """
    # People do not correct claims.
    metrics = [one for one in select_metrics() if one.profile.output is GPTLabelingOutput]
    signed: dict[str, str] = {}
    """Printed signatures of corrected labels, by the printed ones of the judge's labels."""

    def noted() -> Iterator[AnyOutcome]:
        for outcome in judged:
            if outcome.signature is not None and str(outcome.signature) not in signed:
                signed[str(outcome.signature)] = str(applied.signed(outcome.signature))
            yield outcome

    before, after = (
        summarize(measure_outcomes(outcomes, metrics), metrics, by_model=False)
        for outcomes in (noted(), corrected)
    )
    found = {(row.metric, row.label): row for row in after}
    changes = [
        MeanChange(row, found[row.metric, signed[row.label]])
        for row in before
        if row.label is not None
    ]
    return [one for one in changes if one.before.mean != one.after.mean]
