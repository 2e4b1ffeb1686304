"""Spans of exported traces: the formats that hold them, and the attributes that describe them.

Exported objects are OTLP JSON (OpenTelemetry's exporters and collectors, Phoenix's
``otlpv1``), of Phoenix (its REST interface, ``get_spans_dataframe``, also OpenTelemetry's console
exporter), of MLflow (``Trace.to_json``, ``search_traces``), of Langfuse (blob storage, the API;
a trace is the root of its observations), of LangSmith (runs) and of Logfire (records). Names of
fields are in camel case or in snake case.

Attributes follow OpenInference (``openinference.span.kind``), OpenTelemetry's conventions for
generative AI (``gen_ai.*``, in development), OpenLLMetry (``traceloop.*``), Langfuse
(``langfuse.*``), MLflow (``mlflow.*``), Vercel's AI SDK (``ai.*``), Pydantic AI and Logfire, and
Haystack (``haystack.*``), or several at once. They may be flat
(``llm.input_messages.0.message.role``), nested, or JSON in a text, since each exporter chooses.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from labeler.catalog import snake_case
from labeler.data.inputs_outputs import parsed
from labeler.data.lines import load_json
from labeler.data.written_values import HIDDEN
from labeler.errors import BadRow, kind_of
from labeler.plugins.traces.attributes import (
    attributes_of,
    items,
    lookup,
    nanoseconds,
    of_events,
    short_ones,
)
from labeler.plugins.traces.retrievals import Found, documents_of, found_in, selects
from labeler.sentences.words import read_names

Kind = Literal["other", "llm", "retriever", "reranker", "tool", "aside"]
"""The work of a span. The texts of an ``aside``, such as an evaluator, and of all below it are not
part of the answer."""


class Span(msgspec.Struct, frozen=True):
    """One step of a trace.

    Attributes:
        trace_id: as the exporter writes it; MLflow's begins with ``tr-``.
        span_id: unique in its trace.
        parent: id of the span above; ``None`` for a root.
        kind: what the span did.
        start: nanoseconds since 1970 in UTC; 0 if unknown.
        name: as the instrumentation chose it.
        inputs: JSON; of a model the messages, of a reranker the texts of the documents given.
        outputs: JSON.
        documents: texts that a retriever or reranker returned, in order.
        textless: number of returned documents whose text is not in the span.
        dropped: number of attributes over the recorder's limit, which it dropped.
        attributes: short values, for filters and metadata.
    """

    trace_id: str
    span_id: str
    parent: str | None
    kind: Kind
    start: int
    name: str
    inputs: Any = None
    outputs: Any = None
    documents: tuple[str, ...] = ()
    textless: int = 0
    dropped: int = 0
    attributes: dict[str, str | int | float | bool] = {}


Fields: TypeAlias = Mapping[str, Any]
"""An exported object: a line, an entry of a list, or a row of a table."""


# Formats

NAMES = read_names(__file__, "spans")
"""Names of fields and attributes by their meaning, see ``spans.toml``."""
_LISTS, _START, _MLFLOW_TRACE, _KIND, _INPUT, _OUTPUT, _DOCUMENTS = (
    NAMES[one]
    for one in ("lists", "starts", "mlflow_traces", "kind", "input", "output", "documents")
)
_IDS = (NAMES["trace_ids"], NAMES["span_ids"], NAMES["parents"])
_ID_BYTES = (16, 8, 8)
_COLUMN = "attributes."
"""Begins the names of columns with attributes."""
_LANGFUSE_TYPES, _RETRIEVING = (frozenset(NAMES[one]) for one in ("langfuse_types", "retrieving"))
_KINDS, _BY_WORD, _BY_ATTRIBUTE = (
    {name: kind for kind in get_args(Kind) for name in NAMES.get(f"{table}_{kind}", ())}
    for table in ("kinds", "words", "attributes")
)
"""The kind of a span by its name, and by the last word of a component's class; of one that names
none, by an attribute that it has."""
_ENTITY, _COMPONENT = "traceloop.entity.name", "haystack.component.type"
_MESSAGES, _REPLIES = (NAMES[one] + NAMES["all_messages"] for one in ("messages", "replies"))
_TALKING = frozenset({"llm", "other", "tool"})
_JSON = re.compile(r'\s*(?:\{\s*"|\[\s*[\[{"])')
_NO_TEXT = re.compile(
    r"\s*(?:<(?:[^<>]|<locals>){1,200} at 0x[0-9a-fA-F]+>\s*\Z|(?:event:.*\n)?data: ?[\[{])"
)
"""Python's text for a stream or another object, and the raw events of a stream."""
_LONGEST_ID = 200


