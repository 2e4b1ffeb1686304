"""What the tests with a real model share: its server, a relay before it, a report at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from model.relay import Relay
from model.server import SERVED, Server, checked_weights, serving

_REPORT = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def weights() -> Path:
    """The model's weights."""
    return checked_weights()


@pytest.fixture(scope="session")
def server(weights: Path) -> Iterator[Server]:
    """The model server."""
    with serving(weights) as server:
        yield server


@pytest.fixture(scope="session")
def relay(server: Server) -> Iterator[Relay]:
    """What stands between the judge and the model server, and keeps what passes."""
    with Relay(server.url) as relay:
        yield relay


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> list[str]:
    """Lines to be printed at the end, also where every test passes."""
    return pytestconfig.stash.setdefault(_REPORT, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what the model did."""
    if lines := config.stash.get(_REPORT, []):
        terminalreporter.section(f"real model: {SERVED}")
        for line in lines:
            terminalreporter.write_line(line)
