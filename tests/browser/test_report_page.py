"""The report in a browser: its list of records, an open record, and texts that would be markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser import reports
from browser.driving import PHONE, VIEWS, Visits, expect, faults, fits
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.report import write_report
from labeler.sentences.characters import visible
from support.labeled import record, with_question
from support.payloads import PAYLOADS, hostile_column, hostile_records

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Locator, Page

UNDEFINED = "\u2013"
"""What stands in place of a value that a metric does not have."""
LIST = "#browser .records tbody tr"
DRAWN = "() => document.querySelector('.sentence') !== null"
"""Waited for before an expectation about a long record: its polling can stop during drawing."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report of three pages."""
    return reports.small_report(tmp_path_factory.mktemp("small") / "report.html").as_uri()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the folder of a report whose every text tries to be markup."""
    [path] = write_report(
        hostile_records(),
        tmp_path_factory.mktemp("hostile") / "index.html",
        name=PAYLOADS[0],
        by=hostile_column(),
        metrics=reports.METRICS,
    )
    return path.parent.as_uri()


@pytest.fixture(scope="module")
def window(browser: Browser, small: str) -> Iterator[tuple[Visits, Page]]:
    """A window that tests use one after the other: a page keeps nothing but its address."""
    visits = Visits(browser)
    yield visits, visits.open(small)
    visits.end()


@pytest.fixture
def page(window: tuple[Visits, Page], small: str) -> Iterator[Page]:
    """The small report, with its list drawn."""
    visits, page = window
    page.goto("about:blank")
    page.goto(small)
    expect(page.locator(LIST)).to_have_count(50)
    unfold_filters(page)
    yield page
    visits.judge()


@pytest.fixture
def opened(window: tuple[Visits, Page], small: str) -> Iterator[Page]:
    """The record `contradicted` of the small report, opened by a link to it."""
    visits, page = window
    page.goto("about:blank")
    page.goto(f"{small}#record=contradicted")
    expect(page.locator(".question")).to_have_text("Does the label agree with itself?")
    yield page
    page.emulate_media(media="screen")
    visits.judge()


def unfold_filters(page: Page) -> None:
    """Show the filters of the list, which are folded at first."""
    page.get_by_text("More filters, order, columns").click()


def ids(page: Page) -> list[str]:
    """Ids in the list, as far as the page of it goes."""
    found: list[str] = page.locator(f"{LIST} th").all_inner_texts()
    return found


def says(page: Page, counted: str) -> None:
    """Wait until the list says how many records it holds."""
    expect(page.get_by_role("status").filter(has_text="records")).to_have_text(counted)


def address(page: Page) -> str:
    """The part of the page's address that keeps what is shown."""
    url: str = page.url
    return url.partition("#")[2]


def focused(page: Page, attribute: str) -> str | None:
    """An attribute of the element that has the focus."""
    value: str | None = page.evaluate(f"document.activeElement.getAttribute({attribute!r})")
    return value


def box(part: Locator) -> FloatRect:
    """Where a part of a page stands."""
    found = part.bounding_box()
    assert found is not None
    return found


def lit(page: Page) -> list[str | None]:
    """Keys of the sentences that are lit."""
    return [row.get_attribute("data-key") for row in page.locator(".sentence.lit").all()]


# The list.


def test_a_report_opens_with_its_least_supported_records_first(page: Page) -> None:
    """Of equal ones the most doubtful; fifty of them, with the count of all."""
    says(page, f"{reports.TOTAL} of {reports.TOTAL} records")
    shares = page.locator(f"{LIST} > :first-child").all_inner_texts()
    assert shares[:2] == ["✗ 0 of 1", "✗ 1 of 2"]
    assert ids(page)[13] == "contradicted"
    assert shares[13:15] == ["✗ 2 of 3", "✓ 2 of 2"]


