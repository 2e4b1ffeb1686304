"""A browser for tests, and what no page of ours may do in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from support.optional import need

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

_BROWSERS = ("chromium-headless-shell", "chromium")
"""The first that is installed is driven: a shell without windows takes a third less time."""
_PACKAGES = ("axe_playwright_python", "playwright")
_FLAGS = (
    "--disable-gpu",
    "--no-sandbox",  # a container's root may not use it
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE = 20_000
"""Milliseconds to wait for any step or expectation: no test of speed, even on a busy machine."""

_SNARES = """
window.pwned = (...what) => console.error("a script of a stranger ran", ...what);
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("the policy was broken:", event.violatedDirective, event.blockedURI));
"""
"""What payloads would call, and a listener that reports what the policy stopped."""


def need_browser() -> None:
    """Skip where there is no browser to drive, or fail where ``BROWSER_TESTS=required``."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    need("browser", "BROWSER_TESTS", [*missing, *["chromium"] * (_browser() is None)])


def _browser() -> str | None:
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the system's browser. Until it ends no other event loop can run in the same thread."""
    from playwright.sync_api import expect as expected
    from playwright.sync_api import sync_playwright

    expected.set_options(timeout=_PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=_browser(), args=list(_FLAGS), timeout=120_000
        )
        yield browser
        browser.close()


def expect(locator: Locator) -> Any:
    """What is said of a part of a page; it is waited for."""
    from playwright.sync_api import expect as expected

    return expected(locator, "within the time that a page may take")


@dataclass
class Visits:
    """Pages that tests open, and what went wrong in them.

    Attributes:
        browser: what opens them.
        troubles: errors, dialogs, further windows, and requests to anything but the page itself.
    """

    browser: Browser
    troubles: list[str] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)
    _own: set[str] = field(default_factory=set)

    def open(self, url: str, *, own: str | None = None, **settings: Any) -> Page:
        """Open a page in a context of its own.

        Args:
            url: its address.
            own: beginning of the addresses that it may ask for besides its own, such as
                ``http://127.0.0.1:8000/``.
            settings: of the context, such as ``viewport`` or ``color_scheme``.
        """
        context = self.browser.new_context(**{"viewport": DESKTOP, **settings})
        self._contexts.append(context)
        context.set_default_timeout(_PATIENCE)
        context.add_init_script(_SNARES)
        page = context.new_page()
        self.allow(url)
        self._watch(context, urldefrag(url).url, own)
        page.goto(url)
        return page

    def allow(self, url: str) -> None:
        """Let pages ask for an address."""
        self._own.add(urldefrag(url).url)

    def end(self) -> None:
        """Close what was opened, and judge it."""
        while self._contexts:
            self._contexts.pop().close()
        self.judge()

    def judge(self) -> None:
        """Fail if anything went wrong since the last time."""
        troubles, self.troubles = self.troubles, []
        assert not troubles, "\n".join(troubles)

    def _watch(self, context: BrowserContext, url: str, own: str | None) -> None:
        def trouble(what: str) -> None:
            self.troubles.append(f"{what} (page {url})")

        def asked(address: str) -> None:
            if urldefrag(address).url not in self._own and not (own and address.startswith(own)):
                trouble(f"a request to {address[:200]}")

        def spoke(kind: str, text: str) -> None:
            if kind in {"error", "warning"}:
                trouble(f"console {kind}: {text}")

        def asked_person(dialog: Any) -> None:
            trouble(f"a dialog of kind {dialog.type}")
            dialog.dismiss()

        context.on("weberror", lambda error: trouble(f"an error: {error.error}"))
        context.on("console", lambda message: spoke(message.type, message.text))
        context.on("request", lambda request: asked(request.url))
        context.on("dialog", asked_person)
        context.on("page", lambda _: trouble("a further window"))


DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
VIEWS = [
    {"viewport": DESKTOP, "color_scheme": "light"},
    {"viewport": DESKTOP, "color_scheme": "dark"},
    {"viewport": {"width": 320, "height": 640}, "color_scheme": "light"},
]
"""In which axe looks at pages; at 320 pixels a desktop is also zoomed to 400 %."""


def fits(page: Page) -> bool:
    """Whether a page is no wider than its window."""
    fitting: bool = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return fitting


def faults(page: Page, part: str | None = None) -> list[str]:
    """What axe finds in a page, or a part of it, in words.

    A page that is looked at in the light on a desktop is looked at for its colours alone in the
    dark, and for all but its colours on a narrow screen: nothing else differs, and axe is slow.
    """
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, Any] = {"resultTypes": ["violations"]}
    size = page.viewport_size
    if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"):
        options["runOnly"] = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
    elif size is not None and size["width"] <= PHONE["width"]:
        options["rules"] = {"color-contrast": {"enabled": False}}
    found: dict[str, Any] = Axe().run(page, part, options).response
    return [
        f"{rule['id']}: {node['target']} {node.get('failureSummary', '')}"
        for rule in found["violations"]
        for node in rule["nodes"][:5]
    ]
