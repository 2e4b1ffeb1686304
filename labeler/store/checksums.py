"""Checksummed bytes of records and failures, as a store keeps them.

Layout: four bytes of magic, whose last byte is the version; the SHA-256 of the rest; then the JSON
of the value, compressed with zlib. Only JSON is ever parsed. Failures and each kind of record have
their own magic, so one is never read as another; integrations register kinds of their own.

The checksum detects damage and careless edits, not forgery: anyone who can write to the store can
write a matching checksum. A forger cannot move a label to another question, because every read
derives the key again from the sentences and the signature.

Cost of a record of about 8 KB (one core at 2 to 3 GHz): encoding 0.33 ms, including 0.15 to read it
back as a check and 0.08 for zlib; decoding 0.30 ms, including 0.2 for pydantic and 0.05 for the
key. zlib reduces it to 2.7 KB; level 6 would save another 9 % of the bytes for 65 % more time.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import Any, Protocol, TypeVar, cast

from pydantic import ValidationError

from labeler.errors import UnstorableRecord, UsageError, describe_faults
from labeler.labels.record import RECORDS, AnyOutcome, AnyRecord, LabelFailure, Record
from labeler.sentences.example import Frozen

VERSION = b"1"
MAGIC = b"LBL" + VERSION
FAILURE_MAGIC = b"LBF" + VERSION
_RECORDS = {
    MAGIC: "label",
    b"LBS" + VERSION: "score",
    b"LBE" + VERSION: "steps",
    b"LBQ" + VERSION: "questions",
    b"LBV" + VERSION: "retrieval",
    b"LBW" + VERSION: "similarity",
}
"""Kinds of records by magic."""
_MAGIC = {kind: magic for magic, kind in _RECORDS.items()}
_KINDS: dict[type[object], tuple[bytes, str]] = {LabelFailure: (FAILURE_MAGIC, "failure")}
"""Magic and noun of each class of values besides records."""
LARGEST = 64 * 2**20
"""Bytes of JSON in one record: far above any real one, and a limit on decompression bombs."""

_LEVEL = 1
_DIGEST = 32
_KEY = re.compile("[0-9a-f]{64}")


class Checked(Protocol):
    """A value that can verify itself, such as a record."""

    @property
    def kind(self) -> str:
        """The name of its kind."""
        ...

    @property
    def key(self) -> str:
        """The key that it is stored under."""
        ...

    @property
    def id(self) -> str:
        """A name for messages."""
        ...

    def fault(self) -> str | None:
        """Return why the value cannot be valid, or ``None``."""
        ...

    def model_dump_json(self) -> str:
        """Return its JSON."""
        ...


Storable = Checked | LabelFailure
"""Values that a store keeps."""
_Value = TypeVar("_Value", bound=Frozen)


class DamagedRecord(Exception):
    """The bytes are damaged or belong to another key; the message names the defect."""


def register_kind(model: type[Frozen], magic: bytes, noun: str) -> None:
    """Let stores keep another class of values.

    Args:
        model: the class; its instances are :class:`Checked`.
        magic: three bytes, which no other kind may ever use.
        noun: names the kind in messages.
    """
    _KINDS[model] = (magic + VERSION, noun)


def encode(value: Storable) -> bytes:
    """Encode a value as checksummed bytes.

    Raises:
        UnstorableRecord: as for :func:`storable_json`.
    """
    return checksummed(type(value), storable_json(value))


def checksummed(model: type[object], text: bytes) -> bytes:
    """Return the checksummed bytes of a value's JSON."""
    body = zlib.compress(text, _LEVEL)
    return _format(model)[0] + hashlib.sha256(body).digest() + body


def storable_json(value: Storable) -> bytes:
    """Return the JSON of a valid value.

    Raises:
        UnstorableRecord: the value could not be read back: it contradicts itself, contains a lone
            surrogate or an object without a JSON form, or is too large.
    """
    require_valid(value)
    try:
        text = value.model_dump_json().encode()
    except ValueError as error:
        raise _not_json(value, error) from error
    if len(text) > LARGEST:
        raise UnstorableRecord(
            f"{_named(value)} is {len(text)} bytes of JSON; a store takes up to {LARGEST}; "
            "shorten its texts or its metadata"
        )
    _require_round_trip(value, text)
    return text


def decode_record(key: str, data: bytes) -> AnyRecord:
    """Decode the record stored under a key.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    model: Any = RECORDS[_RECORDS.get(data[:4], "label")]
    record: AnyRecord = decode(model, key, data)
    return record


def decode_failure(key: str, data: bytes) -> LabelFailure:
    """Decode the failure stored for a key.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    return decode(LabelFailure, key, data)