def spans_of(fields: Fields) -> Iterator[Span | BadRow]:
    """Yield the spans of an exported object, and the faults of unreadable ones."""
    named = _snake(fields)
    if _is_known(fields, named):
        yield from _inside(fields, named, "", {})
    else:
        yield BadRow(
            "no span: export traces as OTLP JSON, from Phoenix, Langfuse, LangSmith, Logfire or "
            "MLflow, and pass that file",
            reason="unknown_format",
        )


def _is_known(fields: Fields, named: Fields) -> bool:
    """Return whether an object has what one of the formats is known by."""
    return (
        not named.keys().isdisjoint(_LISTS[:2])
        or isinstance(fields.get("attributes"), list)
        or lookup(fields, "context.trace_id") is not None
        or (_listed(named) is not None and _first(named, _MLFLOW_TRACE) is not None)
        or ("trace_id" in named and text(named.get("type")).lower() in _LANGFUSE_TYPES)
        or {"trace_id", "run_type"} <= named.keys()
        or {"trace_id", "span_id", "attributes"} <= named.keys()
        or ("timestamp" in named and {"id", "input", "output"} <= named.keys())
    )


def _inside(fields: Fields, named: Fields, trace_id: str, above: Fields) -> Iterator[Span | BadRow]:
    """Yield the spans of an object.

    Args:
        fields: the object.
        named: the same with names in snake case.
        trace_id: id of the trace that holds it; "" if it names its own.
        above: attributes of that trace.
    """
    listed = _listed(named)
    if listed is not None:
        trace_id, above = text(_first(named, _MLFLOW_TRACE)), _mlflow_facts(named)
    else:
        yield _span(fields, named, trace_id, above)
        listed, runs = _list(named.get("observations")), _list(named.get("child_runs"))
        # Lists of traces name their observations only.
        listed = [one for one in listed if not isinstance(one, str)] + runs
        above = {name: named[name] for name in ("user_id", "session_id") if name in named}
        trace_id, above = ("", {}) if runs else (text(named.get("id")), above)
    for part in listed:
        if isinstance(part, Mapping):
            yield from _inside(part, _snake(part), trace_id, above)
        else:
            yield BadRow(f"{kind_of(part)} where a span is expected", reason="not_an_object")


def _snake(fields: Fields) -> dict[str, Any]:
    return {snake_case(str(name)): value for name, value in fields.items() if value is not None}


def _listed(named: Fields) -> list[Any] | None:
    """Return the first list of spans that is there."""
    found = [named.get(name) for name in _LISTS[:2]]
    found += [parsed(lookup(named, name)) for name in _LISTS[2:]]
    return next((one for one in found if isinstance(one, list)), None)


