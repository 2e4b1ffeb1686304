"""Rows in, label files in and out.

``rows`` reads input rows: ``formats`` has one module per file format, ``columns`` and ``presets``
map columns to fields, ``parsing`` makes examples. ``label_files`` reads and writes labels,
``corrections`` stores and applies people's corrections, ``options`` declares options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.data.corrections.applying import apply_corrections
    from labeler.data.corrections.file import CorrectionsFile

__all__ = [
    "CorrectionsFile",
    "apply_corrections",
]
_HOMES = {
    "corrections.applying": "apply_corrections",
    "corrections.file": "CorrectionsFile",
}
__getattr__ = importer(__name__, _HOMES)
