from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labeler.errors import StoreError
from labeler.store import leases
from labeler.store.disk import DiskStore
from labeler.store.leases import FILES
from support.stored import started

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills, links and limits are POSIX here")

KEYS = [f"{n:064x}" for n in range(64)]

_HOLD = """
import sys
{before}
from labeler.store.disk import DiskStore
store = DiskStore(sys.argv[1])
held = [store.lease(key) for key in sys.argv[2:]]
print(*(int(lease is not None) for lease in held), flush=True)
sys.stdin.readline()
{after}
"""

NO_OFD = "import fcntl; fcntl.F_OFD_SETLK = 9_999"
"""Linux answers a command that it does not know with EINVAL, as it does where this one lacks."""


@contextmanager
def other_process(
    directory: Path, *keys: str, before: str = "", after: str = ""
) -> Iterator[tuple[subprocess.Popen[str], list[bool]]]:
    """A process that asks for leases and keeps them until told; which of them it got."""
    with started(_HOLD.format(before=before, after=after), directory, *keys) as process:
        assert process.stdout
        got = [word == "1" for word in process.stdout.readline().split()]
        assert len(got) == len(keys)
        try:
            yield process, got
        finally:
            process.kill()


def go_on(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Tell a process to do what comes after, and return what it says then."""
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    return [process.stdout.readline() for _ in range(lines)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where a store is, or will be."""
    return tmp_path / "s"


@pytest.fixture
def store(directory: Path) -> Iterator[DiskStore]:
    """A store in this process."""
    with DiskStore(directory) as made:
        yield made


@pytest.mark.parametrize("before", ["", NO_OFD], ids=["locks of a file", "locks of a process"])
def test_two_processes_never_share_a_lease(store: DiskStore, before: str) -> None:
    """In neither direction; the rest is free, and after kill -9 the keys of the dead."""
    assert store.lease(KEYS[0])
    with other_process(store.directory, *KEYS, before=before) as (process, got):
        assert got == [False, *[True] * (len(KEYS) - 1)]
        assert not any(store.lease(key) for key in KEYS)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert all(store.lease(key) for key in KEYS[1:])


ENDS = {
    "release": "[lease.release() for lease in held]",
    "close": "store.close()",
    "the end of the store object": "del store",
}


@pytest.mark.parametrize(
    ("before", "after"), [*(("", end) for end in ENDS.values()), (NO_OFD, ENDS["release"])]
)
def test_another_process_hears_of_the_end(store: DiskStore, before: str, after: str) -> None:
    """Release, close and collection free the keys while the process that had them lives on."""
    after = f"{after}\nprint('free', flush=True)\nsys.stdin.readline()"
    with other_process(store.directory, *KEYS, before=before, after=after) as (process, got):
        assert all(got)
        assert store.lease(KEYS[0]) is None
        assert go_on(process, 1) == ["free\n"]
        assert all(store.lease(key) for key in KEYS)
        assert process.poll() is None


@pytest.fixture(params=["locks of a file", "locks of a process"])
def two_stores(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[DiskStore, DiskStore]]:
    """Two objects for one store in this process, with either kind of lock."""
    if request.param == "locks of a process":
        monkeypatch.setattr("fcntl.F_OFD_SETLK", 9_999, raising=False)
    with DiskStore(tmp_path / "s") as first, DiskStore(tmp_path / "s") as second:
        yield first, second


def test_two_stores_in_one_process_share_no_lease(two_stores: tuple[DiskStore, DiskStore]) -> None:
    """What one object holds is refused to the other and to other processes, until its end alone."""
    first, second = two_stores
    lease, old = first.lease(KEYS[0]), first.lease(KEYS[1])
    assert lease
    assert old
    assert second.lease(KEYS[0]) is None
    lease.release()
    assert second.lease(KEYS[0])
    assert first.lease(KEYS[0]) is None
    assert all(first.lease(key) for key in KEYS[2:8])
    first.close()
    assert second.lease(KEYS[1])
    old.release()  # the lease of a closed store does not touch the present holder's
    with other_process(second.directory, *KEYS) as (_, got):
        assert got == [False] * 2 + [True] * (len(KEYS) - 2)
    assert all(second.lease(key) for key in KEYS[2:8])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files on Linux only")
def test_the_last_holder_closes_the_files(two_stores: tuple[DiskStore, DiskStore]) -> None:
    """They stay open while any store of the process holds a lease, and no longer."""

    def opened() -> set[Path]:
        return leased.intersection(path.resolve() for path in Path("/proc/self/fd").iterdir())

    leased = {(two_stores[0].directory / name).resolve() for name in FILES}
    assert two_stores[0].lease(KEYS[0])
    assert two_stores[1].lease(KEYS[1])
    both = opened()
    two_stores[0].close()
    assert opened() == both
    two_stores[1].close()
    assert not opened()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has locks of an open file")
def test_reading_the_directory_loses_no_lease(store: DiskStore) -> None:
    """A program that opens and closes the files itself, as a copy does, frees nothing."""
    assert store.lease(KEYS[0])
    for name in FILES:
        (store.directory / name).touch()
        (store.directory / name).read_bytes()
    with other_process(store.directory, KEYS[0]) as (_, got):
        assert got == [False]


def test_a_started_program_keeps_no_lease(directory: Path) -> None:
    """A program that this one started, and that outlives the store, does not hold its keys."""
    store = DiskStore(directory)
    assert store.lease(KEYS[0])
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        close_fds=False,
    ) as child:
        store.close()
        with DiskStore(directory) as another:
            assert another.lease(KEYS[0])
        child.communicate(timeout=10)


