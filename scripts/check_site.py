"""Check the built site: no page loads anything from another host.

python scripts/check_site.py build/site
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*\b(?:src|data)=["']?(?:https?:)?//"""
    r"""|<link\b(?![^>]*\brel=["']?canonical)[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|url\(\s*["']?(?:https?:)?//|@import\s+["']?(?:https?:)?//"""
)
"""What makes a browser fetch from another host; a link that is clicked does not."""


def loads(site: Path) -> list[str]:
    """Return each place of the site's pages and styles that loads from another host."""
    files = (path for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css"))
    return [
        f"{path.relative_to(site)}: {found[0]}"
        for path in files
        for found in LOADED.finditer(path.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    if outside := loads(Path(sys.argv[1])):
        sys.exit("\n".join([*outside, "pages must not load from another host"]))
