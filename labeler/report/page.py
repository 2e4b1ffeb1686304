"""Makes one HTML file of a template, styles and scripts that may run nothing else.

What is inlined is named in the page's Content-Security-Policy by its digest, so that a text which
slipped through as markup could neither run, load nor send anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from labeler.sentences.characters import visible

ASSETS = Path(__file__).parent / "assets"

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
    "record_marks.js",
    "record_gaze.js",
    "record_panel.js",
    "record_keys.js",
    "record.js",
)
"""What draws a record; a page that shows records inlines these before its own."""


def render_page(
    template: str,
    values: Mapping[str, Any],
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    connect: str = "'none'",
) -> str:
    """Fill in a template that extends ``page.html.j2``.

    Args:
        template: name of the template among the assets.
        values: what it is filled in with; every text is escaped.
        styles: names of the style sheets to inline, in order.
        scripts: names of the scripts to inline, in order; they share one scope.
        connect: where the scripts may send requests to, in the words of the policy.
    """
    style, script = _joined(styles), _joined(scripts)
    policy = (
        "default-src 'none'; "
        f"style-src {_digest(style)}; script-src {_digest(script)}; connect-src {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            # Ours alone, from files of the package: the only texts that are not escaped.
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=policy,
        )
    )


def _joined(names: Sequence[str]) -> str:
    return "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shown(value: object) -> object:
    """What a template prints, with control and direction characters written out."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,  # by name alone it would leave out .j2
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["thousands"] = "{:,}".format
    return environment
