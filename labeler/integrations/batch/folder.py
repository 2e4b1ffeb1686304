"""What is known of batches, on the disk: everything is written down before it is waited for.

A store's batches stand in its folder ``batches``, one folder each::

    20261122T104500Z-3f9a1c02/
        batch.json              model, address, limits
        part-0001.json          where the part is: the one file of it that changes
        part-0001.keys          the label keys that it asks for
        part-0001.asked.jsonl   the sentences of each, so that no rows are needed afterwards
        part-0001.lines.jsonl   what is handed in
        part-0001.output.jsonl  what came back, kept as it came: it was paid for
        part-0001.errors.jsonl

A folder appears under its name when it is complete. A part that has to be asked about again in
part comes as further parts, ``part-0001-01``, which count from when the first is ``collected``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError
from labeler.integrations.batch.commands import command
from labeler.integrations.batch.service import RemoteBatch
from labeler.labels.record import Usage
from labeler.sentences.example import Frozen

FOLDER = "batches"
FACTS = "batch.json"

PartState = Literal["prepared", "uploaded", "creating", "created", "ended", "collected", "dropped"]
"""``creating``: a batch may have been started; ``ended``: nothing more will come; ``dropped``: its
user has given it up."""
UNSENT: frozenset[PartState] = frozenset({"prepared", "uploaded", "creating"})
CLOSED: frozenset[PartState] = frozenset({"collected", "dropped"})

T = TypeVar("T", bound=Frozen)

_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}", re.ASCII)
_PART = re.compile(r"part-(\d{4}(?:-\d{2})*)\.json", re.ASCII)
_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Results(Frozen):
    """What came of the lines of one part."""

    labelled: int = 0
    failed: dict[str, int] = Field(default_factory=dict)
    """Given up, by reason."""
    released: dict[str, int] = Field(default_factory=dict)
    """Not answered, and not asked again here: the next run buys them."""
    again: dict[str, int] = Field(default_factory=dict)
    """Asked again in a further part, by reason."""
    odd: dict[str, int] = Field(default_factory=dict)
    """Lines of the answer files that made no sense, by kind."""
    broken: dict[str, int] = Field(default_factory=dict)
    """Broken contracts, by kind."""
    answered: int = 0
    unmetered: int = 0
    """Answers of which the server does not say what they cost."""
    usage: Usage = Usage()
    cost: Decimal | None = None
    """US dollars for the metered answers; ``None`` where no price is known."""


class Part(Frozen):
    """One file of requests and the batch that it became."""

    version: Literal[1] = 1
    name: str
    round: int = 1
    """How often its requests are asked: 1 for the first time."""
    lines: int
    size: int
    """Bytes of the file of requests."""
    prepared: float
    """Unix time."""
    state: PartState = "prepared"
    crowded_out: int = 0
    """How often it was refused because other parts filled the account's queue."""
    file_id: str | None = None
    batch_id: str | None = None
    remote: RemoteBatch | None = None
    """What was last known of it."""
    results: Results | None = None

    @property
    def parent(self) -> str | None:
        """The part that this one asks again for."""
        return self.name.rpartition("-")[0] or None


class BatchFacts(Frozen):
    """What holds for every part of a batch."""

    version: Literal[1] = 1
    model: str
    base_url: str
    created: float
    """Unix time."""
    cap: int | None = None
    """Tokens that an answer may have."""
    reasks: int = 1
    """How often an answer may be sent back."""


class BatchFolder:
    """One batch on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.facts = _read(path / FACTS, BatchFacts)

    def parts(self) -> list[Part]:
        """Every part that counts, in order."""
        files = (_PART.fullmatch(file.name) for file in self.path.iterdir())
        names = sorted(match[1] for match in files if match)
        found = {name: self._part(name) for name in names}
        return [part for part in found.values() if _counts(part, found)]

    @property
    def is_open(self) -> bool:
        """Whether anything of it is still to come."""
        return any(part.state not in CLOSED for part in self.parts())

    def command(self, action: str, *options: str) -> str:
        """The command that does something to this batch."""
        store = self.path.parent.parent
        return command(action, self.name, *options, store=store, base_url=self.facts.base_url)

    def _part(self, name: str) -> Part:
        part = _read(self.file(name, "json"), Part)
        if part.name != name:
            raise _unreadable(self.file(name, "json"), "it names another part")
        return part

    def file(self, part: str, kind: str) -> Path:
        """A file of a part: ``keys``, ``lines.jsonl`` and so on."""
        return self.path / f"part-{part}.{kind}"

    def save(self, part: Part) -> None:
        """Write down where a part is."""
        write_durably(self.file(part.name, "json"), part.model_dump_json().encode())

    def keys(self, part: Part) -> list[str]:
        """The label keys that a part asks for."""
        path = self.file(part.name, "keys")
        keys = _content(path).decode("ascii", "replace").split()
        if len(keys) != part.lines or not all(map(_KEY.fullmatch, keys)):
            raise _unreadable(path, f"it should hold {part.lines} label keys")
        return keys

    def remove_children(self, part: Part) -> None:
        """Remove what an interrupted collection has begun to prepare."""
        for file in self.path.glob(f"part-{part.name}-*"):
            file.unlink()

    def marker(self, part: Part) -> str:
        """Our own name of a part's batch, kept by the provider."""
        again = f"/{part.crowded_out}" if part.crowded_out else ""
        return f"{self.name}/{part.name}{again}"


