"""A cluster of Ray with two processors, on this machine alone, for as long as it is not ended."""

from __future__ import annotations

import signal
import sys
import threading

import ray


def main() -> None:
    """Print its address, and wait."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    sys.stdout.write(f"{ray.get_runtime_context().gcs_address}\n")
    sys.stdout.flush()
    ended.wait()
    ray.shutdown()


if __name__ == "__main__":
    main()
