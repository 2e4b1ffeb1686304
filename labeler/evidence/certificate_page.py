"""The certificate as an HTML page that works without network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.report.page import render_page
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.evidence.certificate import Certificate

TEMPLATE = "certificate.html.j2"
STYLES = ("base.css", "report.css", "certificate.css")
_LEAST_SHOWN = 0.05
_NEAR = 130
"""Pixels between two texts that do not overlap."""
_MARGIN, _WIDTH = 20, 560
"""Left margin and width of the drawn axis, in pixels of the drawing."""


def certificate_page(found: Certificate) -> str:
    """Return the page of a certificate; every text is escaped.

    Args:
        found: the certificate.
    """
    low, high = found.interval
    judged = found.value if found.judged is None else found.judged
    left, right = _shown_range(low, high, judged)
    places = {
        name: round(_MARGIN + _WIDTH * (value - left) / (right - left), 1)
        for name, value in (("low", low), ("high", high), ("value", found.value), ("judge", judged))
    }
    values = {
        "title": f"Certificate: {found.goal.metric}",
        "found": found,
        "facts": found.facts(),
        "remark": found.REMARK,
        "ends": (
            "" if places["judge"] < _NEAR else f"{left:.2f}",
            "" if places["judge"] > _MARGIN + _WIDTH - _NEAR else f"{right:.2f}",
        ),
        "anchors": {name: _anchor(place) for name, place in places.items()},
        "value": f"{found.value:.3f}",
        "judged": None if found.judged is None else f"{found.judged:.3f}",
        "interval": f"{low:.3f} to {high:.3f}",
        "places": places,
        "width": max(round(places["high"] - places["low"], 1), 2),
        "version": __version__,
    }
    return render_page(TEMPLATE, values, styles=STYLES, scripts=()).text


def _anchor(place: float) -> str:
    """Return the side on which a text is held, so that it stays inside the drawing."""
    if place < _MARGIN + _NEAR / 2:
        return "start"
    return "end" if place > _MARGIN + _WIDTH - _NEAR / 2 else "middle"


def _shown_range(low: float, high: float, judged: float) -> tuple[float, float]:
    """Return the range of the drawn axis: interval and judge's value with room around them."""
    least, most = min(low, judged), max(high, judged)
    room = max((most - least) / 4, _LEAST_SHOWN)
    return max(0.0, least - room), min(1.0, most + room)