def test_the_conclusion_comes_first_and_leads_to_the_worst_answers(
    visits: Visits, small: str
) -> None:
    """The worst sentence is red, and a click opens its record there."""
    page = visits.open(small)
    expect(page.locator(".headline").first).to_have_text(
        re.compile(
            r"109 of 122 answers fully supported \(89\s%, 82 to 94\), least for .*\. 13 are not;"
        )
    )
    assert page.locator(".tiles").first.locator(".tile").count() == 3
    page.locator(".configurations").evaluate_all("all => all.forEach(one => one.open = true)")
    worst = page.locator(".worst").first.locator("li")
    expect(worst).to_have_count(5)
    expect(worst.first.locator("mark")).to_have_css("background-color", "rgb(255, 223, 219)")
    worst.first.get_by_role("link").click()
    expect(page.locator(".sentence[data-key=b]")).to_be_focused()


def test_the_list_sorts_by_a_heading_or_by_what_is_no_metric(page: Page) -> None:
    """A click on a metric's heading puts the worst first, a second turns; no value comes last.

    The others are the id, the order of the file, the number of findings.
    """
    heading = page.get_by_role("button", name="completeness", exact=True)
    heading.click()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    values = page.locator(f"{LIST} td[data-name=completeness]").all_inner_texts()
    numbers = [float(text) for text in values if text != UNDEFINED]
    assert numbers == sorted(numbers)
    heading.click()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    assert page.locator(f"{LIST} td[data-name=completeness]").first.inner_text() == "1.00"
    assert address_after_rest(page, "sort=-") == "sort=-completeness"
    for name, first, last in (
        ("id", "compared", "row-00044"),
        ("order", "row-00000", "row-00049"),
        ("findings", "contradicted", ""),
    ):
        page.get_by_label("Sort by").select_option(name)
        assert ids(page)[0] == first
        assert ids(page)[-1].startswith(last)


def address_after_rest(page: Page, part: str) -> str:
    """The address, once a part of it has been written."""
    page.wait_for_function("part => location.hash.includes(part)", arg=part)
    return address(page)


def test_a_filter_shows_the_records_that_pass_it(page: Page) -> None:
    """One of each kind; it stands as a chip, and goes with it. Two narrow each other.

    A failed row says why: its reason in the list, its message when opened.
    """
    for label, option, count, first in (
        ("Finding", "Overall verdict against those on the sentences (1)", 1, "contradicted"),
        ("Pattern", "Ungrounded (14)", 14, "compared"),
        ("domain", "harbour (43)", 43, "row-00009"),
        ("Configuration", None, 1, "compared"),
        ("Failure", "refusal (2)", 2, "refused-0"),
        ("Answer", "not fully supported (14)", 14, "compared"),
    ):
        choice = page.get_by_label(label, exact=True)
        chosen = {"index": 1} if option is None else {"label": option}
        choice.select_option(**chosen)
        says(page, f"{count} of {reports.TOTAL} records")
        assert ids(page)[0] == first
        page.get_by_role("button", name="Remove filter").click()
        says(page, f"{reports.TOTAL} of {reports.TOTAL} records")
    page.get_by_label("domain", exact=True).select_option(label="clinic (82)")
    page.get_by_label("Pattern", exact=True).select_option(label="Ungrounded (14)")
    says(page, f"10 of {reports.TOTAL} records")
    page.get_by_role("button", name="Clear all").click()
    says(page, f"{reports.TOTAL} of {reports.TOTAL} records")
    page.get_by_label("Answer").select_option(label="failed (2)")
    assert "refusal" in page.locator(LIST).first.inner_text()
    page.get_by_role("link", name="refused-0").click()
    expect(page.locator(".failure")).to_have_text("The model refused: ask another one.")


def test_a_range_of_a_metric_includes_both_ends(page: Page) -> None:
    """Relevance of 0.25 to 0.5 holds that of one and two sentences of four."""
    form = page.get_by_role("form", name="Metric range")
    form.get_by_label("From").fill("0.25")
    form.get_by_label("To", exact=True).fill("0.5")
    form.get_by_role("button").click()
    values = set(page.locator(f"{LIST} td[data-name=relevance]").all_inner_texts())
    assert values == {"0.25", "0.33", "0.50"}
    expect(page.get_by_role("button", name="Remove filter: relevance 0.25 to 0.5")).to_be_visible()


