"""One record as the report, the review app and the label diff draw it: with all its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from browser import reports
from browser.driving import Visits, expect, faults, need_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

need_browser()

_DRAW = """async ([options, change]) => {
  const views = await unpackBlock("chunk-1");
  const view = views.find(({ id }) => id === "contradicted");
  if (change) {
    const label = Object.assign(structuredClone(view.label), change);
    options.labels = [{ name: "other", label }];
  }
  if (options.edit) {
    window.calls = [];
    const { judgment } = options.edit;
    options.edit.toggle = (field, key) => {
      window.calls.push([field, key]);
      if (field === "relevant") judgment.relevant = [key];
      window.drawn.update(judgment);
    };
    options.edit.toggleSupport = (sentence, key) => {
      window.calls.push([sentence, key]);
      judgment.support[sentence] = [key];
      judgment.judged[sentence] = true;
      window.drawn.update(judgment);
    };
  }
  window.drawn = drawRecord(view, options);
  document.querySelector("#browser").replaceChildren(window.drawn.node);
}"""
"""Draws the record `contradicted` in place of the list; what a person changes is written down."""


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


def judgment(**changes: Any) -> dict[str, Any]:
    """What a person says: the first sentence is unsupported, the second undecided."""
    return {
        "judgment": {
            "relevant": [],
            "utilized": ["0a"],
            "support": {"c": ["0b"]},
            "overall_supported": False,
            "judged": {"a": True, "c": True},
            **changes,
        }
    }


def calls(page: Page) -> list[list[str | None]]:
    """What the record asked its page to change."""
    made: list[list[str | None]] = page.evaluate("calls")
    return made


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


def test_an_edited_record_draws_the_judgment_in_place_of_the_label(page: Page) -> None:
    """With a question mark where nothing is decided, and what the judge said behind each mark."""
    draw(page, edit=judgment())
    marks = page.locator(".sentence .mark.verdict")
    assert marks.all_inner_texts() == ["✗", "?", "✓"]
    expect(marks.first).to_have_attribute("aria-label", "not supported (the judge: supported)")
    relevant = page.get_by_role("button", name="relevant: sentence 0a", exact=True)
    expect(relevant).to_have_attribute("aria-pressed", "false")


def test_what_is_not_judged_yet_is_told_apart(page: Page) -> None:
    """In the count of sentences, and of the whole, where no verdict is shown in its place."""
    chips = page.locator(".record-head .chips > .chip")
    whole = page.locator(".overall-button")
    draw(page, edit=judgment(support={"a": [], "c": ["0b"]}, overall_supported=None))
    expect(chips.first).to_have_text("2 of 3 sentences supported, 1 not judged")
    expect(whole).to_have_text("? not judged overall")
    expect(whole).to_have_attribute("aria-pressed", "mixed")
    draw(page, edit=judgment(support={}, judged={}, overall_supported=None), hidden=True)
    expect(chips.first).to_have_text("? 3 sentences not judged")
    draw(page, edit=judgment(judged={"a": True, "b": True, "c": True}))
    expect(chips.first).to_have_text("1 of 3 sentences supported")
    expect(whole).to_have_text("✗ not supported overall")


def test_what_is_shown_at_first_is_not_chosen_for_changes(page: Page) -> None:
    """Who judges sees why the first unsupported sentence was judged so, and chooses it or not."""
    draw(page, edit=judgment())
    expect(page.locator(".explanation")).to_contain_text("You✗ not supported")
    expect(page.locator(".sentence[data-key=a]")).to_have_attribute("aria-current", "true")
    expect(page.locator(".chosen, .mark.link:visible, .specials:visible")).to_have_count(0)
    page.locator(".sentence[data-key=a]").focus()
    expect(page.locator(".chosen")).to_have_attribute("data-key", "a")


def test_letters_ask_for_changes(page: Page) -> None:
    """`s` on a response sentence, `r` and `u` on a document sentence."""
    draw(page, edit=judgment())
    page.locator(".sentence[data-key=b]").focus()
    page.keyboard.press("s")
    page.locator('.sentence[data-key="1a"]').focus()
    page.keyboard.press("r")
    page.keyboard.press("u")
    assert calls(page) == [["supported", "b"], ["relevant", "1a"], ["utilized", "1a"]]
    relevant = page.get_by_role("button", name="relevant: sentence 1a", exact=True)
    expect(relevant).to_have_attribute("aria-pressed", "true")
    expect(page.locator('.sentence[data-key="1a"]')).to_be_focused()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_document_sentence_is_linked_to_the_chosen_response_sentence(
    page: Page, key: str
) -> None:
    """By keyboard: choose the one, go to the other, press."""
    draw(page, edit=judgment())
    page.locator(".sentence[data-key=b]").focus()
    page.keyboard.press("ArrowLeft")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press(key)
    assert calls(page) == [["b", "1a"]]
    expect(page.locator(".sentence[data-key=b] .support")).to_have_text("1a")
    expect(page.locator('.sentence[data-key="1a"]')).to_have_class("sentence lit")


def test_marks_and_special_support_are_buttons_too(page: Page) -> None:
    """For who has a mouse or a finger."""
    draw(page, edit=judgment())
    page.locator(".sentence[data-key=b]").focus()
    page.locator(".sentence[data-key=b] .mark.verdict").click()
    page.locator('.sentence[data-key="0b"] .mark.link').click()
    page.locator(".sentence[data-key=b]").focus()
    page.get_by_role("button", name="numerical_reasoning").click()
    page.get_by_role("button", name="not supported overall").click()
    expected = [["supported", "b"], ["b", "0b"], ["b", "numerical_reasoning"], ["overall", None]]
    assert calls(page) == expected


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_in_an_edited_record_shuts_people_out(page: Page, scheme: Any) -> None:
    """Axe finds nothing serious while a sentence is chosen."""
    page.emulate_media(color_scheme=scheme)
    draw(page, edit=judgment())
    page.locator(".sentence[data-key=a]").focus()
    assert faults(page, "#browser") == []
