"""How far labels agree with each other, and with people."""

from __future__ import annotations

from labeler.calculators.rater_agreement import FieldAgreement
from labeler.comparing.agreement.estimates import Estimates
from labeler.comparing.agreement.labels import Joined, LabelAgreement, compare_labels
from labeler.comparing.agreement.people import PeopleAgreement, compare_with_people

__all__ = [
    "Estimates",
    "FieldAgreement",
    "Joined",
    "LabelAgreement",
    "PeopleAgreement",
    "compare_labels",
    "compare_with_people",
]
