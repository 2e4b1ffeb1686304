"""Serve a stand-in for a model that answers in probabilities, on this machine: Ctrl-C ends it.

python scripts/serve_decider.py --port 8001
"""

from __future__ import annotations

import argparse
import sys
import threading
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from wire.decider import Decider, overlap


def main() -> int:
    """Serve until interrupted."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8001)
    with Decider(overlap, port=options.parse_args().port) as server:
        print(server.url, flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
