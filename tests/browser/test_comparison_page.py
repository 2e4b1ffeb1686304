"""The page of a comparison in a browser: everybody can read it, and strangers' texts are inert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browser.driving import PHONE, Visits, expect, faults, fits
from labeler.comparing.compare import compare_runs
from labeler.labels.record import LabelRecord
from labeler.report.comparison_pages import write_comparison
from support.payloads import PAYLOADS, hostile_records


def test_a_page_of_hostile_texts_is_readable_and_inert(visits: Visits, tmp_path: Path) -> None:
    """Axe finds no serious fault, the page fits its window, and no text became an element."""
    labels = [one for one in hostile_records() if isinstance(one, LabelRecord)][::5]
    turned = [_turned(one) for one in labels]
    found = compare_runs([labels, turned], names=PAYLOADS[:2])
    outcomes = {"A": labels, "B": turned}
    page_file, report, _ = write_comparison(found, tmp_path / "page.html", outcomes)
    views: tuple[dict[str, Any], ...] = ({}, {"color_scheme": "dark"}, {"viewport": PHONE})
    for settings in views:
        page = visits.open(page_file.as_uri(), own=report.as_uri(), **settings)
        page.evaluate("[...document.querySelectorAll('details')].slice(-9).map(d => d.open = true)")
        assert page.locator(".moved").count() > 1
        assert faults(page) == []
        assert page.locator("img, iframe, object, svg script, base, link, form").count() == 0
        assert fits(page)
    question = page.locator(".moved-question").first.inner_text()
    page.locator(".moved a").first.click()
    expect(page.locator(".question")).to_have_text(question)


def _turned(one: LabelRecord) -> LabelRecord:
    """The same record with the opposite verdict on its sentence."""
    [entry] = one.label.sentence_support_information
    keys = () if entry.fully_supported else ("0a",)
    changes = {"fully_supported": not entry.fully_supported, "supporting_sentence_keys": keys}
    label = {
        "overall_supported": not one.label.overall_supported,
        "sentence_support_information": (entry.model_copy(update=changes),),
    }
    return one.model_copy(update={"label": one.label.model_copy(update=label)})