def _first(fields: Fields, names: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON
    """Return the first of some fields that is there; or None."""
    return next(
        (found for name in names if (found := lookup(fields, name)) not in (None, "")), None
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mlflow_facts(named: Fields) -> dict[str, Any]:
    """Return the attributes that the spans of a trace of MLflow share."""
    both = (_first(named, (f"info.{name}", name)) for name in ("trace_metadata", "tags"))
    known, tags = (one if isinstance(one, Mapping) else {} for one in both)
    return {**known, **{f"tags.{name}": value for name, value in tags.items()}}


def _span(fields: Fields, named: Fields, trace_id: str, above: Fields) -> Span | BadRow:
    """Return the span of an object; ``named`` is the same in snake case."""
    try:
        attributes = {**above, **_attributes(fields, named)}
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
        return BadRow("its ids or attributes are not as OTLP has them", reason="malformed")
    # Ids of Langfuse and LangSmith are any texts.
    described = _is_described(fields) or _first(named, _IDS[1]) is not None
    given = zip((_first(named, names) for names in _IDS), _ID_BYTES, strict=True)
    ids = [_hex_id(one, size) if described else text(one) for one, size in given]
    trace_id, span_id, parent = trace_id or ids[0], ids[1] or text(named.get("id")), ids[2]
    if not described and "run_type" not in named:  # a trace of Langfuse is the root of its own
        trace_id, parent = trace_id or span_id, parent or trace_id
    start, dropped = nanoseconds(_first(named, _START)), named.get("dropped_attributes_count")
    found = span_of((trace_id, span_id, parent), start, text(named.get("name")), attributes)
    if not isinstance(found, Span) or found.kind == "aside":
        return found
    changes = {"dropped": dropped} if isinstance(dropped, int) else {}
    listed = (items(attributes, key) for key in (*_DOCUMENTS, *_OUTPUT))
    if _has_failed(named) and not any(listed):  # it found nothing
        changes["textless"] = 0
    return msgspec.structs.replace(found, **changes) if changes else found


def _has_failed(named: Fields) -> bool:
    """Return True if a span states an error; a number 2 says so as OTLP's status code only."""
    code, level = (_first(named, NAMES[one]) for one in ("status_codes", "levels"))
    return text(code).lower() in NAMES["failed"] or text(level).lower() == "error"


def _is_described(fields: Fields) -> bool:
    """Return whether a span has attributes or a context, which observations of Langfuse lack."""
    return any(
        value is not None and name.startswith(("attributes", "context", "span_kind"))
        for name, value in fields.items()
    )


def _attributes(fields: Fields, named: Fields) -> dict[str, Any]:
    """Return the attributes of a span: an object, pairs, columns, or all fields of a record."""
    if not _is_described(fields):
        # The session of a run is its project, and its events are not messages.
        hidden = {"session_id", "events"} if "run_type" in named else set()
        nested = {"extra": parsed(named.get("extra"))}
        return {name: value for name, value in named.items() if name not in hidden} | nested
    given = parsed(fields.get("attributes"))
    attributes = of_events(parsed(named.get("events"))) | attributes_of(given)
    for name, value in () if isinstance(given, list) else fields.items():
        if name.startswith(_COLUMN) and value is not None:
            attributes[name.removeprefix(_COLUMN)] = value
    if kind := text(fields.get("span_kind")):
        attributes.setdefault(_KIND[0], kind)
    return attributes


def text(value: object) -> str:
    """Return an id or name as text; empty for a missing one."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _hex_id(value: object, size: int) -> str:
    """Return an id of some bytes in hexadecimal digits, also of base64; any other unchanged."""
    given = text(value).removeprefix("0x")
    if len(given) != 2 * size:
        with suppress(binascii.Error, ValueError):
            raw = base64.b64decode(given, validate=True)
            if len(raw) == size:
                return raw.hex()
    return given


def span_of(
    ids: tuple[str, str, str], start: int, name: str, attributes: Mapping[str, Any]
) -> Span | BadRow:
    """Return a span by its attributes, or the fault of its ids.

    Args:
        ids: of the trace, the span and its parent.
        start: nanoseconds since 1970.
        name: the span's name.
        attributes: flat or nested.
    """
    kind = _kind(attributes)
    inputs = _said(attributes, _INPUT, _MESSAGES if kind in _TALKING else (), kind)
    outputs = _said(attributes, _OUTPUT, _REPLIES if kind in _TALKING else (), kind)
    is_recorded = any(parsed(lookup(attributes, key)) is not None for key in _OUTPUT)
    if kind == "other" and is_recorded and _retrieves(name, attributes):
        kind = "other" if documents_of(outputs).textless else "retriever"
    elif kind == "other" and selects(inputs, outputs):
        kind = "reranker"
    found = Found()
    if kind in {"retriever", "reranker"}:
        found = _documents(attributes, outputs)
        if kind == "reranker":
            given = found_in(items(attributes, "reranker.input_documents")).texts
            inputs = list(given or documents_of(inputs).texts)
        outputs = None
    if not all(ids[:2]):
        message = "a span without a trace id or span id: export both, also from an index"
        return BadRow(message, reason="without_ids")
    if any(len(one) > _LONGEST_ID for one in ids):
        return BadRow(f"an id of more than {_LONGEST_ID} characters", reason="malformed")
    said = (inputs, outputs) if kind != "aside" else (None, None)
    short = short_ones(attributes)
    return Span(*ids[:2], ids[2] or None, kind, start, name, *said, *found, attributes=short)


def _kind(attributes: Mapping[str, Any]) -> Kind:
    given = [parsed(lookup(attributes, key)) for key in _KIND]
    named = [value.strip('"').lower() for value in given if isinstance(value, str)]
    known = [_KINDS[name] for name in named if name in _KINDS]
    word = snake_case(text(lookup(attributes, _COMPONENT))).rpartition("_")[2]
    known += [_BY_WORD[word]] if word in _BY_WORD else []
    if not named:
        known += [kind for key, kind in _BY_ATTRIBUTE.items() if lookup(attributes, key)]
    return known[0] if known else "other"


def _retrieves(name: str, attributes: Mapping[str, Any]) -> bool:
    """Return True if a step is named after a retrieval, and not after an answer too."""
    names = (snake_case(one).split("_") for one in (name, text(lookup(attributes, _ENTITY))))
    return any(
        words[-1] in _RETRIEVING or (words[0] == "retrieve" and "and" not in words)
        for words in names
    )


def _documents(attributes: Mapping[str, Any], outputs: object) -> Found:
    """Return the documents of a retrieval; of its output if those listed have no texts."""
    other = documents_of(outputs)
    listed = next(filter(None, (items(attributes, key) for key in _DOCUMENTS)), [])
    found = found_in(listed)
    if found.texts or (listed and not other.texts):
        return found
    values = [lookup(attributes, key) for key in (*_DOCUMENTS, *_OUTPUT)]
    is_unread = any(isinstance(parsed(one), str) for one in values[: len(_DOCUMENTS)])
    # Without any output it is unknown what was found; an empty list or null is recorded as such.
    is_lost = all(one is None for one in values) or any(map(_is_lost, values))
    return Found((), 1) if is_unread or (outputs is None and is_lost) else other


def _said(
    attributes: Mapping[str, Any], values: Sequence[str], messages: Sequence[str], kind: Kind
) -> object:
    """Return the first value or list of messages; of a model, messages come first."""
    talks = (items(attributes, key) for key in messages)
    others = (_text_or_json(attributes, key) for key in values)
    found = chain(talks, others) if kind == "llm" else chain(others, talks)
    return next((one for one in found if one is not None and one not in ("", [])), None)


def _text_or_json(attributes: Mapping[str, Any], key: str) -> object:
    """Return an input or output; one that is JSON by its key or type may be a text in quotes."""
    value = parsed(lookup(attributes, key))
    if isinstance(value, str) and (_JSON.match(value) or _NO_TEXT.match(value)):
        return None  # its recorder cut it off, or recorded no text
    kind = lookup(attributes, key.replace(".value", ".mime_type"))
    if isinstance(value, str) and (key.startswith(NAMES["as_json"]) or kind == "application/json"):
        with suppress(ValueError, RecursionError):
            return load_json(value)
    return value


def _is_lost(value: object) -> bool:
    """Return True for a text that its recorder hid, for JSON that it cut off, and for no text."""
    if not isinstance(value, str):
        return False
    is_cut = _JSON.match(value) and isinstance(parsed(value), str)
    return value.strip() in HIDDEN or bool(is_cut or _NO_TEXT.match(value))
