"""One record as the report, the review app and the label diff draw it: with all its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from browser import reports
from browser.driving import Visits, expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_DRAW = """async ([options, change]) => {
  const views = await unpackBlock("chunk-1");
  const view = views.find(({ id }) => id === "contradicted");
  if (change) {
    const label = Object.assign(structuredClone(view.label), change);
    options.labels = [{ name: "other", label }];
  }
  window.drawn = drawRecord(view, options);
  document.querySelector("#browser").replaceChildren(window.drawn.node);
}"""
"""Draws the record `contradicted` in place of the list."""


@pytest.fixture(scope="module")
def window(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Visits, Page]]:
    """A page with the scripts and the records of the small report."""
    visits = Visits(browser)
    path = reports.small_report(tmp_path_factory.mktemp("small") / "report.html")
    page = visits.open(path.as_uri(), reduced_motion="reduce")
    yield visits, page
    visits.end()


@pytest.fixture
def page(window: tuple[Visits, Page]) -> Iterator[Page]:
    """That page; what goes wrong in it fails the test."""
    visits, page = window
    yield page
    visits.judge()


def draw(page: Page, change: dict[str, Any] | None = None, **options: Any) -> None:
    """Draw the record.

    Args:
        page: where.
        change: what another label, to be compared with, says otherwise.
        options: of ``drawRecord``.
    """
    page.evaluate(_DRAW, [options, change])


def test_a_hidden_judgment_is_nowhere(page: Page) -> None:
    """Neither marks nor support, findings, metrics, doubt or explanations."""
    draw(page, hidden=True)
    page.locator(".sentence[data-key=a]").focus()
    for part in (".mark[role=img]", ".support button", ".finding", ".lit", ".chip", ".judge-says"):
        assert page.locator(f"#browser {part}").count() == 0
    assert page.locator(".record-metrics").count() == 0
    expect(page.locator(".record-panel")).to_be_hidden()
    text = page.locator(".record").text_content()
    assert "because" not in (text or "")
    assert "supported" not in (text or "")


def test_a_citation_leads_to_its_document(page: Page) -> None:
    """To its first sentence; a number without a document leads nowhere."""
    page.evaluate("""async () => {
      const view = structuredClone((await unpackBlock("chunk-1"))[0]);
      view.response[0].cites = [{ marker: "[1, 9]", documents: [0], missing: [9] }];
      document.querySelector("#browser").replaceChildren(drawRecord(view).node);
    }""")
    cites = page.locator(".sentence[data-key=a] .cites")
    expect(cites).to_have_text("[1, 9] → document 0 no document 9")
    cites.get_by_role("button").click()
    expect(page.locator(".sentence[data-key='0a']")).to_be_focused()


def test_another_label_is_marked_where_it_differs(page: Page) -> None:
    """In each sentence that it judges otherwise, and beside the explanation."""
    support = {
        "a": {"supported": True, "keys": ["1b", "0a"], "explanation": "because"},
        "b": {"supported": True, "keys": ["1a"], "explanation": "It is said elsewhere."},
        "c": {"supported": True, "keys": ["0b"], "explanation": "because"},
    }
    draw(page, {"relevant": ["0a", "0b", "1a"], "support": support}, labelName="this")
    rows: list[str] = page.locator(".sentence:has(.other)").evaluate_all(
        "rows => rows.map(row => row.dataset.key)"
    )
    assert rows == ["1a", "b", "c"]
    expect(page.locator(".sentence[data-key=b] .other")).to_have_text("other: supported by 1a")
    page.locator(".sentence[data-key=b]").focus()
    expect(page.locator(".explanation")).to_contain_text("It is said elsewhere.")


def test_claims_of_another_label_stand_below_the_own_ones(page: Page) -> None:
    """Only where they differ, and under the names of both."""
    claim = {"supporting": ["1a"], "contradicting": [], "relevant": True, "reference_verdict": None}
    said = {"verdict": "entailment", "claim": "Bread is sold.", **claim}
    claims = [{"sentence": "a", **said}, {"sentence": "b", **said, "claim": "It is free."}]
    draw(page, {"claims": claims}, labelName="this")
    expect(page.locator(".sentence[data-key=a] .claims-by")).to_have_text("Claims by other")
    expect(page.locator(".sentence[data-key=b] .claims")).to_contain_text("It is free.")
    page.evaluate("drawn.node.querySelector('.claims button').click()")
    expect(page.locator('.sentence[data-key="1a"]')).to_be_focused()
