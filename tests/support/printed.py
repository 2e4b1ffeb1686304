"""Blocks of shell commands as pages print them, for tests that run them in their own process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from wire.runs import settings

READ = """
set -eu
labeler() { "$PYTHON" -Ic 'import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))' "$@"; }
"""  # noqa: E501 - one line of shell
"""A ``labeler`` that prints its arguments and its environment."""


class Printed(NamedTuple):
    """A command of a block."""

    arguments: list[str]
    variables: dict[str, str]
    """The environment that the block made for it."""


def read_block(block: str, folder: Path) -> list[Printed]:
    """Have a shell read a block, and run all of it but for ``labeler``.

    Args:
        block: lines of shell; the output of a command goes nowhere else.
        folder: where it is run.

    Returns:
        The commands, in order.
    """
    done = subprocess.run(
        ["/bin/sh", "-c", READ + block],
        cwd=folder,
        env=settings() | {"PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Printed(*json.loads(line)) for line in done.stdout.splitlines()]
