"""Checksummed bytes of records and failures, as a store keeps them.

Layout: four bytes of magic, whose last byte is the version; the SHA-256 of the rest; then the JSON
of the value, compressed with zlib. Only JSON is ever parsed; its ``kind`` selects the class.

The checksum detects damage and careless edits, not forgery: anyone who can write to the store can
write a matching checksum. The contract is checked when a value is written, so a read compares the
checksum and the key: a forger cannot move a label to another question, because every read derives
the key again from the sentences and the signature.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from labeler.errors import UnknownName, UnstorableRecord, UsageError, describe_faults
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, parse_outcome

MAGIC = b"LBL1"
LARGEST = 64 * 2**20
"""Bytes of JSON in one record: far above any real one, and a limit on decompression bombs."""

_LEVEL = 1
_HEADER = len(MAGIC) + 32
_KEY = re.compile("[0-9a-f]{64}")


_Parsed = TypeVar("_Parsed")


class DamagedRecord(Exception):
    """The bytes are damaged or belong to another key; the message names the defect."""


def encode(value: AnyOutcome) -> bytes:
    """Encode a valid value as checksummed bytes.

    Raises:
        UnstorableRecord: the value contradicts itself, contains a lone surrogate or an object
            without a JSON form, or is too large or too deeply nested to be read back.
    """
    try:
        require_valid(value)
        text = value.model_dump_json().encode()
        from_json(text)  # refuses deep nesting and integers of thousands of digits, as a read does
    except (ValueError, RecursionError) as error:
        raise UnstorableRecord(
            f"{value.kind} {value.id!r} cannot be stored as JSON: {error}; remove lone surrogates, "
            "deep nesting and objects that JSON cannot hold from its texts and metadata"
        ) from error
    if len(text) > LARGEST:
        raise UnstorableRecord(
            f"{value.kind} {value.id!r} is {len(text)} bytes of JSON; a store takes up to "
            f"{LARGEST}; shorten its texts or its metadata"
        )
    body = zlib.compress(text, _LEVEL)
    return MAGIC + hashlib.sha256(body).digest() + body


def require_valid(value: AnyOutcome) -> None:
    """Reject a value whose key is not its own, or whose answer breaks the contract.

    Raises:
        UnstorableRecord: see :meth:`labeler.labels.record.Record.fault`.
    """
    fault = None if isinstance(value, LabelFailure) else value.fault()
    if fault:
        raise UnstorableRecord(f"{value.kind} {value.id!r} cannot be stored: {fault}")


def failure_key(failure: LabelFailure) -> str:
    """Return the label key of a failure.

    Raises:
        UsageError: the failure has no key, or one that no label can have.
    """
    if not _KEY.fullmatch(failure.key or ""):
        raise UsageError(
            f"failure {failure.id!r} cannot be stored: its key is {failure.key!r:.80}, a label's "
            "key is 64 hexadecimal digits (see label_key); failures without a key are not stored"
        )
    return str(failure.key)


def decode_record(key: str, data: bytes) -> AnyRecord:
    """Decode the record stored under a key.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    record = _parse(parse_outcome, data)
    if isinstance(record, LabelFailure):
        raise DamagedRecord("it holds a failure in place of a record")
    _require_key(key, record)
    if record.compute_key() != key:
        raise DamagedRecord(f"its key does not belong to its {record.keyed_by}")
    return record


def decode_failure(key: str, data: bytes) -> LabelFailure:
    """Decode the failure stored for a key.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    failure = _parse(LabelFailure.model_validate_json, data)
    _require_key(key, failure)
    return failure


def decode_outcome(data: bytes) -> AnyOutcome:
    """Decode and fully check a record or a failure that is stored under any key.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or break the contract.
    """
    outcome: AnyOutcome = _parse(parse_outcome, data)
    if not _KEY.fullmatch(outcome.key or ""):
        raise DamagedRecord(f"its own key is {outcome.key!r:.80}")
    try:
        require_valid(outcome)
    except UnstorableRecord as error:
        raise DamagedRecord(str(error)) from error
    return outcome


def _parse(parse: Callable[[bytes], _Parsed], data: bytes) -> _Parsed:
    """Parse checksummed bytes after comparing magic and checksum."""
    checksum, body = data[len(MAGIC) : _HEADER], data[_HEADER:]
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedRecord(f"it begins with {data[:4]!r}, a checksummed record with {MAGIC!r}")
    if hashlib.sha256(body).digest() != checksum:
        raise DamagedRecord("its checksum does not match: bytes were lost or changed")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, LARGEST)
        if not inflater.eof or inflater.unused_data:
            raise DamagedRecord("its compressed bytes do not end where they should")
        return parse(text)
    except zlib.error as error:
        raise DamagedRecord(f"it cannot be decompressed: {error}") from error
    except UnknownName as error:
        raise DamagedRecord(str(error)) from error
    except ValidationError as error:
        fault = describe_faults(error, whole="the whole")
        raise DamagedRecord(f"it is not a record: {fault}") from error


def _require_key(key: str, value: AnyOutcome) -> None:
    if value.key != key:
        raise DamagedRecord(f"it holds the {value.kind} of another key, {value.key!r:.80}")
