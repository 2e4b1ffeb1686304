"""Add the digests of new prompts and schemas to the lock; never change an existing one.

Run it after adding a version: python scripts/lock_artifacts.py
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from labeler.labels.signature import read_resource, resource_names

LOCK = Path(__file__).parent.parent / "tests" / "golden" / "digests.json"


def digests() -> dict[str, str]:
    """SHA-256 of every prompt and schema that ships, by file."""
    return {
        f"{kind}/{name}{suffix}": hashlib.sha256(
            read_resource(kind, name, suffix).encode()
        ).hexdigest()
        for kind, suffix in (("prompts", ".md"), ("schemas", ".json"))
        for name in resource_names(kind, suffix)
    }


def main() -> int:
    """Write the lock, unless a published file was edited."""
    locked = json.loads(LOCK.read_text()) if LOCK.exists() else {}
    edited = [name for name, digest in digests().items() if locked.get(name, digest) != digest]
    if edited:
        print(f"published and edited: {', '.join(edited)}; restore them and add a new version")
        return 1
    LOCK.write_text(json.dumps(digests(), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
