"""What people say of a judge's labels: an append-only file beside them, and what follows from it.

The judge's label is never edited. A correction names the label that it speaks of by its key.
"""

from __future__ import annotations

from labeler.corrections.correction import Correction, Judgement, Opinion, Queue

__all__ = ["Correction", "Judgement", "Opinion", "Queue"]
