"""Parts of the documentation site that are made of the code, as Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

import labeler
from labeler.cli import app


def commands() -> str:
    """Return a section for each command: usage, arguments, options, defaults."""
    group = get_command(app)
    text = get_docs_for_click(obj=group, ctx=Context(group, info_name="labeler"), name="labeler")
    _, _, rest = text.partition("\n## ")
    return "## " + rest


def python() -> str:
    """Return the documentation of each public name, taken from its docstring."""
    parts = [_documented(name) for name in labeler.__all__ if not name.startswith("__")]
    return "\n\n".join(parts)


def _documented(name: str) -> str:
    """Return a section with a public name's documentation."""
    found = getattr(labeler, name)
    kind = "class" if inspect.isclass(found) else "function"
    lines = [f"## {name}", "", "```{eval-rst}", f".. auto{kind}:: labeler.{name}"]
    if kind == "class":
        lines.append("   :members:")
    return "\n".join([*lines, "```"])


PARTS: dict[str, Callable[..., str]] = {"commands": commands, "python": python}
"""The parts by the name that the directive ``{generated} NAME`` of a page gives."""
