"""A record or a failure as sealed bytes: what a store keeps, and how damage to it is noticed.

Layout: four bytes of magic, the last of them the version; the SHA-256 of the rest; the rest, which
is its JSON compressed by zlib. Nothing but JSON is ever read back. Each kind of record and failures
have magic of their own, so that none is ever taken for another.

The seal shows damage and careless edits, not forgery: whoever can write the store can also write
a matching checksum. What a forger cannot do is move a label under another question, because the
key is worked out anew from the sentences and the signature on every read.

Cost of one record of about 8 KB (one core at 2 to 3 GHz): sealing 0.33 ms, of which reading it back
as a check 0.15 and zlib 0.08; unsealing 0.30 ms, of which pydantic 0.2 and the key 0.05. zlib makes
2.7 KB of it; level 6 would save another 9 % of the bytes for 65 % more time.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import TypeVar

from pydantic import ValidationError

from labeler.errors import UnstorableRecord, UsageError
from labeler.labels.record import (
    AnyOutcome,
    AnyRecord,
    LabelFailure,
    LabelRecord,
    QuestionsRecord,
    ScoreRecord,
    StepsRecord,
)
from labeler.labels.vectors import StoredVector
from labeler.sentences.example import Frozen

VERSION = b"1"
MAGIC = b"LBL" + VERSION
FAILURE_MAGIC = b"LBF" + VERSION
_RECORDS: dict[bytes, type[AnyRecord]] = {
    MAGIC: LabelRecord,
    b"LBS" + VERSION: ScoreRecord,
    b"LBE" + VERSION: StepsRecord,
    b"LBQ" + VERSION: QuestionsRecord,
}
"""How the bytes of each kind of record begin."""
_MAGIC: dict[type[Frozen], bytes] = {
    **{model: magic for magic, model in _RECORDS.items()},
    LabelFailure: FAILURE_MAGIC,
    StoredVector: b"LBV" + VERSION,
}
LARGEST = 64 * 2**20
"""Bytes of JSON in one record: far above any real one, and a lid on decompression bombs."""

_LEVEL = 1
_DIGEST = 32
_KEY = re.compile("[0-9a-f]{64}")

_Value = TypeVar("_Value", bound=Frozen)
_Sealable = AnyOutcome | StoredVector


class BrokenSeal(Exception):
    """The bytes are not sound, or not of this key; the message says in what way."""


def seal(record: AnyRecord) -> bytes:
    """Write a record as sealed bytes.

    Raises:
        UnstorableRecord: the record could not be read back: it is not sound, it holds a lone
            surrogate or a thing that JSON has no form for, or it is too large.
    """
    require_sound(record)
    return _sealed(record)


def seal_failure(failure: LabelFailure) -> bytes:
    """Write a failure as sealed bytes.

    Raises:
        UnstorableRecord: it could not be read back; see :func:`seal`.
    """
    return _sealed(failure)


def unseal(key: str, data: bytes) -> AnyRecord:
    """Read sealed bytes that are stored under a key.

    Raises:
        BrokenSeal: they are damaged, of another version, or not the record of this key.
    """
    record: AnyRecord = _unsealed(_RECORDS.get(data[:4], LabelRecord), data)
    _require_own(record, key)
    fault = record.fault()
    if fault:
        raise BrokenSeal(fault)
    return record


def label_json(data: bytes) -> bytes | None:
    """The JSON of a sealed label, whole as it was sealed but not yet understood.

    Returns:
        ``None`` where the bytes are sealed as another kind of record.

    Raises:
        BrokenSeal: they are damaged, or of another version.
    """
    if data[:4] != MAGIC and data[:4] in _RECORDS:
        return None
    return _inflate(_body(LabelRecord, data))


def unseal_failure(key: str, data: bytes) -> LabelFailure:
    """Read sealed bytes that are stored as the failure of a key.

    Raises:
        BrokenSeal: they are damaged, of another version, or not a failure of this key.
    """
    failure = _unsealed(LabelFailure, data)
    _require_own(failure, key)
    return failure


def seal_vector(vector: StoredVector) -> bytes:
    """Write a vector as sealed bytes.

    Raises:
        UnstorableRecord: it could not be read back, or is not that of its text and embedder.
    """
    fault = vector.fault()
    if fault:
        raise UnstorableRecord(f"{_named(vector)} cannot be stored: {fault}")
    return _sealed(vector)


def unseal_vector(key: str, data: bytes) -> StoredVector:
    """Read sealed bytes that are stored as the vector of a key.

    Raises:
        BrokenSeal: they are damaged, of another version, or not the vector of this key.
    """
    vector = _unsealed(StoredVector, data)
    _require_own(vector, key)
    fault = vector.fault()
    if fault:
        raise BrokenSeal(fault)
    return vector


def require_sound(record: AnyRecord) -> None:
    """Refuse a record that stands under another key, or whose answer nobody can have given.

    Raises:
        UnstorableRecord: it is not sound; see :meth:`labeler.labels.record.Record.fault`.
    """
    try:
        fault = record.fault()
    except ValueError as error:
        raise _no_json(record, error) from error
    if fault:
        raise UnstorableRecord(f"{_named(record)} cannot be stored: {fault}")


def key_of(failure: LabelFailure) -> str:
    """The key that a failure is stored under.

    Raises:
        UsageError: it has none, or one that no label can have.
    """
    if not _KEY.fullmatch(failure.key or ""):
        raise UsageError(
            f"{_named(failure)} cannot be stored: its key is {failure.key!r:.80}, a label's key is "
            "64 hexadecimal digits (see label_key); failures without a key are not stored"
        )
    return str(failure.key)


def _sealed(value: _Sealable) -> bytes:
    try:
        text = value.model_dump_json().encode()
    except ValueError as error:
        raise _no_json(value, error) from error
    if len(text) > LARGEST:
        raise UnstorableRecord(
            f"{_named(value)} is {len(text)} bytes of JSON; a store takes up to {LARGEST}; "
            "shorten its texts or its metadata"
        )
    _require_readable(value, text)
    body = zlib.compress(text, _LEVEL)
    return _MAGIC[type(value)] + hashlib.sha256(body).digest() + body


def _unsealed(model: type[_Value], data: bytes) -> _Value:
    return _parse(model, _inflate(_body(model, data)))


def _require_own(value: _Sealable, key: str) -> None:
    if value.key != key:
        raise BrokenSeal(f"it holds the {_noun(type(value))} of another key, {value.key!r:.80}")


def _require_readable(value: _Sealable, text: bytes) -> None:
    """Refuse what JSON would not give back as it is: a NaN, or nesting without end."""
    try:
        same = _parse(type(value), text).model_dump_json().encode() == text
    except BrokenSeal as error:
        raise UnstorableRecord(f"{_named(value)} could not be read back: {error}") from error
    if not same:
        raise UnstorableRecord(
            f"{_named(value)} would be read back otherwise than it was; take what is no JSON "
            "out of its metadata"
        )


def _no_json(value: _Sealable, error: ValueError) -> UnstorableRecord:
    return UnstorableRecord(
        f"{_named(value)} cannot be written as JSON: {error}; take lone surrogates and "
        "objects that are no JSON out of its texts and metadata"
    )


def _noun(model: type[Frozen]) -> str:
    return {LabelFailure: "failure", StoredVector: "vector"}.get(model, "record")


def _named(value: _Sealable) -> str:
    return f"{_noun(type(value))} {value.id!r}"


def _body(model: type[Frozen], data: bytes) -> bytes:
    magic = _MAGIC[model]
    start, checksum, body = data[:4], data[4 : 4 + _DIGEST], data[4 + _DIGEST :]
    if start != magic:
        if start[:3] == magic[:3]:
            raise BrokenSeal(
                f"it has format {start[3:]!r}, this version of labeler reads {VERSION!r}"
            )
        raise BrokenSeal(f"it does not begin as a sealed {_noun(model)} does")
    if hashlib.sha256(body).digest() != checksum:
        raise BrokenSeal("its checksum does not match: bytes were lost or changed")
    return body


def _inflate(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, LARGEST)
    except zlib.error as error:
        raise BrokenSeal(f"it cannot be decompressed: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise BrokenSeal("its compressed bytes do not end where they should")
    return text


def _parse(model: type[_Value], text: bytes) -> _Value:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise BrokenSeal(f"it is not a label {_noun(model)}: {where}: {first['msg']}") from error
