"""What the tests in a browser share: the browser, and pages that fail a test by misbehaving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from browser.driving import Visits, chromium, need_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser; not for the whole session, as its event loop would stand in other tests' way."""
    need_browser()
    with chromium() as browser:
        yield browser


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    """Opens pages; what goes wrong in one of them fails the test."""
    visits = Visits(browser)
    yield visits
    visits.end()
