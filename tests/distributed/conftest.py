"""What the tests on Ray share."""

from __future__ import annotations

import importlib.util
import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip where Ray is not installed, or fail where ``RAY_TESTS=required``."""
    if importlib.util.find_spec("ray") is not None:
        return
    reason = "ray not installed: see tests/distributed/requirements.txt"
    if os.environ.get("RAY_TESTS") == "required":
        raise pytest.UsageError(f"RAY_TESTS=required, and {reason}")
    for item in items:
        if "distributed/test_on_ray" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason=reason))
