"""Profiles: how much is asked about a record in the one call.

Each profile's label holds all of the one before it, so that one label serves the metrics of every
lower profile. What is asked can change how the judge decides the shared part: ``labeler agree``
tells how far two profiles agree on the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from labeler.catalog import Catalog
from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput, ReferenceLabelingOutput

AUTO = "auto"
"""Stands for ``reference`` where a row has a reference answer, and for ``claims`` elsewhere."""
DEFAULT_PROFILE = "trace"


@dataclass(frozen=True)
class Profile:
    """One kind of label.

    Attributes:
        name: such as ``claims``.
        output: the class of its labels.
        schema: name of its published schema.
        prompt: name of the prompt that asks for it, where none is chosen.
        shows_reference: whether the judge is shown the reference answer.
    """

    name: str
    output: type[GPTLabelingOutput]
    schema: str
    prompt: str
    shows_reference: bool = False

    @property
    def family(self) -> str:
        """What the names of its schemas have in common, whatever their version."""
        return self.schema.partition("/")[0]


PROFILES: Catalog[Profile] = Catalog("profile")
for _profile in (
    Profile("trace", GPTLabelingOutput, "label-trace/v1", "trace/v1"),
    Profile("claims", ClaimsLabelingOutput, "label-claims/v1", "claims/v1"),
    Profile(
        "reference",
        ReferenceLabelingOutput,
        "label-reference/v1",
        "reference/v1",
        shows_reference=True,
    ),
):
    PROFILES.add(_profile.name, _profile)

_BY_FAMILY = {profile.family: profile for profile in PROFILES.values()}


def profile_of(schema: str) -> Profile:
    """The profile that a published schema belongs to, such as ``label-claims/v1``.

    Raises:
        UnknownName: the schema is of no profile.
    """
    family = schema.partition("/")[0]
    return _BY_FAMILY.get(family) or PROFILES[family]
