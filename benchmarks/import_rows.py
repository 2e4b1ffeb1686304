"""The rows that other packages write in `imports_made.py`, and that the tests expect back."""

from __future__ import annotations

from typing import Any

COUNT = 20
AGENT_TURNS = (("user", "Hello."), ("assistant", "Hello!"))
AGENT_ROW: dict[str, Any] = {
    "question": "How long is quay 1, and how late is it?",
    "documents": ["Quay 1 is 91 m long."],
    "response": "It is 91 m long, and it is noon.",
    "history": [{"role": role, "text": text} for role, text in AGENT_TURNS],
    "tool_outputs": [{"name": "clock", "text": "It is noon."}],
}
"""The row of an agent that searches and looks at the clock."""


def import_rows() -> list[dict[str, Any]]:
    """Return made-up rows with quotes, line breaks, separators and letters beyond ASCII."""
    return [
        {
            "question": f"How long is quay {n}; and of what is it made?",
            "documents": [
                f'Quay {n} is {90 + n} m long, says the "harbour master\'s" book.',
                f"It was built in {1900 + n} of oak,\n\tas O'Hara \\ Søn wrote: 長い.",
                "Nobody lives there.",
            ][: 1 + n % 3],
            "response": f'It\'s {90 + n} m long, and of "oak".',
            "reference": f"{90 + n} m; oak.",
        }
        for n in range(COUNT)
    ]
