"""Files that are uploaded for batches, and those that batches leave."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from email.message import Message

from wire.calls import Call, Json
from wire.refusals import Refused

_PARAMETER = re.compile(rb'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class StoredFile:
    """A file and what is known of it."""

    id: str
    filename: str
    purpose: str
    content: bytes
    created_at: int

    def as_json(self) -> Json:
        """The file object of the API."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created_at,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


class Files:
    """The files of a provider."""

    def __init__(self) -> None:
        self.all: dict[str, StoredFile] = {}
        """In the order of their creation."""

    def add(self, filename: str, purpose: str, content: bytes) -> StoredFile:
        """Keep a file."""
        name = f"file-{len(self.all) + 1:04}"
        file = StoredFile(name, filename, purpose, content, int(time.time()))
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
        return self.add(file.filename, purpose, file.content).as_json()

    def content(self, call: Call) -> bytes:
        """Answer ``GET /v1/files/{id}/content``."""
        return self.find(call.item).content


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
