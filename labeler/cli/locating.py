"""Labels that lie at addresses, such as ``s3://bucket/labels/``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labeler.data.lines import STDIO, is_remote
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.labels.record import AnyOutcome

_LINES = re.compile(r"\.(jsonl?|ndjson|txt)(\.gz)?$|\.gz$", re.IGNORECASE)
"""How the names of files end that are no Parquet; all others mean folders or patterns of it."""


def located(names: Sequence[str]) -> list[str]:
    """Names of labels, with the files of folders and patterns that are at addresses.

    Raises:
        UsageError: there is no Parquet file there.
    """
    if not any(map(is_remote, names)):
        return list(names)

    from labeler.data.label_files import is_index
    from labeler.integrations.ray.parts import input_files

    found = []
    for name in names:
        files = input_files(name) if is_remote(name) and not _is_lines(name) else [name]
        found += [file for file in files if not is_index(file)]
    return found


def refuse_repeats(names: Sequence[str]) -> None:
    """Refuse a file that is named twice, such as by its name and by a pattern that it fits.

    Raises:
        UsageError: each of their rows would count twice.
    """
    from labeler.calculators.index import is_store
    from labeler.data.label_files import parts_of

    named: dict[str, str] = {}
    for name in names:
        alone = is_remote(name) or name == STDIO or is_store(Path(name))
        for part in [name] if alone else parts_of(name) or [name]:
            here = part.removeprefix("file://")
            place = part if is_remote(here) or part == STDIO else os.path.realpath(here)
            if place in named:
                raise UsageError(
                    f"{part} and {named[place]} are the same file: its rows would count twice; "
                    "name each file once"
                )
            named[place] = part


def outcomes_at(labels: str) -> Iterator[AnyOutcome]:
    """Outcomes of a label file, a store, or a folder or pattern of Parquet files, also remote.

    Raises:
        UsageError: nothing is there, or it cannot be read.
    """
    from labeler.calculators.outcomes import stored_outcomes

    for name in located([labels]):
        yield from stored_outcomes(name)


def _is_lines(address: str) -> bool:
    """Whether an address is that of a file of JSON Lines; one of the web may end in a query."""
    scheme = address.partition("://")[0].lower()
    path = address.partition("?")[0] if scheme in {"http", "https"} else address
    return bool(_LINES.search(path))
