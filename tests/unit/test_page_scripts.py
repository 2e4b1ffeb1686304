"""The scripts of the pages: they share one scope, where nothing stops one from hiding another."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from labeler.report.diff_page import SCRIPTS as DIFF
from labeler.report.page import ASSETS
from labeler.report.writing import SCRIPTS as REPORT
from labeler.review.app import ASSETS as REVIEW_ASSETS
from labeler.review.app import PLAN_SCRIPTS as PLAN
from labeler.review.app import SCRIPTS as REVIEW

_DECLARED = re.compile(r"^(?:async )?(?:function|class|const|let|var) ([\w$]+)", re.MULTILINE)
PAGES = {"diff": DIFF, "report": REPORT, "review": REVIEW, "plan": PLAN}
FILES = {path.name: path for folder in (ASSETS, REVIEW_ASSETS) for path in folder.glob("*.js")}


@pytest.mark.parametrize("page", PAGES)
def test_no_two_scripts_of_a_page_declare_the_same_name(page: str) -> None:
    """A second function of the same name would take the place of the first without a word."""
    texts = [FILES[name].read_text(encoding="utf-8") for name in PAGES[page]]
    names = Counter(name for text in texts for name in _DECLARED.findall(text))
    assert len(names) > len(texts)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_script_is_part_of_a_page() -> None:
    """None is left over, and none is missing."""
    assert {*FILES} == {*DIFF, *REPORT, *REVIEW, *PLAN}
