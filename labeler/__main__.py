"""``python -m labeler``, and the ``labeler`` command."""

from __future__ import annotations

import gc
import os
import sys

_OBJECTS = 150_000
"""New objects between two collections of garbage: more than a short command makes, and keeps."""


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    gc.set_threshold(_OBJECTS)
    # Plugins of pydantic would see every document, and looking for them takes time.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    _open_closed_streams()
    try:
        from labeler.cli import run  # noqa: PLC0415 - so that importing this module costs nothing
    except KeyboardInterrupt:
        sys.exit(130)
    code = run()
    gc.freeze()  # what is left goes with the process: looking for garbage in it takes its time
    sys.exit(code)


def _open_closed_streams() -> None:
    """Replace closed standard streams, because other files would get their numbers.

    Writing to standard output is then an error; standard error is dropped.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            file = os.open(os.devnull, flags)
            setattr(sys, name, os.fdopen(file, "r" if name == "stdin" else "w"))


if __name__ == "__main__":
    main()
