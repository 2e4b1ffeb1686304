"""One look-up before the first record: is the key accepted, and is the model about to be retired?

Many servers lack this endpoint, and some keys may not use it. So only a rejected key and an empty
account are conclusive; the first records settle the rest.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime

from labeler.judges.openai.completion import text_of
from labeler.judges.openai.error_rules import ObservedError, find_rule
from labeler.judges.openai.reading import json_of
from labeler.judges.openai.sender import RequestFailed, Sender

PATIENCE = 20.0
"""Seconds that the look-up may take."""
_SOON_DAYS = 60
_CONCLUSIVE = frozenset({"authentication", "quota"})


@dataclass(frozen=True)
class Preflight:
    """The result of the look-up."""

    failure: ObservedError | None = None
    """Error that makes labeling impossible."""
    warning: str = ""
    """Warning for the user."""


async def preflight(
    sender: Sender, url: str, model: str, *, patience: float = PATIENCE, today: date | None = None
) -> Preflight:
    """Look the model up.

    Args:
        sender: sends the look-up.
        url: its address.
        model: name of the model.
        patience: total timeout in seconds.
        today: current date, by default in UTC.
    """
    try:
        async with asyncio.timeout(patience):
            found = json_of((await sender.send("GET", url)).content)
    except TimeoutError:
        return Preflight()
    except RequestFailed as error:
        certain = find_rule(error.observed).reason in _CONCLUSIVE  # no document is in the look-up
        return Preflight(failure=error.observed if certain else None)
    shutdown = text_of(found.get("shutdown_date") if isinstance(found, dict) else None)
    warning = _retirement_warning(model, shutdown, today or datetime.now(UTC).date())
    return Preflight(warning=warning)


def _retirement_warning(model: str, shutdown: str, today: date) -> str:
    try:
        last = datetime.fromisoformat(shutdown).date()
    except ValueError:
        return ""
    days = (last - today).days
    if days > _SOON_DAYS:
        return ""
    when = f"in {days} days" if days > 0 else "now"
    return (
        f"the provider shuts model {model!r} down on {last}, {when}: stored labels stay, but more "
        "like them cannot be made after that"
    )