_FORK = """
child = os.fork()
if child == 0:
    held[0].release()
    os.write(1, f"child got {store.lease(sys.argv[2])}\\n".encode())
    os.read(0, 1)  # Until the test is over.
    os._exit(0)
else:
    os.write(1, b"parent holds\\n" if store.lease(sys.argv[2]) is None else b"parent lost\\n")
    sys.stdin.readline()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_frees_nor_keeps_a_lease(store: DiskStore) -> None:
    """It gets nothing that its parent holds, and after the parent's death holds nothing."""
    before = "import os, warnings; warnings.simplefilter('ignore')"
    with other_process(store.directory, KEYS[0], before=before, after=_FORK) as (process, got):
        assert got == [True]
        assert sorted(go_on(process, 2)) == ["child got None\n", "parent holds\n"]
        assert store.lease(KEYS[0]) is None
        process.kill()
        process.wait(10)
        assert store.lease(KEYS[0])


def test_keys_that_share_a_byte_wait_for_one_another(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collision of digests costs a wait, and releasing one key frees the byte just once."""
    monkeypatch.setattr(leases, "_place", lambda _: (FILES[0], 5))
    first = store.lease(KEYS[0])
    assert first
    assert store.lease(KEYS[1]) is None
    first.release()
    assert store.lease(KEYS[1])
    first.release()
    assert store.lease(KEYS[0]) is None


def test_the_files_are_private_and_stay_empty(store: DiskStore) -> None:
    """There are none before the first lease, and then they are empty, with mode 600."""
    assert not list(store.directory.glob("leases*"))
    assert all(store.lease(key) for key in KEYS)
    made = list(store.directory.glob("leases*"))
    assert {file.name for file in made} == set(FILES)
    for file in made:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.stat().st_size == 0


PLANTED: dict[str, Callable[[Path], object]] = {
    "a link": lambda file: file.symlink_to(file.parent.parent / "elsewhere"),
    "a link to nowhere": lambda file: file.symlink_to(file.parent.parent / "nowhere"),
    "a directory": Path.mkdir,
    "a pipe": getattr(os, "mkfifo", Path.mkdir),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED.keys())
def test_what_is_no_plain_file_is_refused(
    store: DiskStore, plant: Callable[[Path], object]
) -> None:
    """Nothing is followed or made elsewhere, nor waited for; the rest of the store works."""
    (store.directory.parent / "elsewhere").write_text("mine")
    name, _ = leases._place(KEYS[0])
    plant(store.directory / name)
    with pytest.raises(StoreError, match=r"gives no leases|not a regular file"):
        store.lease(KEYS[0])
    assert not (store.directory.parent / "nowhere").exists()
    assert store.lease(next(key for key in KEYS if leases._place(key)[0] != name))


def test_a_removed_file_is_noticed(store: DiskStore) -> None:
    """Where the files are removed under an open store, it gives no more leases of them."""
    assert store.lease(KEYS[0])
    name, _ = leases._place(KEYS[0])
    (store.directory / name).unlink()
    with pytest.raises(StoreError, match="not a regular file, or was removed"):
        store.lease(next(key for key in KEYS[1:] if leases._place(key)[0] == name))


@pytest.mark.parametrize("code", ["ENOLCK", "EPERM", "EOPNOTSUPP", "EROFS"])
def test_a_file_system_without_locks_is_named(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Where the system refuses, nobody is taken for the holder: the error says what helps."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(getattr(errno, code), "it cannot")

    refusing = (os, "open") if code == "EROFS" else (leases, "_set_lock")
    monkeypatch.setattr(*refusing, refuse)
    with pytest.raises(StoreError, match=r"it cannot; .*local disk.*you may write to"):
        store.lease(KEYS[0])


def test_a_moved_store_gives_leases_where_it_is(directory: Path) -> None:
    """A closed store object that is still referenced does not keep the old place."""
    with DiskStore(directory) as before:
        before.lease(KEYS[0])
    with DiskStore(directory.rename(directory.with_name("moved"))) as store:
        assert all(store.lease(key) for key in KEYS)
    assert not before.directory.exists()
