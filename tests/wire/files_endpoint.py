"""Files that are uploaded for batches, and those that batches leave."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import HTTP
from typing import Any

from wire.calls import Call, Json
from wire.refusals import Refused


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
        """Answer ``POST /v1/files``.

        Raises:
            Refused: it is no form with a file for a batch.
        """
        head = f"content-type: {call.headers.get('content-type', '')}\r\n\r\n".encode()
        form = message_from_bytes(head + call.raw, policy=HTTP)
        if form.get_content_type() != "multipart/form-data":
            raise Refused(400, None, "Send the file as multipart/form-data.")
        parts = {
            part.get_param("name", header="content-disposition"): part for part in form.iter_parts()
        }
        filename = parts["file"].get_filename() if "file" in parts else None
        if not filename:
            raise Refused(400, "missing_required_parameter", "A file is required.", param="file")
        contents: dict[Any, Any] = {n: part.get_payload(decode=True) for n, part in parts.items()}
        if contents.get("purpose") != b"batch":
            raise Refused(400, "invalid_value", "The purpose must be batch.", param="purpose")
        if not filename.endswith(".jsonl"):
            raise Refused(400, None, "The file's name must end in .jsonl.", param="file")
        return self.add(filename, "batch", contents["file"]).as_json()

    def content(self, call: Call) -> bytes:
        """Answer ``GET /v1/files/{id}/content``."""
        return self.find(call.item).content