def _counts(part: Part, among: dict[str, Part]) -> bool:
    """Whether a part is more than the beginning of an interrupted collection."""
    if part.parent is None:
        return True
    parent = among.get(part.parent)
    return parent is not None and parent.state == "collected" and _counts(parent, among)


def batches(store: Path) -> list[BatchFolder]:
    """The batches of a store, oldest first.

    Raises:
        StoreError: what is known of one cannot be read.
    """
    found = [BatchFolder(path) for path in _folders(store)]
    return sorted(found, key=lambda folder: folder.facts.created)


def _folders(store: Path) -> list[Path]:
    try:
        return sorted(p for p in (store / FOLDER).iterdir() if _NAME.fullmatch(p.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(store / FOLDER, str(error)) from error


def batch(store: Path, name: str) -> BatchFolder:
    """One batch of a store.

    Raises:
        UsageError: there is no batch of this name.
    """
    for found in batches(store):
        if found.name == name:
            return found
    have = ", ".join(found.name for found in batches(store)) or "none"
    raise UsageError(f"the store {store} has no batch {name!r}; it has {have}")


def pending(store: str | Path) -> dict[str, str]:
    """Label keys that a batch of this store may still answer, each with the batch's name.

    Not among them: what was collected, dropped, or refused as a whole. Costs one small file for
    each part and 65 bytes for each key of an open one.

    Args:
        store: the store's folder; it need not exist.

    Raises:
        StoreError: what is known of a batch cannot be read: asking would risk paying twice.
    """
    found: dict[str, str] = {}
    for folder in batches(Path(store)):
        for part in folder.parts():
            if part.state not in CLOSED:
                found.update(dict.fromkeys(folder.keys(part), folder.name))
    return found


class Pending:
    """Tells of a label key whether a batch of a store may still answer it, now and later.

    Batches that are handed in meanwhile are noticed: each look lists the store's batches. One that
    asks under the lease of a key cannot miss a batch that asks for it, which is handed in under it.

    Args:
        store: the store's folder.
    """

    def __init__(self, store: str | Path) -> None:
        self._store = Path(store)
        self._seen: list[str] = []
        self._keys: dict[str, str] = {}

    def __call__(self, key: str) -> str | None:
        """The name of the batch that may still answer a key, or ``None``.

        Raises:
            StoreError: what is known of a batch cannot be read.
        """
        there = [path.name for path in _folders(self._store)]
        if there != self._seen:
            self._keys, self._seen = pending(self._store), there
        return self._keys.get(key)


@contextlib.contextmanager
def new_folder(store: Path, name: str) -> Iterator[Path]:
    """A folder that takes its name when all is written; nothing is left of one without facts."""
    home = store / FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    for left in home.glob(".new-*"):  # of a process that was killed; the lock is ours
        shutil.rmtree(left)
    aside = home / f".new-{name}"
    aside.mkdir(mode=0o700)
    try:
        yield aside
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    if not (aside / FACTS).exists():
        shutil.rmtree(aside)
        return
    _flush(aside)
    aside.rename(home / name)
    _flush(home)


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Keep others from changing the batches of a store; the lock ends with its process.

    Raises:
        StoreError: someone else is changing them.
    """
    home = store / FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as held:
        try:
            lock = sqlite3.connect(home / ".lock", timeout=0, isolation_level=None)
            held.callback(lock.close)
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise StoreError(
                f"another command is at work on the batches of {store} ({error}); "
                "wait until it ends, then run this again"
            ) from error
        yield


@contextlib.contextmanager
def told_of(folder: BatchFolder, part: Part, remedy: str = "") -> Iterator[None]:
    """Have an error of the provider name the part that it is about."""
    try:
        yield
    except JudgeError as error:
        kind = FatalJudgeError if isinstance(error, FatalJudgeError) else JudgeError
        message = f"{folder.name}, part {part.name}: {error}{remedy}"
        raise kind(message, reason=error.reason) from None


def write_durably(path: Path, content: bytes) -> None:
    """Write a small file so that it holds the old content or the new, whatever happens."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    _flush(path.parent)


def _flush(directory: Path) -> None:
    """Make new names in a directory survive a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read(path: Path, kind: type[T]) -> T:
    try:
        return kind.model_validate_json(_content(path))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise _unreadable(path, f"{where}: {first['msg']}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _unreadable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path}: cannot be read: {why}; restore it from a copy: without it labels might be paid "
        "for twice"
    )
