"""Profiles: the fields that a judge returns about a record in one call.

Each profile's label contains all fields of the one before it, so one label serves the metrics of
every lower profile. A larger request can change the judge's decisions on the shared fields:
``labeler agree`` measures the agreement of two profiles on the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from labeler.catalog import Catalog
from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput, ReferenceLabelingOutput

AUTO = "auto"
"""``reference`` for rows with a reference answer, ``claims`` for others."""
DEFAULT_PROFILE = "trace"


@dataclass(frozen=True)
class Profile:
    """One kind of label.

    Attributes:
        name: such as ``claims``.
        output: class of its labels.
        schema: name of its published schema.
        prompt: name of its default prompt.
        shows_reference: whether the judge sees the reference answer.
    """

    name: str
    output: type[GPTLabelingOutput]
    schema: str
    prompt: str
    shows_reference: bool = False

    @property
    def family(self) -> str:
        """Name of its schemas without the version."""
        return self.schema.partition("/")[0]

    def schema_of(self, prompt: str) -> str:
        """Return the schema that a prompt such as ``trace/v2`` asks for: that of its version."""
        return f"{self.family}/{prompt.rpartition('/')[2]}"


PROFILES: Catalog[Profile] = Catalog("profile", extra=("auto",))
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
    """Return the profile of a published schema, such as ``label-claims/v1``.

    Raises:
        UnknownName: no profile has such a schema.
    """
    family = schema.partition("/")[0]
    return _BY_FAMILY.get(family) or PROFILES[family]
