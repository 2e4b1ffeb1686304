"""What some suites need besides the packages of ``.[dev]``."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest


def need(suite: str, variable: str, missing: Iterable[str]) -> None:
    """Skip a module if something is missing, or fail where the variable says ``required``."""
    if names := " and ".join(missing):
        reason = f"{names} not installed: see tests/{suite}/requirements.txt"
        if os.environ.get(variable) == "required":
            pytest.fail(f"{variable}=required, and {reason}")
        pytest.skip(reason, allow_module_level=True)
