"""``python -m labeler``, and the ``labeler`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    try:
        from labeler.cli import run  # noqa: PLC0415 - so that importing this module costs nothing
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run())


if __name__ == "__main__":
    main()
