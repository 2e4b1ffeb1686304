"""Registries of metrics and checks, to which a test adds its own."""

from __future__ import annotations

from typing import Any

import pytest

from labeler.catalog import Catalog


def keep_entries(catalog: Catalog[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a test's own entries be gone after it; plug-ins register theirs once, when they load."""
    list(catalog.every())
    monkeypatch.setattr(catalog, "_entries", dict(catalog._entries))
