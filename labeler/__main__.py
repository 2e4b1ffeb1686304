"""``python -m labeler``, and the ``labeler`` command."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    try:
        from labeler.cli import run  # noqa: PLC0415 - so that importing this module costs nothing
    except KeyboardInterrupt:
        sys.exit(130)
    code = run()
    gc.freeze()  # what is left goes with the process: looking for garbage in it takes its time
    sys.exit(code)


if __name__ == "__main__":
    main()
