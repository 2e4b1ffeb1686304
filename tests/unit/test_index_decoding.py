"""Labels that are read for the index, fast, and as strictly as label files are."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_labels import ANY_LABEL, wide_labels
from labeled import claims_output, record, says
from labeler.calculators.index import decoding
from labeler.calculators.index.decoding import NeedsValidation, decode_label, label_row
from labeler.calculators.index.frames import IndexFrame
from labeler.calculators.index.row_batch import RowBatch, add_stored
from labeler.calculators.index.rows import IndexRow, Unindexable, failure_row
from labeler.data.label_files import outcome_of
from labeler.data.lines import Line
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord, label_key
from labeler.labels.signature import Signature
from labeler.sentences.keys import document_key
from records import sample_failure
from samples import signature
from tallied import tallied_row


def line_of(label: LabelRecord) -> bytes:
    """A label as it stands in a file."""
    return label.model_dump_json().encode()


def by_models(line: bytes) -> LabelRecord:
    """A line as label files are read."""
    outcome = outcome_of(Line("f:1", line))
    assert isinstance(outcome, LabelRecord)
    return outcome


def row_of(line: bytes, key: str | None = None) -> IndexRow:
    """What the index holds of a label that enters numbers."""
    row = decode_label(line, key)
    assert row is not None
    return row


def plain(row: IndexRow) -> dict[str, Any]:
    """What numbers are made of, whatever sequences it stands in."""
    facts = row._replace(content=0)._asdict() | {
        "metadata": json.loads(row.metadata),
        "columns": sorted(row.columns),
    }
    return {name: listed(value) for name, value in facts.items()}


def listed(value: object) -> object:
    """The same with lists in the places of other sequences."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [listed(each) for each in value]
    return value


def signed_again(label: LabelRecord, made_by: Signature, **facts: Any) -> LabelRecord:
    """The same label, made in another way, under the key that it then has."""
    example = label.example.model_copy(update=facts)
    key = label_key(example, made_by)
    changes = {"example": example, "signature": made_by, "key": key}
    return label.model_copy(update=changes)


@given(st.one_of(ANY_LABEL, wide_labels()))
def test_a_label_is_read_as_the_models_read_it(label: LabelRecord) -> None:
    """Every fact that the index holds."""
    assert plain(row_of(line_of(label))) == plain(label_row(label)) == plain(tallied_row(label))


TEXT = st.text(st.characters(codec="utf-8"), max_size=9)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "inf" not in repr(value))


@given(
    TEXT,
    st.dictionaries(TEXT, JSON, max_size=3),
    st.dictionaries(TEXT, JSON, max_size=3),
    st.one_of(st.none(), TEXT),
    st.integers(0, 3),
)
def test_a_key_is_worked_out_anew_whatever_it_is_made_of(
    text: str,
    metadata: dict[str, Any],
    sampling: dict[str, Any],
    source: str | None,
    trial: int,
) -> None:
    """Texts of all kinds, sampling parameters, the source of an imported label, repeats."""
    facts = {"sampling": sampling, "source": source, "trial": trial, "model": text}
    made_by = signature().model_copy(update=facts)
    made = signed_again(record(documents=[[text, "b"]]), made_by, metadata=metadata, question=text)
    line = line_of(made)
    row = row_of(line)
    assert row.key == made.key == by_models(line).key
    assert row.label == str(made_by)
    assert json.loads(row.metadata) == metadata
    assert (sum(row.numbers[12:16]), sum(row.numbers[16:])) == (2, len(text) + 1)


def test_what_is_kept_in_memory_is_small() -> None:
    """Neither the shape of a record with very many documents is, nor a very long signature."""
    caches = decoding._common_shape, decoding._common_signature, decoding._common_signed
    usual, empty = record(), ()
    many = (*usual.example.documents, *[empty] * 1000)
    long = {"source": "s" * 20_000, "sampling": {"prefix": "p" * 20_000}}
    made = [
        signed_again(usual, usual.signature, documents=many),
        signed_again(usual, usual.signature.model_copy(update=long)),
    ]
    row_of(line_of(usual))
    before = [cache.cache_info().currsize for cache in caches]
    for label in made:
        assert plain(row_of(line_of(label))) == plain(label_row(label)) == plain(tallied_row(label))
    assert [cache.cache_info().currsize for cache in caches] == before


