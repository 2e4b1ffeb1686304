"""Folders of partitions, local or at an fsspec address; files appear complete."""

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
from labeler.version import install_command


class Folder(Protocol):
    """A folder for files."""

    def names(self) -> list[str]:
        """Return the names of its files; none if it does not exist."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or ``None``."""
        ...

    def put(self, name: str, file: Path) -> None:
        """Copy a local file to a name; it appears when it is complete."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        ...


def open_folder(name: str) -> Folder:
    """Return the folder of a path or an address.

    Raises:
        UsageError: a package that the address needs is not installed.
    """
    return _Remote(name) if is_remote(name) else _Local(Path(name))


def glob_files(address: str) -> list[str]:
    """Return the addresses that match a pattern with a scheme, in order."""
    with _naming_errors(address):
        files, pattern = _open_filesystem(address)
        return [str(files.unstrip_protocol(one)) for one in sorted(files.glob(pattern))]


def put_bytes(folder: Folder, name: str, content: bytes) -> None:
    """Write a small file."""
    with _temporary_file() as file:
        file.write_bytes(content)
        folder.put(name, file)


def put_table(folder: Folder, name: str, table: Any, group: int) -> None:  # noqa: ANN401 - pyarrow has no types
    """Write a table as Parquet with row groups of a given number of rows."""
    with _temporary_file() as file:
        pq.write_table(
            table, file, row_group_size=group, compression="zstd", write_page_checksum=True
        )
        folder.put(name, file)


@contextmanager
def _temporary_file() -> Iterator[Path]:
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

    def put(self, name: str, file: Path) -> None:
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
        with _naming_errors(address):
            self._files, self._root = _open_filesystem(self._address)

    def names(self) -> list[str]:
        with _naming_errors(self._address):
            self._files.invalidate_cache()
            if not self._files.exists(self._root):
                return []
            return sorted(
                one.rsplit("/", 1)[-1] for one in self._files.ls(self._root, detail=False)
            )

    def read(self, name: str) -> bytes | None:
        with _naming_errors(self._address):
            try:
                content: bytes = self._files.cat_file(f"{self._root}/{name}")
            except FileNotFoundError:
                return None
            return content

    def put(self, name: str, file: Path) -> None:
        partial = f"{self._root}/.{name}.{uuid.uuid4().hex}.partial"
        with _naming_errors(self._address):
            self._files.makedirs(self._root, exist_ok=True)
            self._files.put_file(str(file), partial)
            self._files.mv(partial, f"{self._root}/{name}")

    def remove(self, name: str) -> None:
        with _naming_errors(self._address):
            if self._files.exists(f"{self._root}/{name}"):
                self._files.rm_file(f"{self._root}/{name}")


def _open_filesystem(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    import fsspec  # noqa: PLC0415 - needed only for remote addresses

    files, path = fsspec.core.url_to_fs(address)
    files.invalidate_cache()
    return files, path


@contextmanager
def _naming_errors(address: str) -> Iterator[None]:
    """Name the address in every error: each backend has its own kinds."""
    try:
        yield
    except Exception as error:
        raise UsageError(
            f"cannot use {address}: {type(error).__name__}: {str(error)[:300]}; check the address, "
            "and that fsspec and what its scheme needs are installed "
            f"({install_command('remote')})"
        ) from error
