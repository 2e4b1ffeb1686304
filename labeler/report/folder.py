"""A report as a folder: a page, and files of records that it loads when they are needed.

``index.html`` has the figures, ``records/index.js`` the list of records, ``records/chunk-0.js`` and
so on their texts. The files are scripts: a page that is opened from a disk can load nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labeler.data.lines import clear_leftovers, partial_suffix
from labeler.errors import UsageError
from labeler.report.page import pack

PAGE = "index.html"
RECORDS = "records"
"""Name of the folder with the files of records, as in ``report_blocks.js``."""

_INDEX = "index.js"
_FILE = re.compile(r"index\.js|chunk-\d+\.js", re.ASCII)
_CALL = "receiveBlock("
"""Function of the page that each file calls; pages and files of other origin lack it."""
_PAGE_SUFFIXES = (".html", ".htm")


def is_folder(path: str | Path) -> bool:
    """Return True if a report of this name is a folder, False if it is one page.

    An existing folder, a name that ends in ``/`` and one without a suffix are folders.

    Raises:
        UsageError: the name has another suffix than ``.html``.
    """
    name = os.fspath(path)
    if name.endswith(("/", os.sep)) or not Path(name).suffix or Path(name).is_dir():
        return True
    if name.lower().endswith(_PAGE_SUFFIXES):
        return False
    raise UsageError(
        f"{name}: a report is a page or a folder: name a page such as report.html, or end a "
        "folder's name with /"
    )


@contextmanager
def replacing_report(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files become those of a report if all went well.

    An earlier report is replaced; other files never are. The page is moved last, so a folder with a
    page is complete.

    Raises:
        UsageError: the folder has files that are not of a report, or it cannot be written.
    """
    is_new = not folder.exists()
    partial = folder / f".report{partial_suffix()}"
    try:
        folder.mkdir(exist_ok=True)
        clear_leftovers(folder)
        _reject_others(folder)
        (partial / RECORDS).mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"cannot write in {folder}: {error.strerror}; check the folder") from error
    try:
        yield partial
        _reject_others(folder, partial.name)
        (folder / PAGE).unlink(missing_ok=True)
        if (folder / RECORDS).exists():
            (folder / RECORDS).rename(partial / "replaced")
        (partial / RECORDS).rename(folder / RECORDS)
        (partial / PAGE).rename(folder / PAGE)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # it has a report
                folder.rmdir()


def write_blocks(folder: Path, blocks: Iterable[tuple[str, object]]) -> list[Path]:
    """Write each block as a file of the records of a folder, and return their names in it."""
    names = []
    for name, value in blocks:
        names.append(Path(RECORDS, f"{name}.js"))
        (folder / names[-1]).write_text(f'{_CALL}"{pack(value)}");\n', encoding="ascii")
    return names


def _reject_others(folder: Path, *expected: str) -> None:
    """Reject a folder with files that are not of a report.

    Raises:
        UsageError: it has some.
    """
    for path in sorted(folder.iterdir()):
        if path.name not in expected and not _is_own(path):
            raise UsageError(
                f"{folder} has {path.name}, which is not part of a report: name a new or empty "
                "folder, or remove that file"
            )


def _is_own(path: Path) -> bool:
    """Return True for the page and the records of a report in its folder."""
    if path.name == PAGE:
        return path.is_file() and _CALL in path.read_text(encoding="utf-8", errors="replace")
    if path.name != RECORDS or path.is_symlink() or not path.is_dir():
        return False
    files = {each.name: each for each in path.iterdir()}
    if not all(_FILE.fullmatch(name) and each.is_file() for name, each in files.items()):
        return False
    if _INDEX not in files:
        return False
    with files[_INDEX].open(encoding="ascii", errors="replace") as file:
        return file.read(len(_CALL)) == _CALL
