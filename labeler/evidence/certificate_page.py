"""The certificate as an HTML page that works without network."""

from __future__ import annotations

from labeler.evidence.certificate import REMARK, Certificate
from labeler.report.page import render_page
from labeler.version import __version__

TEMPLATE = "certificate.html.j2"
STYLES = ("base.css", "report.css", "certificate.css")
_LEAST_SHOWN = 0.05


def certificate_page(found: Certificate) -> str:
    """Return the page of a certificate; every text is escaped.

    Args:
        found: the certificate.
    """
    low, high = found.interval
    left, right = _shown_range(low, high, found.judged)
    width = right - left
    values = {
        "title": f"Certificate: {found.metric}",
        "found": found,
        "facts": found.facts(),
        "remark": REMARK,
        "ends": (left, right),
        "places": {
            name: round(100 * (value - left) / width, 3)
            for name, value in (
                ("low", low),
                ("high", high),
                ("value", found.value),
                ("judged", found.judged),
            )
        },
        "version": __version__,
    }
    return render_page(TEMPLATE, values, styles=STYLES, scripts=()).text


def _shown_range(low: float, high: float, judged: float) -> tuple[float, float]:
    """Return the range of the drawn axis: interval and judge's value with room around them."""
    least, most = min(low, judged), max(high, judged)
    room = max((most - least) / 4, _LEAST_SHOWN)
    return max(0.0, least - room), min(1.0, most + room)
