"""Commands to go on with, complete: a reader can copy them into a shell as they stand."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from labeler.judges.openai.address import OFFICIAL_URL

_DEFAULT_STORE = ".labeler"


def command(
    action: str,
    *words: str,
    store: str | Path,
    base_url: str,
    organization: str | None = None,
    project: str | None = None,
) -> str:
    """A ``labeler batch`` command on one store at one address, quoted for a shell.

    Args:
        action: such as ``collect``.
        words: further arguments.
        store: the store's folder.
        base_url: where its batches are.
        organization: as it was given.
        project: the same.
    """
    said = ["labeler", "batch", action, *words]
    if str(store) != _DEFAULT_STORE or "LABELER_STORE" in os.environ:
        said += ["--store", str(store)]
    if base_url != OFFICIAL_URL:
        said += ["--base-url", base_url]
    if organization is not None:
        said += ["--organization", organization]
    if project is not None:
        said += ["--project", project]
    return shlex.join(said)
