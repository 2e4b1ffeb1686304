"""One look-up before the first record: is the key accepted, and will the model be there for long?

Many servers have no such address, and some keys may not ask; so nothing is concluded from a refusal
but that of the key itself. The rest (model, parameters) the first record settles, which is sent
alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime

from openai import AsyncOpenAI

from labeler.judges.openai.client import WIRE_ERRORS, symptom_of, text_of
from labeler.judges.openai.failures import Course, Symptom, diagnose

_SOON_DAYS = 60
_IN_TROUBLE = 500
_CONCLUSIVE = frozenset({"authentication", "quota"})


@dataclass(frozen=True)
class Preflight:
    """What the look-up found."""

    failure: Symptom | None = None
    """Why no record can be labelled."""
    warning: str = ""
    """What the user should know."""
    alive: bool = False
    """Whether something answered that is not itself in trouble."""


async def preflight(
    client: AsyncOpenAI, model: str, *, patience: float = 20.0, today: date | None = None
) -> Preflight:
    """Look the model up.

    Args:
        client: whose key and address are tried.
        model: its name.
        patience: seconds that the look-up may take in all.
        today: the current date; that of this machine in UTC by default.
    """
    try:
        async with asyncio.timeout(patience):
            found = await client.models.retrieve(model)
    except WIRE_ERRORS as error:
        symptom = symptom_of(error)
        rule = diagnose(symptom)
        certain = rule.course is Course.FATAL and rule.reason in _CONCLUSIVE
        alive = symptom.sign == "status" and symptom.status < _IN_TROUBLE
        return Preflight(failure=symptom if certain else None, alive=alive)
    shutdown = text_of(getattr(found, "shutdown_date", None))
    warning = _farewell(model, shutdown, today or datetime.now(UTC).date())
    return Preflight(warning=warning, alive=True)


def _farewell(model: str, shutdown: str, today: date) -> str:
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