def paths(value: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a JSON value."""
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, inner in inside:
        yield (*before, name)
        yield from paths(inner, (*before, name))


ODD: list[Any] = [None, True, 0, 1.0, -1, "", "0a", "a", "x", [], ["0a", "0a"], {}, {"x": 1}]


def edited(value: Any, path: tuple[Any, ...], how: str, other: object) -> Any:
    """A JSON value with one edit."""
    found = copy.deepcopy(value)
    place = found
    for name in path[:-1]:
        place = place[name]
    if how == "drop":
        del place[path[-1]]
    elif how == "add" and isinstance(place, dict):
        place["extra"] = other
    elif how == "repeat" and isinstance(place, list):
        place.append(place[path[-1]])
    else:
        place[path[-1]] = other
    return found


@given(
    ANY_LABEL,
    st.sampled_from(["drop", "add", "repeat", "put"]),
    st.sampled_from(ODD),
    st.booleans(),
    st.data(),
)
def test_no_edit_passes_that_the_models_refuse(
    label: LabelRecord, how: str, other: object, signed: bool, data: st.DataObject
) -> None:
    """Anywhere in a line, also where its key was worked out again; nor is another answer a copy."""
    value = json.loads(line_of(label))
    path = data.draw(st.sampled_from(list(paths(value))))
    changed = edited(value, path, how, other)
    line = json.dumps(changed).encode()
    if signed:
        line = with_own_key(changed, line)
    try:
        row = row_of(line)
    except NeedsValidation:
        try:
            row = label_row(by_models(line))
        except (UsageError, Unindexable, AssertionError):
            return
    found = by_models(line)
    assert plain(row) == plain(tallied_row(found))
    assert row.content != label_row(label).content or found.content() == label.content()


def with_own_key(value: dict[str, Any], line: bytes) -> bytes:
    """The same line under the key that its sentences and signature have, if it has any."""
    try:
        made = LabelRecord.model_validate_json(line)
        return json.dumps(value | {"key": label_key(made.example, made.signature)}).encode()
    except ValueError:
        return line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"label"', b'"score"'),
        (b"because", b"because\xff"),
        (b"because", b"because\\ud800"),
        (b"because", b"bec\nause"),
        (b'"version":1', b'"version":2'),
        (b'"trial":0', b'"trial":1'),
        (b'"fully_supported":true', b'"fully_supported":null'),
        (b'"metadata":{}', b'"metadata":{"x":NaN}'),
        (b'"metadata":{}', b'"metadata":{"x":' + b"[" * 99 + b"]" * 99 + b"}"),
    ],
)
def test_what_is_no_sound_label_is_left_to_the_models(old: bytes, new: bytes) -> None:
    """Other kinds, damage, edits, and what is merely unusual."""
    line = line_of(record())
    assert old in line
    with pytest.raises(NeedsValidation):
        decode_label(line.replace(old, new))


@pytest.mark.parametrize("documents", [[], [0, 3], [130, 0, 2], [40, 40, 60], [1] * 1030])
def test_a_label_of_any_size_is_read_as_the_models_read_it(documents: list[int]) -> None:
    """Keys of small documents and records are kept in memory, those of large ones are not."""
    keys = [document_key(d, size - 1) for d, size in enumerate(documents) if size]
    label = record(documents=documents, relevant=keys, utilized=keys[:1], response=140)
    for _ in range(2):
        assert plain(row_of(line_of(label))) == plain(tallied_row(by_models(line_of(label))))


@pytest.mark.parametrize(
    ("relevant", "utilized"),
    [(["0a", "0a"], []), ([], ["0a", "0a"]), (["0a"], ["0a", "0b", "0a"]), (["general"], [])],
)
def test_sentences_named_twice_are_left_to_the_models(
    relevant: list[str], utilized: list[str]
) -> None:
    """Whichever of the lists they are in; and what is no document sentence."""
    value = json.loads(line_of(record(documents=(2, 1))))
    value["label"] |= {"all_relevant_sentence_keys": relevant}
    value["label"] |= {"all_utilized_sentence_keys": utilized}
    with pytest.raises(NeedsValidation):
        decode_label(json.dumps(value).encode())


def test_rows_enter_the_columns_in_their_order() -> None:
    """Labels enter many at once, and failures in between; a claimless one has empty lists."""
    with_claims = record(documents=(2, 1), answer=claims_output([says("a", ["0a"], [])], silent=[]))
    kinds = [record(documents=(2, 1)), with_claims, record(documents=[3])]
    batch = RowBatch()
    for place in range(700):
        if place % 300 == 7:
            batch.add(place, failure_row(sample_failure()))
        else:
            batch.add(place, label_row(kinds[place % 3 if place > 300 else 0]))
        assert len(batch) == place + 1
    failed = [place % 300 == 7 for place in range(700)]
    chosen = [kinds[place % 3 if place > 300 else 0] for place in range(700)]
    frame = IndexFrame(batch)
    assert frame.numbers("place").tolist() == list(range(700))
    assert (frame.coded("failed").codes >= 0).tolist() == failed
    claims = [
        0 if fails else label is with_claims for label, fails in zip(chosen, failed, strict=True)
    ]
    assert frame.lists("claims").sizes.tolist() == claims
    sizes = [
        0 if fails else len(label.example.documents)
        for label, fails in zip(chosen, failed, strict=True)
    ]
    assert frame.lists("documents").sizes.tolist() == sizes


def test_a_label_under_another_key_is_left_to_the_models() -> None:
    """What it is stored under must be its own key."""
    label = record()
    assert row_of(line_of(label), label.key).key == label.key
    with pytest.raises(NeedsValidation):
        decode_label(line_of(label), "0" * 64)


def test_planted_twins_are_no_rows() -> None:
    """They enter no number, whichever way they are read; nor do windows of a longer record."""
    window = signed_again(record(), signature().model_copy(update={"part": "1"}))
    assert decode_label(line_of(window)) is None
    made_by = signature().model_copy(update={"canary": "1"})
    twin = signed_again(record(), made_by)
    batch = RowBatch()
    assert add_stored(batch, 1, line_of(twin), lambda: twin) is None
    assert add_stored(batch, 1, None, lambda: twin) is None
    assert len(batch) == 0
    assert decode_label(line_of(twin)) is None


def test_a_line_in_doubt_is_read_by_the_models() -> None:
    """A label of an unknown release of a schema, a failure, and a damaged line."""
    batch = RowBatch()
    for outcome in (record(), sample_failure().model_copy(update={"signature": None})):
        line = b" " + outcome.model_dump_json().encode().replace(b'"version":1', b'"version":1.0')
        assert add_stored(batch, 1, line, lambda line=line: outcome_of(Line("f:1", line))) is None  # type: ignore[misc]
    failed = IndexFrame(batch).coded("failed")
    assert (failed.codes.tolist(), failed.names) == ([-1, 0], ["refusal"])
    with pytest.raises(UsageError, match="f:1"):
        add_stored(batch, 1, b"{}", lambda: outcome_of(Line("f:1", b"{}")))


def test_keys_out_of_order_cannot_be_indexed() -> None:
    """The index holds places: two sentences that changed keys are none of its business."""
    made = record(documents=[["x", "y"]])
    first, second = made.example.documents[0]
    swapped = signed_again(made, made.signature, documents=((second, first),))
    with pytest.raises(NeedsValidation):
        decode_label(line_of(swapped))
    with pytest.raises(Unindexable, match="other keys than their places"):
        label_row(by_models(line_of(swapped)))
