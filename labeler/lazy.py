"""Public names of this package's own modules, imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def importer(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: the package's ``__name__``.
        homes: the names in each module, separated by spaces, by the module's name in the package.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def attribute(name: str) -> Any:  # noqa: ANN401 - any public name
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
