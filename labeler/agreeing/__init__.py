"""How far labels agree with each other, and with people."""

from __future__ import annotations

from labeler.agreeing.estimates import Estimates
from labeler.agreeing.fields import FieldAgreement
from labeler.agreeing.labels import Joined, LabelAgreement, compare_labels
from labeler.agreeing.people import PeopleAgreement, compare_with_people

__all__ = [
    "Estimates",
    "FieldAgreement",
    "Joined",
    "LabelAgreement",
    "PeopleAgreement",
    "compare_labels",
    "compare_with_people",
]
