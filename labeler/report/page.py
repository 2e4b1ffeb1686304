"""Self-contained HTML pages: a template with inlined styles, scripts and compressed data.

The page's Content-Security-Policy names the inlined styles and scripts by their digests, so text
that slipped through as markup could neither run, load nor send anything.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from labeler.sentences.characters import visible
from labeler.sentences.display import percent

ASSETS = Path(__file__).parent / "assets"

CHUNK_SIZE = 100
"""Records that a page unpacks together."""

RECORDS_PLACEHOLDER = Markup("<!--records-->")
"""Placeholder of the records in a template. Escaped text never contains it."""

NO_NUMBER = "-"
"""Text in place of an undefined number."""

RECORD_STYLES = ("base.css", "record.css")
RECORD_SCRIPTS = (
    "dom.js",
    "record_facts.js",
    "record_subject.js",
    "record_links.js",
    "record_head.js",
    "record_findings.js",
    "record_claims.js",
    "record_more.js",
    "record_rows.js",
    "record_conversation.js",
    "record_marks.js",
    "record_selection.js",
    "record_panel.js",
    "record_keys.js",
    "record.js",
)
"""Scripts that draw a record; a page with records inlines them before its own."""


class Page(NamedTuple):
    """A rendered page.

    Attributes:
        text: the HTML.
        policy: its Content-Security-Policy, which a tag of the page states.
    """

    text: str
    policy: str


def render_page(
    template: str,
    values: Mapping[str, Any],
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    connect: str = "'none'",
    loads: bool = False,
    assets: Path = ASSETS,
) -> Page:
    """Render a template that extends ``page.html.j2``.

    Args:
        template: file name of the template.
        values: values of the template; every text is escaped.
        styles: file names of the style sheets to inline, in order.
        scripts: file names of the scripts to inline, in order; they share one scope.
        connect: ``connect-src`` of the policy: addresses that the scripts may send requests to.
        loads: True if the inlined scripts load others; markup never can.
        assets: folder with further files of the page, searched after :data:`ASSETS`.
    """
    folders = (ASSETS, assets)
    style, script = _join(styles, folders), _join(scripts, folders)
    more = " 'strict-dynamic'" if loads else ""
    policy = (
        "default-src 'none'; "
        f"style-src {_digest(style)}; script-src {_digest(script)}{more}; connect-src {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    text = (
        _environment(folders)
        .get_template(template)
        .render(
            **values,
            # Files of this package, the only texts that are not escaped.
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=policy,
        )
    )
    return Page(text, policy)


def _join(names: Sequence[str], folders: Sequence[Path]) -> str:
    """Concatenate files, each from the first folder that has it."""
    paths = (
        next(folder / name for folder in folders if (folder / name).exists()) for name in names
    )
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _finalize(value: object) -> object:
    """Write out control and direction characters in a printed text."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def cut(text: str, most: int) -> str:
    """Return a text; the rest of one above a number of characters becomes an ellipsis."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


@lru_cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,  # selecting by file name would leave out .j2
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cut": cut,
        "visible": visible,
        "thousands": "{:,}".format,
        "decimal": lambda value: NO_NUMBER if value is None else f"{value:.4f}",
        "span": lambda ends: NO_NUMBER if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}",
        "percent": lambda n, total: percent(n / total, 1) if total else NO_NUMBER,
    }
    return environment


def pack(value: object) -> str:
    """Return a value as JSON, compressed with gzip, in base64; equal values give equal texts.

    Raises:
        ValueError: the value contains NaN or an infinity.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # UTF-8 cannot encode a lone surrogate, so it becomes its JSON escape.
    content = text.encode("utf-8", errors="backslashreplace")
    return base64.b64encode(gzip.compress(content, mtime=0)).decode("ascii")


def data_block(name: str, value: object) -> Markup:
    """Return an element that holds a packed value as JSON text, which no browser runs.

    Args:
        name: id of the element.
        value: value of the element.
    """
    element = '<script type="application/json" id="{}">"{}"</script>\n'
    return Markup(element).format(name, pack(value))  # noqa: S704 - a literal, filled in escaped


def chunks_of(views: Iterable[object]) -> Iterator[tuple[str, list[object]]]:
    """Yield the views of records in chunks named ``chunk-0``, ``chunk-1`` etc."""
    remaining = iter(views)
    for number in count():
        chunk = list(islice(remaining, CHUNK_SIZE))
        if not chunk:
            return
        yield f"chunk-{number}", chunk