def test_a_search_finds_words_of_ids_and_questions_or_of_all_texts(page: Page) -> None:
    """All words must be there, in small letters or large; all texts unpacks every chunk."""
    search, every = page.get_by_role("searchbox"), page.get_by_role("checkbox", name="All texts")
    search.fill("TOWER 11")
    says(page, f"11 of {reports.TOTAL} records")
    search.fill("bittern")
    says(page, f"0 of {reports.TOTAL} records")
    expect(page.get_by_text("No matching records.")).to_be_visible()
    every.check()
    says(page, f"1 of {reports.TOTAL} records")
    assert ids(page) == ["hidden-word"]
    every.uncheck()
    says(page, f"0 of {reports.TOTAL} records")


def test_a_word_being_typed_is_not_lost_by_another_change(page: Page) -> None:
    """The search waits for the next letter; a filter chosen meanwhile takes it along."""
    page.evaluate(
        """() => {
          const [field, choice] = ["#search", "#filter-pattern"].map((name) =>
            document.querySelector(name));
          field.value = "agree";
          field.dispatchEvent(new Event("input"));
          choice.value = choice.options[1].value;
          choice.dispatchEvent(new Event("change"));
        }"""
    )
    expect(page.get_by_role("button", name="Remove filter")).to_have_count(2)
    assert page.get_by_role("searchbox").input_value() == "agree"


def test_a_reload_and_the_way_back_keep_filters_order_and_search(page: Page) -> None:
    """They stand in the address; a record is a step in the history, a filter is none."""
    page.get_by_label("domain", exact=True).select_option(label="harbour (43)")
    page.get_by_role("searchbox").fill("tower")
    page.get_by_label("Sort by").select_option("id")
    says(page, f"40 of {reports.TOTAL} records")
    address_after_rest(page, "sort=id")
    before = ids(page)
    page.reload()
    says(page, f"40 of {reports.TOTAL} records")
    assert ids(page) == before
    assert page.get_by_role("searchbox").input_value() == "tower"
    page.get_by_role("link", name=before[0]).click()
    expect(page.locator(".record-id code")).to_have_text(before[0])
    page.go_back()
    says(page, f"40 of {reports.TOTAL} records")


def test_pages_of_the_list_follow_each_other(page: Page) -> None:
    """The third holds the rest; chosen columns are shown, and stand in the address."""
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    expect(page.locator(LIST)).to_have_count(reports.TOTAL - 100)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("faithfulness", exact=True).check()
    expect(page.get_by_role("button", name="faithfulness", exact=True)).to_be_visible()
    assert "faithfulness" in address_after_rest(page, "columns=")


def test_every_part_of_the_charts_filters_to_as_many_records_as_it_says(page: Page) -> None:
    """Whatever the bins: each is activated by the keyboard, and marked while it filters."""
    labels: list[str] = page.locator(".hit[data-filter]").evaluate_all(
        "hits => hits.map(hit => hit.getAttribute('aria-label'))"
    )
    counts: list[str] = page.evaluate(
        """() => [...document.querySelectorAll(".hit[data-filter]")].map((hit) => {
          const press = { key: "Enter", bubbles: true, cancelable: true };
          hit.dispatchEvent(new KeyboardEvent("keydown", press));
          return document.querySelector(".browser-status").textContent;
        })"""
    )
    said = [re.findall(r"([\d,]+) record", label)[-1] for label in labels]
    assert len(said) > 10
    assert [count.partition(" ")[0] for count in counts] == said
    page.locator(".hit[data-filter]").first.click()
    marked = page.locator("[data-filter][aria-current]")
    expect(page.locator(".hit[data-filter]").first).to_have_attribute("aria-current", "true")
    assert marked.evaluate_all("all => new Set(all.map(one => one.dataset.filter)).size === 1")
    page.get_by_role("button", name="Clear all").click()
    expect(marked).to_have_count(0)


