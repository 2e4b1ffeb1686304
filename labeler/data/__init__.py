"""Rows in, label files in and out.

``rows`` reads input rows: ``formats`` has one module per file format, ``columns`` and ``presets``
map columns to fields, ``parsing`` makes examples. ``label_files`` and ``label_tables`` read and
write labels, ``corrections`` stores and applies people's corrections, ``ragbench`` imports
published labels, ``criteria_files`` reads criteria, ``options`` declares options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.lazy import importer

if TYPE_CHECKING:
    from labeler.data.corrections.applying import apply_corrections
    from labeler.data.corrections.file import CorrectionsFile
    from labeler.data.ragbench import read_ragbench

__all__ = [
    "CorrectionsFile",
    "apply_corrections",
    "read_ragbench",
]
_HOMES = {
    "corrections.applying": "apply_corrections",
    "corrections.file": "CorrectionsFile",
    "ragbench": "read_ragbench",
}
__getattr__ = importer(__name__, _HOMES)
