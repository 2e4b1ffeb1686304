from __future__ import annotations

from pathlib import Path

from report_size import Ran, Written, cells


def test_a_line_has_what_both_commands_took(tmp_path: Path) -> None:
    """The page on its own, and all files together."""
    page = tmp_path / "index.html"
    page.write_bytes(bytes(500_000))
    report = Written(200_000, page, 4_000_000, Ran(400.4, 800.0), Ran(300.0, 1200.0))
    assert cells(report) == ["200,000", "folder", "400", "800", "0.5", "4.0", "300", "1,200"]
