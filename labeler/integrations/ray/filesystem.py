"""Folders of partitions, on this machine or at an address of fsspec; files appear whole."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from labeler.data.lines import is_remote
from labeler.errors import UsageError


class Folder(Protocol):
    """A place for files."""

    def names(self) -> list[str]:
        """Names of the files in it; none where it is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """What a file holds; ``None`` where there is none."""
        ...

    def take(self, name: str, file: Path) -> None:
        """Have a file of this machine under a name; it appears when it is whole."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


def folder_of(name: str) -> Folder:
    """The folder of a path or an address.

    Raises:
        UsageError: what the address needs is not installed.
    """
    return _Remote(name) if is_remote(name) else _Local(Path(name))


def files_like(address: str) -> list[str]:
    """The addresses that a pattern with a scheme fits, in order."""
    with _failing(address):
        files, pattern = _opened(address)
        return [str(files.unstrip_protocol(one)) for one in sorted(files.glob(pattern))]


def put_bytes(folder: Folder, name: str, content: bytes) -> None:
    """Write a small file."""
    with _aside() as file:
        file.write_bytes(content)
        folder.take(name, file)


def put_table(folder: Folder, name: str, table: Any, group: int) -> None:  # noqa: ANN401 - pyarrow has no types
    """Write a table as Parquet, in row groups of so many rows."""
    with _aside() as file:
        pq.write_table(
            table, file, row_group_size=group, compression="zstd", write_page_checksum=True
        )
        folder.take(name, file)


@contextmanager
def _aside() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="labeler-") as folder:
        yield Path(folder, "file")


class _Local:
    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        if self._path.exists() and not self._path.is_dir():
            raise UsageError(f"{self._path} is a file: give a folder for the partitions")
        return sorted(one.name for one in self._path.iterdir()) if self._path.exists() else []

    def read(self, name: str) -> bytes | None:
        file = self._path / name
        return file.read_bytes() if file.exists() else None

    def take(self, name: str, file: Path) -> None:
        partial = self._path / f".{name}.{uuid.uuid4().hex}.partial"
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as copy:
                copy.write(file.read_bytes())
                copy.flush()
                os.fsync(copy.fileno())
            partial.replace(self._path / name)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise UsageError(
                f"cannot write {self._path / name}: {error.strerror}; check the folder"
            ) from error

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)


class _Remote:
    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        with _failing(address):
            self._files, self._root = _opened(self._address)

    def names(self) -> list[str]:
        with _failing(self._address):
            self._files.invalidate_cache()
            if not self._files.exists(self._root):
                return []
            return sorted(
                one.rsplit("/", 1)[-1] for one in self._files.ls(self._root, detail=False)
            )

    def read(self, name: str) -> bytes | None:
        with _failing(self._address):
            try:
                content: bytes = self._files.cat_file(f"{self._root}/{name}")
            except FileNotFoundError:
                return None
            return content

    def take(self, name: str, file: Path) -> None:
        partial = f"{self._root}/.{name}.{uuid.uuid4().hex}.partial"
        with _failing(self._address):
            self._files.makedirs(self._root, exist_ok=True)
            self._files.put_file(str(file), partial)
            self._files.mv(partial, f"{self._root}/{name}")

    def remove(self, name: str) -> None:
        with _failing(self._address):
            if self._files.exists(f"{self._root}/{name}"):
                self._files.rm_file(f"{self._root}/{name}")


def _opened(address: str) -> tuple[Any, str]:
    """The file system of an address, and the address in it."""
    import fsspec  # noqa: PLC0415 - installed by those who read from afar

    files, path = fsspec.core.url_to_fs(address)
    files.invalidate_cache()
    return files, path


@contextmanager
def _failing(address: str) -> Iterator[None]:
    """Name the address where anything goes wrong with it: each backend has errors of its own."""
    try:
        yield
    except Exception as error:
        raise UsageError(
            f"cannot use {address}: {type(error).__name__}: {str(error)[:300]}; check the address, "
            "and that fsspec and what its scheme needs are installed "
            "(pip install 'rag-labeler[remote]')"
        ) from error
