"""The page of a comparison in a browser: everybody can read it, and strangers' texts are inert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browser.driving import PHONE, Visits, faults
from labeler.comparing.compare import compare_runs
from labeler.labels.record import LabelRecord
from labeler.report.comparison_page import write_page
from support.payloads import PAYLOADS, hostile_records


def test_a_page_of_hostile_texts_is_readable_and_inert(visits: Visits, tmp_path: Path) -> None:
    """Axe finds no serious fault, the page fits its window, and no text became an element."""
    labels = [one for one in hostile_records() if isinstance(one, LabelRecord)]
    found = compare_runs([labels] * 3, names=PAYLOADS[:3])
    write_page(found, tmp_path / "page.html")
    views: tuple[dict[str, Any], ...] = ({}, {"color_scheme": "dark"}, {"viewport": PHONE})
    for settings in views:
        page = visits.open((tmp_path / "page.html").as_uri(), **settings)
        assert page.locator("table").count() > 1
        assert faults(page) == []
        assert page.locator("img, iframe, object, svg, base, link, form").count() == 0
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1]
