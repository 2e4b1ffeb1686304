"""The version of the package, and how an extra of it is installed."""

from __future__ import annotations

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


def pip_install(*arguments: str) -> str:
    """Return the command that installs packages into this environment, even one without pip."""
    import importlib.util  # noqa: PLC0415 - only needed for errors, like all of these
    import shlex  # noqa: PLC0415
    import sys  # noqa: PLC0415

    elsewhere = [] if importlib.util.find_spec("pip") else ["--python", sys.prefix]
    return shlex.join(["pip", *elsewhere, "install", *arguments])
