"""Files that are uploaded for batches, and those that batches leave."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

from wire.calls import Call, Json
from wire.refusals import Refused

_DAY = 24 * 3600
_KEPT_DAYS = 30
_SECONDS = range(3600, _KEPT_DAYS * _DAY + 1)
_PARAMETER = re.compile(rb'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class StoredFile:
    """A file and what is known of it."""

    id: str
    filename: str
    purpose: str
    content: bytes
    created_at: int
    expires_at: int | None

    def as_json(self) -> Json:
        """The file object of the API."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


class Files:
    """The files of a provider."""

    def __init__(self) -> None:
        self.all: dict[str, StoredFile] = {}
        """In the order of their creation; deleted ones are gone."""
        self._made = 0

    def add(
        self, filename: str, purpose: str, content: bytes, expires_after: object = None
    ) -> StoredFile:
        """Keep a file."""
        self._made += 1
        now = int(time.time())
        file = StoredFile(
            f"file-{self._made:04}",
            filename,
            purpose,
            content,
            now,
            expiry(expires_after, now, "expires_after"),
        )
        self.all[file.id] = file
        return file

    def find(self, file_id: str, param: str = "id") -> StoredFile:
        """The file of that id.

        Raises:
            Refused: there is none.
        """
        if file_id not in self.all:
            raise Refused(404, None, f"No such File object: {file_id}", param=param)
        return self.all[file_id]

    # Requests

    def create(self, call: Call) -> Json:
        """Answer ``POST /v1/files``."""
        parts = form(call)
        if "file" not in parts or not parts["file"].filename:
            raise Refused(400, "missing_required_parameter", "A file is required.", param="file")
        purpose = parts["purpose"].content.decode() if "purpose" in parts else ""
        if purpose != "batch":
            raise Refused(400, "invalid_value", "The purpose must be batch.", param="purpose")
        file = parts["file"]
        if not file.filename.endswith(".jsonl"):
            raise Refused(400, None, "The file's name must end in .jsonl.", param="file")
        return self.add(file.filename, purpose, file.content, _expires_after(parts)).as_json()

    def retrieve(self, call: Call) -> Json:
        """Answer ``GET /v1/files/{id}``."""
        return self.find(call.item).as_json()

    def content(self, call: Call) -> bytes:
        """Answer ``GET /v1/files/{id}/content``."""
        return self.find(call.item).content

    def delete(self, call: Call) -> Json:
        """Answer ``DELETE /v1/files/{id}``."""
        file = self.find(call.item)
        del self.all[file.id]
        return {"id": file.id, "object": "file", "deleted": True}


def expiry(after: object, now: int, param: str) -> int | None:
    """When a file expires, by a policy that a request states; 30 days on where it states none.

    Raises:
        Refused: the policy is not one.
    """
    if after is None:
        return now + _KEPT_DAYS * _DAY
    known = isinstance(after, Mapping) and after.get("anchor") == "created_at"
    seconds: Any = after.get("seconds") if isinstance(after, Mapping) else None
    if not known or not isinstance(seconds, int) or seconds not in _SECONDS:
        message = "Use the anchor created_at and 3600 to 2592000 seconds."
        raise Refused(400, "invalid_value", message, param=param)
    return now + seconds


# Forms


@dataclass(frozen=True)
class Part:
    """One field of a form."""

    filename: str
    content: bytes


def form(call: Call) -> dict[str, Part]:
    """The fields of a multipart request, by name.

    Raises:
        Refused: it is no such request.
    """
    header = Message()
    header["content-type"] = call.headers.get("content-type", "")
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/form-data" or not isinstance(boundary, str):
        raise Refused(400, None, "Send the file as multipart/form-data.")
    parts = {}
    for piece in (b"\r\n" + call.raw).split(b"\r\n--" + boundary.encode())[1:-1]:
        head, _, content = piece.partition(b"\r\n\r\n")
        names = {key.decode(): text.decode() for key, text in _PARAMETER.findall(head)}
        if "name" in names:
            parts[names["name"]] = Part(names.get("filename", ""), content)
    return parts


def _expires_after(parts: Mapping[str, Part]) -> Json | None:
    fields = {
        name: parts[f"expires_after[{name}]"].content.decode()
        for name in ("anchor", "seconds")
        if f"expires_after[{name}]" in parts
    }
    if not fields:
        return None
    seconds = fields.get("seconds", "")
    return {**fields, "seconds": int(seconds) if seconds.isdecimal() else None}
