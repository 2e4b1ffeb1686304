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
import zlib

from pydantic import ValidationError
from pydantic_core import from_json

from labeler.errors import UnknownName, UnstorableRecord, describe_faults
from labeler.labels.record import AnyOutcome, LabelFailure, parse_outcome

MAGIC = b"LBL1"
LARGEST = 64 * 2**20
"""Bytes of JSON in one record: far above any real one, and a limit on decompression bombs."""
FAILURE = "failure:"
"""Prefix of the names of failures; the name of a record is its key, which is hexadecimal."""

_LEVEL = 1
_HEADER = len(MAGIC) + 32


class DamagedRecord(Exception):
    """The bytes are damaged or belong to another key; the message names the defect."""


def name_of(outcome: AnyOutcome) -> str:
    """Return the name under which a store keeps an outcome."""
    return FAILURE * isinstance(outcome, LabelFailure) + str(outcome.key)


def encode(value: AnyOutcome) -> bytes:
    """Encode a record or failure as checksummed bytes.

    Raises:
        UnstorableRecord: it contains a lone surrogate or an object without a JSON form, or is too
            large or too deeply nested to be read back.
    """
    try:
        text = value.model_dump_json().encode()
        from_json(text)  # rejects deep nesting and integers of thousands of digits, as a read does
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
    """Reject a value that has a fault; see :meth:`labeler.labels.record.Record.fault`.

    Raises:
        UnstorableRecord: its key is not its own, or its answer breaks the contract.
    """
    try:
        fault = value.fault()
    except UnicodeError as error:
        fault = f"{error}; remove lone surrogates from its texts"
    if fault:
        raise UnstorableRecord(f"{value.kind} {value.id!r} cannot be stored: {fault}")


def decode(name: str, data: bytes) -> AnyOutcome:
    """Decode the record or failure that is stored under a name.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    outcome = _parsed(data)
    if name_of(outcome) != name:
        raise DamagedRecord(misplaced(outcome))
    if not isinstance(outcome, LabelFailure) and outcome.compute_key() != outcome.key:
        raise DamagedRecord(f"its key does not belong to its {outcome.keyed_by}")
    return outcome


def decode_fully(data: bytes) -> AnyOutcome:
    """Decode a record or failure that is stored under any name, and check its contract.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or break the contract.
    """
    outcome = _parsed(data)
    try:
        require_valid(outcome)
    except UnstorableRecord as error:
        raise DamagedRecord(str(error)) from error
    return outcome


def misplaced(outcome: AnyOutcome) -> str:
    """Return the defect of a row that holds an outcome of another name."""
    return f"it holds the {outcome.kind} {outcome.id!r:.80} of key {name_of(outcome):.80}"


def _parsed(data: bytes) -> AnyOutcome:
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
        return parse_outcome(text)
    except zlib.error as error:
        raise DamagedRecord(f"it cannot be decompressed: {error}") from error
    except UnknownName as error:
        raise DamagedRecord(str(error)) from error
    except ValidationError as error:
        fault = describe_faults(error, whole="the whole")
        raise DamagedRecord(f"it is not a record: {fault}") from error
