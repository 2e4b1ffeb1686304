"""The version of the package, and how it and its extras are installed."""

from __future__ import annotations

from contextlib import suppress

__version__ = "0.1.0"
NAME = "rag-labeler"


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from where the package itself was installed.

    Args:
        extra: its name, such as ``ray``.
    """
    import json  # noqa: PLC0415 - only needed for errors, like all of these
    from importlib import metadata  # noqa: PLC0415
    from urllib.parse import urlsplit  # noqa: PLC0415
    from urllib.request import url2pathname  # noqa: PLC0415

    try:
        found = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        found = {}
    url = urlsplit(found.get("url", ""))
    source = f"{NAME}[{extra}]"
    editable = ["-e"] if found.get("dir_info", {}).get("editable") else []
    if url.scheme == "file":
        source = f"{url2pathname(url.path)}[{extra}]"
    elif url.scheme:
        source = f"{NAME}[{extra}] @ {url.geturl()}"
    return pip_install(*editable, source)


def outdated() -> str:
    """Return the remedy if this checkout declares more than its installed metadata, else ""."""
    import tomllib  # noqa: PLC0415 - only needed for errors, like all of these
    from importlib import metadata  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    checkout = Path(__file__).parents[1] / "pyproject.toml"
    text = checkout.read_text("utf-8") if checkout.is_file() else "[project]"
    groups = tomllib.loads(text)["project"].get("entry-points", {})
    declared = {(group, *point) for group in groups for point in groups[group].items()}
    with suppress(metadata.PackageNotFoundError):
        points = metadata.distribution(NAME).entry_points
        declared -= {(point.group, point.name, point.value) for point in points}
    if not declared:
        return ""
    again = "install again, as in pip install -e ."
    return f"; the installed metadata is older than {checkout}: {again}"


def pip_install(*arguments: str) -> str:
    """Return the command that installs packages into this environment, even one without pip."""
    import importlib.util  # noqa: PLC0415 - only needed for errors, like all of these
    import shlex  # noqa: PLC0415
    import sys  # noqa: PLC0415

    elsewhere = [] if importlib.util.find_spec("pip") else ["--python", sys.prefix]
    return shlex.join(["pip", *elsewhere, "install", *arguments])