def test_ten_thousand_records_open_and_filter(
    visits: Visits, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In one file."""
    path = reports.large_report(tmp_path_factory.mktemp("large") / "report.html", 10_000)
    page = visits.open(path.as_uri())
    says(page, "10,000 of 10,000 records")
    page.get_by_role("searchbox").fill("refused-999")
    says(page, "9 of 10,000 records")
    page.get_by_role("searchbox").fill("")
    unfold_filters(page)
    page.get_by_label("Pattern", exact=True).select_option(label="Ungrounded (200)")
    says(page, "200 of 10,000 records")
    page.keyboard.press("Escape")
    page.locator(LIST).get_by_role("link", name="row-00049").click()
    expect(page.locator(".question")).to_have_text("How high is tower 49?")


# An open record.


def test_a_link_to_a_sentence_opens_its_record_and_is_copied(visits: Visits, small: str) -> None:
    """The sentence has the focus, its support is lit, and what is said of it is shown."""
    allowed = ["clipboard-write", "clipboard-read"]
    page = visits.open(f"{small}#record=contradicted&sentence=a", permissions=allowed)
    expect(page.locator(".sentence[data-key=a]")).to_be_focused()
    assert lit(page) == ["0a", "1b"]
    expect(page.locator(".explanation")).to_contain_text("supported")
    page.reload()
    expect(page.locator(".sentence[data-key=a]")).to_be_focused()
    page.locator(".sentence[data-key=b]").focus()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".record-bar [role=status]")).to_have_text("Link copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{small}#record=contradicted&sentence=b"


@pytest.mark.parametrize(
    ("name", "head", "support"),
    [("contradicted", "b✗ not supported", []), ("hidden-word", "a✓ supported by 0a", ["0a"])],
)
def test_a_record_opens_with_the_first_sentence_that_is_not_supported(
    visits: Visits, small: str, name: str, head: str, support: list[str]
) -> None:
    """Else with the first: explained and lit, while the question has the focus."""
    page = visits.open(f"{small}#record={name}")
    expect(page.locator(".explanation-head")).to_have_text(head)
    expect(page.locator(".sentence[aria-current]")).to_have_attribute("data-key", head[0])
    assert lit(page) == support
    expect(page.locator(".question")).to_be_focused()
    assert "sentence" not in address(page)


def test_a_click_or_the_focus_lights_exactly_what_belongs_together(opened: Page) -> None:
    """Special strings light nothing, and what lies under the pointer changes nothing."""
    opened.locator(".sentence[data-key=c]").click()
    assert lit(opened) == ["0b"]
    opened.locator(".sentence[data-key=a]").hover()
    assert lit(opened) == ["0b"]
    opened.locator(".sentence[data-key=a]").click()
    assert lit(opened) == ["0a", "1b"]
    opened.locator('.sentence[data-key="1b"]').focus()
    assert lit(opened) == ["a"]
    opened.locator(".finding").first.get_by_role("button", name="b", exact=True).click()
    expect(opened.locator(".sentence[data-key=b]")).to_be_focused()
    address_after_rest(opened, "sentence=b")


def test_marks_tell_what_the_label_says(opened: Page) -> None:
    """By letters with words behind them."""
    marks: list[str] = opened.locator(".sentence .mark[role=img]").evaluate_all(
        "marks => marks.map(mark => mark.closest('.sentence').dataset.key + ' ' + mark.ariaLabel)"
    )
    documents = [f"{key} {what}" for key in ("0a", "0b") for what in ("relevant", "utilized")]
    assert marks == [*documents, "a supported", "b not supported", "c supported"]
    expect(opened.locator(".sentence[data-key=c] .chip.special")).to_have_text("well_known_fact")


def test_a_record_opened_by_mouse_shows_its_unsupported_sentence(page: Page) -> None:
    """Wherever the pointer stands afterwards."""
    page.locator(LIST).filter(has_text="contradicted").get_by_role("link").click()
    for place in (300, 320):
        expect(page.locator(".explanation-head")).to_have_text("b✗ not supported")
        page.mouse.move(place, 500)
    expect(page.locator(".explanation-head")).to_have_text("b✗ not supported")


def test_claims_and_the_reference_answer_are_shown(visits: Visits, small: str) -> None:
    """With the verdicts on them."""
    page = visits.open(f"{small}#record=compared")
    claims = page.locator(".sentence[data-key=a] .claims > li")
    expect(claims).to_have_count(2)
    expect(claims.nth(1)).to_contain_text("contradiction")
    expect(claims.nth(1)).to_contain_text("off the question")
    page.locator(".record-reference > summary").click()
    expect(page.locator(".record-reference .claims")).to_contain_text("Bread is for sale.")


def test_a_record_of_more_sentences_than_anybody_reads_is_drawn(
    visits: Visits, tmp_path: Path
) -> None:
    """And a link to one of them brings it into sight."""
    uri = reports.long_report(tmp_path / "report.html").as_uri()
    page = visits.open(f"{uri}#record=long&sentence=abd")
    page.wait_for_function(DRAWN)
    row = page.locator(".sentence[data-key=abd]")
    expect(row).to_be_focused()
    expect(row).to_be_in_viewport()
    assert lit(page) == ["0a", "0bnp"]
    expect(page.locator(".sentence[data-part=document]")).to_have_count(2000)


def test_a_folder_loads_records_when_they_are_opened(visits: Visits, tmp_path: Path) -> None:
    """And for a search of all texts; a missing file is named, and the list stays."""
    rows = [reports.plain(n) for n in range(250)]
    target = tmp_path / "a #b"
    index, *files = write_report(rows, target, name="x", metrics=reports.METRICS)
    page = visits.open(index.as_uri(), own=f"{target.as_uri()}/records/")
    says(page, "250 of 250 records")
    assert faults(page) == []
    page.get_by_label("All texts").check()
    page.get_by_role("searchbox").fill("tower 249")
    says(page, "1 of 250 records")
    page.get_by_role("link", name="row-00249").click()
    expect(page.locator(".question")).to_have_text("How high is tower 249?")
    files[2].unlink()  # a lost chunk
    page.goto("about:blank")
    page.goto(f"{index.as_uri()}#record=row-00120")
    expect(page.get_by_role("alert")).to_contain_text("records/chunk-1.js is missing")
    visits.troubles = [each for each in visits.troubles if "ERR_FILE_NOT_FOUND" not in each]


# By keyboard alone.


def test_the_keyboard_leads_from_the_list_to_a_sentence_and_back(page: Page) -> None:
    """Search, rows, record, sentences, support, next record, list: no mouse."""
    press = page.keyboard.press
    press("/")
    assert focused(page, "id") == "search"
    page.keyboard.type("agree")
    says(page, f"1 of {reports.TOTAL} records")
    press("Escape")
    press("Enter")
    expect(page.locator(".question")).to_be_focused()
    expect(page.locator(".question")).to_have_text("Does the label agree with itself?")
    press("ArrowDown")
    expect(page.locator(".sentence[aria-current]")).to_be_focused()
    press("Home")
    assert focused(page, "data-key") == "a"
    press("ArrowDown")
    assert focused(page, "data-key") == "b"
    press("ArrowUp")
    press("Enter")
    assert focused(page, "data-key") == "0a"
    press("Enter")
    assert focused(page, "data-key") == "a"
    press("Escape")
    expect(page.get_by_role("link", name="contradicted")).to_be_focused()


def test_the_tab_key_reaches_the_sentences_without_passing_each(opened: Page) -> None:
    """Each part is one stop, with the buttons of one sentence behind it."""
    stops = []
    for _ in range(40):
        opened.keyboard.press("Tab")
        stops.append(focused(opened, "data-key"))
    assert [*filter(None, stops)][:2] == ["0a", "a"]


def test_letters_go_through_the_list_and_through_records(page: Page) -> None:
    """`j` and `k` both in the list and in a record, `n` turns the pages, `?` opens the help."""
    press = page.keyboard.press
    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    press("j")
    press("j")
    expect(page.locator(LIST).nth(1).get_by_role("link")).to_be_focused()
    press("k")
    press("Enter")
    expect(page.locator(".question")).to_be_focused()
    first = page.locator(".record-id code").inner_text()
    press("j")
    expect(page.locator(".record-id code")).not_to_have_text(first)
    press("k")
    expect(page.locator(".record-id code")).to_have_text(first)
    press("Escape")
    press("n")
    expect(page.get_by_text("Page 2 of 3")).to_be_visible()


# Looks.


def test_contents_stay_in_sight_and_keep_the_filters(page: Page) -> None:
    """Also at the end of the report, without covering what they lead to."""
    contents = page.get_by_role("navigation", name="Contents")
    page.get_by_label("domain", exact=True).select_option(label="harbour (43)")
    contents.get_by_role("link", name="Records").click()
    expect(page.locator("#browser > h2")).to_be_in_viewport()
    says(page, f"43 of {reports.TOTAL} records")
    contents.get_by_role("link", name="Details").click()
    expect(contents).to_be_in_viewport()
    heading = box(page.get_by_role("heading", name="Details"))
    above = box(contents)
    assert heading["y"] >= above["y"] + above["height"]


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_shuts_people_out(visits: Visits, small: str, view: dict[str, Any]) -> None:
    """Axe finds nothing in summary and list, nor in two records with all that one can have."""
    page = visits.open(small, **view, reduced_motion="reduce")
    expect(page.locator(LIST)).to_have_count(50)
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    page.get_by_label("Pattern", exact=True).select_option(label="Ungrounded (14)")
    assert faults(page) == []
    for name in ("contradicted", "compared"):
        page.evaluate("name => { location.hash = `record=${name}&sentence=a`; }", name)
        expect(page.locator(".record-id code")).to_have_text(name)
        page.locator("#browser details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert faults(page) == []


def test_dark_and_light_follow_the_system(visits: Visits, small: str) -> None:
    """By the ground's color; paper is light whatever the screen is."""
    page, white = visits.open(small), "rgb(255, 255, 255)"
    for media, scheme, color in (
        ("screen", "light", white),
        ("screen", "dark", "rgb(20, 23, 27)"),
        ("print", "dark", white),
    ):
        page.emulate_media(media=media, color_scheme=scheme)
        expect(page.locator("body")).to_have_css("background-color", color)


def test_a_telephone_scrolls_up_and_down_alone(visits: Visits, small: str) -> None:
    """At 360 pixels nothing sticks out, whatever is unfolded.

    The response comes before the documents, and what is said of a sentence has buttons that jump
    to its support.
    """
    page = visits.open(small, viewport=PHONE)
    for where in ("", "record=compared", "record=contradicted&sentence=a"):
        page.evaluate("where => { location.hash = where; }", where)
        expect(page.locator("#browser :is(.records, .record):visible")).to_have_count(1)
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert fits(page)
    response, documents = (
        box(page.locator(part)) for part in (".record-response", ".record-documents")
    )
    assert response["y"] < documents["y"]
    page.locator(".record-panel").get_by_role("button", name="1b").click()
    expect(page.locator('.sentence[data-key="1b"]')).to_be_in_viewport()


def test_texts_without_a_blank_stay_in_their_columns(visits: Visits, tmp_path: Path) -> None:
    """Ids, questions and groups may be any text, on a screen of any width."""
    word = "x" * 300
    row = with_question(record(id=word, metadata={"g": word}), word)
    [path] = write_report([row], tmp_path / "r.html", name=word, by="g")
    page = visits.open(path.as_uri())
    expect(page.locator(LIST)).to_have_count(1)
    for size in (page.viewport_size, PHONE):
        page.set_viewport_size(size)
        assert fits(page)


def test_print_leaves_out_controls_and_keeps_explanations(opened: Page) -> None:
    """The open record goes to paper whole; the list keeps its headings, which are buttons."""
    opened.emulate_media(media="print")
    expect(opened.locator(".record-bar")).to_be_hidden()
    expect(opened.locator(".sentence[data-key=a] .print-only")).to_be_visible()
    expect(opened.locator(".tiles").first).to_be_visible()
    opened.evaluate("location.hash = ''")
    for heading in ("Support", "Id", "relevance", "Findings"):
        expect(opened.get_by_role("columnheader", name=heading).last).to_have_text(heading)
        expect(opened.get_by_role("button", name=heading).last).to_be_visible()


def test_a_browser_that_cannot_unpack_is_told(visits: Visits, small: str) -> None:
    """In place of the list."""
    page = visits.open("about:blank")
    page.context.add_init_script("delete window.DecompressionStream")
    visits.allow(small)
    page.goto(small)
    expect(page.locator("#browser")).to_contain_text("cannot unpack the records")


# Texts of strangers.


def test_no_text_of_a_stranger_runs_or_becomes_markup(visits: Visits, hostile: str) -> None:
    """Every record is opened and looked at; all texts are shown as they are."""
    page = visits.open(f"{hostile}/index.html", own=hostile)
    total = len(hostile_records())
    says(page, f"{total} of {total} records")
    unfold_filters(page)
    page.get_by_label("Sort by").select_option("order")
    page.locator(f"{LIST} a").first.click()
    expect(page.locator(".place")).to_have_text(f"1 of {total} records")
    shown: list[dict[str, str | None]] = page.evaluate(_LOOK_AT_EACH, total)
    assert shown == [_told(outcome) for outcome in hostile_records()]


def _told(outcome: AnyOutcome) -> dict[str, str | None]:
    """What is to be seen of an outcome."""
    told: dict[str, str | None] = dict.fromkeys(("question", "sentence", "explanation", "failure"))
    if isinstance(outcome, LabelFailure):
        return told | {"failure": visible(outcome.message)}
    assert isinstance(outcome, LabelRecord)
    [judged] = outcome.label.sentence_support_information
    texts = (outcome.example.question, outcome.example.documents[0][0].text, judged.explanation)
    return told | dict(zip(told, map(visible, texts), strict=False))


_LOOK_AT_EACH = """async (total) => {
  const text = (selector) => document.querySelector(selector)?.textContent ?? null;
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
  const until = async (holds) => { while (!holds()) await new Promise(requestAnimationFrame); };
  const shown = [];
  for (let place = 1; place <= total; place += 1) {
    await until(() => text(".place") === `${place} of ${total} records`);
    document.querySelector(".sentence[data-key=a]")?.focus();
    const failure = text(".failure");
    shown.push({
      question: failure === null ? text(".question") : null,
      sentence: text('.sentence[data-key="0a"] .text'),
      explanation: text(".explanation .text"),
      failure,
    });
    press("j");
  }
  return shown;
}"""


def test_filters_by_hostile_values_show_their_records(visits: Visits, hostile: str) -> None:
    """Each value of the subset is chosen once: three records have it, or one."""
    page = visits.open(f"{hostile}/index.html", own=hostile)
    unfold_filters(page)
    expect(page.get_by_label(hostile_column(), exact=True)).to_be_visible()
    counts: list[str] = page.evaluate(_CHOOSE_EACH_SUBSET)
    total = len(hostile_records())
    assert counts.count(f"3 of {total} records") == len(PAYLOADS)
    assert len(counts) == len(PAYLOADS) + 1


_CHOOSE_EACH_SUBSET = """() => {
  const choice = document.querySelector("#filter-subset");
  return [...choice.options].slice(1).map(({ value }) => {
    choice.value = value;
    choice.dispatchEvent(new Event("change"));
    return document.querySelector(".browser-status").textContent;
  });
}"""


def test_hostile_addresses_are_only_texts(page: Page) -> None:
    """Whatever a link asks the list for, it is read, and the next link works.

    One to a record that is not there says so, and leads back to the list.
    """
    texts = [*PAYLOADS, "constructor:0:1", "1:2:3:4)"]
    names = ("record", "q", "subset", "check", "pattern", "metric", "sort", "columns", "failed")
    for place, name in enumerate(names):
        page.evaluate(_VISIT_EACH, [name, texts[place % 4 :: 4]])
    page.evaluate("location.hash = 'record=nobody'")
    expect(page.get_by_text("This report has no record nobody")).to_be_visible()
    page.get_by_role("button", name="List").click()
    expect(page.locator(LIST)).to_have_count(50)
    page.evaluate("location.hash = 'record=contradicted'")
    expect(page.locator(".question")).to_have_text("Does the label agree with itself?")


_VISIT_EACH = """async ([name, texts]) => {
  for (const text of texts) {
    const read = new Promise((go) => addEventListener("hashchange", go, { once: true }));
    location.hash = new URLSearchParams([[name, text]]);
    await read;
  }
}"""
