"""Label stores: durable, checksummed storage of paid answers on disk, or in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.store.disk import DiskStore
    from labeler.store.maintenance import import_labels
    from labeler.store.memory import LabelStore, MemoryStore

__all__ = [
    "DiskStore",
    "LabelStore",
    "MemoryStore",
    "import_labels",
]
_HOMES = {
    "disk": "DiskStore",
    "maintenance": "import_labels",
    "memory": "LabelStore MemoryStore",
}
__getattr__ = importer(__name__, _HOMES)
