"""Pages for a browser, and what they are told of records.

Every text comes from strangers: it is escaped or set as text, never as markup, and a page may run
and load nothing but what was inlined when it was written.
"""

from __future__ import annotations

from labeler.pages.page import RECORD_SCRIPTS, RECORD_STYLES, render_page
from labeler.pages.views import RecordView, record_view

__all__ = ["RECORD_SCRIPTS", "RECORD_STYLES", "RecordView", "record_view", "render_page"]
