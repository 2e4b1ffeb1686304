"""The wording of messages, in one file that ``pytest --rewrite-messages`` writes again.

A test compares reason code, place and value itself, and hands the whole message to the fixture
``wording``. Rewrite without ``-n``, then read the difference of ``tests/messages.txt``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "messages.txt"
MARK = "=== "


class Wording:
    """Messages by name, as the file has them.

    Args:
        rewriting: keep new messages instead of comparing them.
    """

    def __init__(self, *, rewriting: bool) -> None:
        self.rewriting = rewriting
        parts = FILE.read_text(encoding="utf-8").split(f"\n{MARK}") if FILE.exists() else []
        pairs = (part.removeprefix(MARK).partition("\n") for part in parts)
        self.known = {name: text.strip() for name, _, text in pairs}

    def __call__(self, name: str, message: str) -> None:
        """Assert that a message is worded as the file has it."""
        if self.rewriting:
            self.known[name] = message.strip()
        assert self.known.get(name) == message.strip(), "pytest --rewrite-messages accepts it"

    def save(self) -> None:
        """Write the messages, sorted by name."""
        lines = (f"{MARK}{name}\n{text}\n" for name, text in sorted(self.known.items()))
        FILE.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="session")
def wording(request: pytest.FixtureRequest) -> Iterator[Wording]:
    """Messages that are compared with ``tests/messages.txt``."""
    made = Wording(rewriting=request.config.getoption("--rewrite-messages"))
    yield made
    if made.rewriting:
        made.save()