def decode(model: type[_Value], key: str, data: bytes) -> _Value:
    """Decode a value of a registered class.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    return _sound(model, data, key)


def decode_outcome(data: bytes) -> AnyOutcome:
    """Decode a record or failure that is stored under any key.

    Raises:
        DamagedRecord: the bytes are damaged, or of another version.
    """
    model: Any = LabelFailure
    if data[:4] != FAILURE_MAGIC:
        model = RECORDS[_RECORDS.get(data[:4], "label")]
    outcome: AnyOutcome = _sound(model, data)
    if not _KEY.fullmatch(outcome.key or ""):
        raise DamagedRecord(f"its own key is {outcome.key!r:.80}")
    return outcome


def require_valid(value: Storable) -> None:
    """Reject a value whose key is not its own, or whose answer breaks the contract.

    Raises:
        UnstorableRecord: see :meth:`labeler.labels.record.Record.fault`.
    """
    try:
        fault = _fault(value)
    except ValueError as error:
        raise _not_json(value, error) from error
    if fault:
        raise UnstorableRecord(f"{_named(value)} cannot be stored: {fault}")


def failure_key(failure: LabelFailure) -> str:
    """Return the label key of a failure.

    Raises:
        UsageError: the failure has no key, or one that no label can have.
    """
    if not _KEY.fullmatch(failure.key or ""):
        raise UsageError(
            f"{_named(failure)} cannot be stored: its key is {failure.key!r:.80}, a label's key is "
            "64 hexadecimal digits (see label_key); failures without a key are not stored"
        )
    return str(failure.key)


def _sound(model: type[_Value], data: bytes, key: str | None = None) -> _Value:
    """Decode a value, of any key or of a given one."""
    value = _parse(model, _inflate(_body(model, data)))
    stored = cast("Storable", value)
    if key is not None and stored.key != key:
        raise DamagedRecord(f"it holds the {_noun(model)} of another key, {stored.key!r:.80}")
    fault = _fault(stored)
    if fault:
        raise DamagedRecord(fault)
    return value


def _fault(value: Storable) -> str | None:
    return None if isinstance(value, LabelFailure) else value.fault()


def _require_round_trip(value: Storable, text: bytes) -> None:
    """Reject values that JSON does not preserve, such as NaN or very deep nesting."""
    try:
        same = _parse(cast("type[Frozen]", type(value)), text).model_dump_json().encode() == text
    except DamagedRecord as error:
        raise UnstorableRecord(f"{_named(value)} could not be read back: {error}") from error
    if not same:
        raise UnstorableRecord(
            f"{_named(value)} would be read back otherwise than it was; take what is no JSON "
            "out of its metadata"
        )


def _not_json(value: Storable, error: ValueError) -> UnstorableRecord:
    return UnstorableRecord(
        f"{_named(value)} cannot be written as JSON: {error}; take lone surrogates and "
        "objects that are no JSON out of its texts and metadata"
    )


def _noun(model: type[object]) -> str:
    return _format(model)[1]


def _named(value: Storable) -> str:
    return f"{_noun(type(value))} {value.id!r}"


def _format(model: type[object]) -> tuple[bytes, str]:
    """Return the magic and the noun of a class."""
    if issubclass(model, Record):
        return _MAGIC[model.model_fields["kind"].default], "record"
    return _KINDS[model]


def _body(model: type[Frozen], data: bytes) -> bytes:
    magic, noun = _format(model)
    start, checksum, body = data[:4], data[4 : 4 + _DIGEST], data[4 + _DIGEST :]
    if start != magic:
        if start[:3] == magic[:3]:
            raise DamagedRecord(
                f"it has format {start[3:]!r}, this version of labeler reads {VERSION!r}"
            )
        raise DamagedRecord(f"it does not begin as a sealed {noun} does")
    if hashlib.sha256(body).digest() != checksum:
        raise DamagedRecord("its checksum does not match: bytes were lost or changed")
    return body


def _inflate(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, LARGEST)
    except zlib.error as error:
        raise DamagedRecord(f"it cannot be decompressed: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise DamagedRecord("its compressed bytes do not end where they should")
    return text


def _parse(model: type[_Value], text: bytes) -> _Value:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        fault = describe_faults(error, whole="the whole")
        raise DamagedRecord(f"it is not a label {_noun(model)}: {fault}") from error
