"""Parse the pages that the package writes, as a browser would."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

Attributes = list[tuple[str, str | None]]


class Page(NamedTuple):
    """A parsed page.

    Attributes:
        elements: every start tag with its attributes, in order.
        tags: number of each start tag.
        ends: number of each end tag.
        inlined: texts of style sheets and scripts.
        blocks: values of the data blocks by id.
        texts: text outside of tags.
        strays: comments and declarations.
    """

    elements: list[tuple[str, dict[str, str | None]]]
    tags: Counter[str]
    ends: Counter[tuple[str, ...]]
    inlined: list[str]
    blocks: dict[str, Any]
    texts: str
    strays: list[str]

    @property
    def policy(self) -> str:
        """The Content-Security-Policy."""
        found = [a for tag, a in self.elements if tag == "meta" and "http-equiv" in a]
        return found[0]["content"] or ""

    def with_attribute(self, name: str) -> list[str]:
        """Return all values of an attribute."""
        return [
            value or ""
            for _, attributes in self.elements
            for n, value in attributes.items()
            if n == name
        ]


def read_page(path: Path) -> Page:
    """Parse a page."""
    parser = _Parser()
    parser.feed(path.read_text(encoding="utf-8"))
    parser.close()
    blocks = {name: unpacked(text) for name, text in parser.blocks}
    texts = " ".join(parser.texts)
    return Page(
        parser.elements, parser.tags, parser.ends, parser.inlined, blocks, texts, parser.strays
    )


def unpacked(block: str) -> Any:
    """Return the value of a data block: JSON of base64 of gzip of JSON."""
    return json.loads(gzip.decompress(base64.b64decode(json.loads(block), validate=True)))


def records_of(page: Page) -> list[dict[str, Any]]:
    """Return the records of a page's chunks, in order."""
    chunks = [name for name in page.blocks if name.startswith("chunk-")]
    ordered = sorted(chunks, key=lambda name: int(name.partition("-")[2]))
    assert ordered == [f"chunk-{n}" for n in range(len(chunks))]
    return [record for name in ordered for record in page.blocks[name]]


def assert_inert(page: Page) -> None:
    """Assert that a page runs only its inlined scripts and loads nothing."""
    assert page.strays == ["doctype html"]
    digests = re.findall(r"'sha256-([^']+)'", page.policy)
    found = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in page.inlined]
    assert sorted(digests) == sorted(found)
    assert len(found) == 2
    assert "default-src 'none'" in page.policy
    assert "unsafe" not in page.policy
    names = {name for _, attributes in page.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in {"style", "srcdoc"}]
    for name in ("src", "href", "action", "data", "formaction", "poster", "xlink:href"):
        assert all(value.startswith("#") for value in page.with_attribute(name))


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tags: Counter[str] = Counter()
        self.ends: Counter[tuple[str, ...]] = Counter()
        self.inlined: list[str] = []
        self.blocks: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.strays: list[str] = []
        self._inside: tuple[str, dict[str, str | None]] | None = None

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        self.tags[tag] += 1
        self._inside = (tag, dict(attrs)) if tag in {"script", "style"} else None

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = None

    def handle_endtag(self, tag: str) -> None:
        self.ends[f"/{tag}",] += 1
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.texts.append(data)
            return
        tag, attributes = self._inside
        if attributes.get("type") == "application/json":
            self.blocks.append((attributes["id"] or "", data))
        else:
            assert not attributes, tag
            self.inlined.append(data)

    def handle_comment(self, data: str) -> None:
        self.strays.append(data)

    def handle_decl(self, decl: str) -> None:
        self.strays.append(decl)

    def unknown_decl(self, data: str) -> None:
        self.strays.append(data)

    def handle_pi(self, data: str) -> None:
        self.strays.append(data)
