"""The page of a diff in a browser: what it shows, that it finds its way, and that it is inert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.driving import PHONE, Visits, expect, faults, fits
from labeler.comparing.diff import diff_labels
from labeler.labels.record import LabelRecord
from labeler.report.comparison_pages import write_diff
from support.labeled import record
from support.payloads import PAYLOADS, hostile_column, hostile_records

if TYPE_CHECKING:
    from playwright.sync_api import Page

RECORDS = 60
"""More than one page of the list."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page on which row 7 lost a support, and all others a relevant sentence."""
    path = tmp_path_factory.mktemp("diff") / "diff.html"
    a = [record(id=f"row-{n}", relevant=["0a", "0b"]) for n in range(RECORDS)]
    b = [record(id=f"row-{n}", relevant=["0a"]) for n in range(RECORDS)]
    b[7] = record(id="row-7", relevant=["0a", "0b"], support={"a": ["0a"], "b": []})
    write_diff(diff_labels(a, b), path)
    return path.as_uri()


def opened(page: Page, name: str) -> None:
    """Open a record of the list."""
    page.get_by_role("button", name=name, exact=True).click()
    page.locator(".record").wait_for()


def test_the_list_is_filtered_and_sorted(visits: Visits, address: str) -> None:
    """By metric, by what flipped, by words; the count says how many are left."""
    page = visits.open(address)
    status = page.get_by_role("status")
    expect(status).to_have_text("60 records")
    expect(page.locator("tbody [data-record]").first).to_have_text("row-7")
    page.get_by_label("Flips of").select_option("relevant")
    expect(status).to_have_text("59 records")
    page.get_by_label("Flips of").select_option("")
    page.get_by_label("Metric").select_option("adherence")
    expect(status).to_have_text("1 record")
    page.get_by_label("Metric").select_option("")
    page.get_by_label("Id or question").fill("ROW-1")
    expect(status).to_have_text("11 records")
    page.get_by_label("Id or question").fill("")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("tbody [data-record]")).to_have_count(10)


def test_a_record_shows_both_labels_and_its_flips(visits: Visits, address: str) -> None:
    """B's verdict is next to the sentence; a flip or a link leads to it, and Back goes back."""
    page = visits.open(address)
    opened(page, "row-7")
    expect(page.locator("[data-part=response][data-key=b] .other")).to_contain_text("B: ")
    page.locator(".diff-moved > summary").click()
    line = page.locator(".diff-moved").get_by_role("row").filter(has_text="adherence_fraction")
    expect(line).to_contain_text("\N{MINUS SIGN}0.5000")
    page.locator(".diff-parts").get_by_title("Go to sentence b").click()
    expect(page.locator("[data-key=b]")).to_be_focused()
    assert page.url.endswith("#record=row-7&sentence=b")
    page.get_by_role("button", name="All records").click()
    expect(page.get_by_role("button", name="row-7", exact=True)).to_be_focused()
    page = visits.open(f"{address}#record=row-3&sentence=0b")
    expect(page.locator("[data-key='0b']")).to_be_focused()
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".record-id")).to_contain_text("row-4")
    page.go_back()
    expect(page.locator(".record-id")).to_contain_text("row-3")


@pytest.mark.parametrize("settings", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}])
def test_everybody_can_read_it(visits: Visits, address: str, settings: dict[str, Any]) -> None:
    """Axe finds no serious fault, in light, dark and on a phone, and no page is wider than it."""
    page = visits.open(address, **settings)
    page.get_by_role("status").wait_for()
    if not settings:  # nothing of the list differs elsewhere but colors, which records have too
        assert faults(page) == []
    opened(page, "row-7")
    page.locator(".diff-moved > summary").click()
    assert faults(page) == []
    assert fits(page)


def test_records_beyond_the_first_ones_are_counted(visits: Visits, tmp_path: Path) -> None:
    """Those that changed most are in the page; it says how many are not."""
    a, b = ([record(id=f"row-{n}", relevant=keys) for n in range(5)] for keys in (["0a", "0b"], []))
    assert write_diff(diff_labels(a, b), tmp_path / "few.html", records=2) == (2, 3)
    page = visits.open((tmp_path / "few.html").as_uri())
    expect(page.locator(".notice")).to_contain_text("3 are left out")


def test_strangers_texts_are_inert(visits: Visits, tmp_path: Path) -> None:
    """Nothing of them runs, loads or breaks out, in the list or in a record; all are shown."""
    path = tmp_path / "hostile.html"
    a = [one for one in hostile_records() if isinstance(one, LabelRecord)]
    found = diff_labels(a, map(_doubted, a), by=hostile_column(), names=(PAYLOADS[0], PAYLOADS[2]))
    assert write_diff(found, path) == (len(a), 0)
    page = visits.open(path.as_uri())
    shown = page.locator("tbody [data-record]")
    for place in range(0, 50, 7):
        shown.nth(place).click()
        page.locator(".diff-moved > summary").click()
        page.get_by_role("button", name="All records").click()
    expect(shown).to_have_count(50)
    strange = "img, iframe, object, svg script, base, link, details[ontoggle], form[action]"
    assert page.locator(strange).count() == 0


def _doubted(one: LabelRecord) -> LabelRecord:
    """The same record, in which nothing is relevant and the whole is judged otherwise."""
    whole = {"overall_supported": not one.label.overall_supported}
    changes = {"all_relevant_sentence_keys": (), **whole}
    return one.model_copy(update={"label": one.label.model_copy(update=changes)})
