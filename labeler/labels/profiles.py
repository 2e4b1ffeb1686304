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


SUPPORT = "-support"
"""End of the names of prompts and schemas that ask about a response and not about relevance."""


def family_of(name: str) -> str:
    """Return the name of a schema or prompt without its version."""
    return name.partition("/")[0]


def version_of(name: str) -> str:
    """Return the version of a prompt or schema, such as ``v1`` of ``trace/v1``."""
    return name.rpartition("/")[2]


@dataclass(frozen=True)
class Profile:
    """One kind of label.

    Attributes:
        name: such as ``claims``.
        output: class of its labels.
        schema: name of its published schema.
        shows_reference: whether the judge sees the reference answer.
    """

    name: str
    output: type[GPTLabelingOutput]
    schema: str
    shows_reference: bool = False

    @property
    def families(self) -> tuple[str, str]:
        """Names of its schemas without the version: with relevance, and without."""
        return family_of(self.schema), family_of(self.schema) + SUPPORT

    def schema_of(self, prompt: str) -> str:
        """Return the schema that a prompt such as ``trace/v1`` asks for, by its version."""
        family = self.families[family_of(prompt).endswith(SUPPORT)]
        return f"{family}/{version_of(prompt)}"


PROFILES: Catalog[Profile] = Catalog("profile", extra=("auto",))
for _profile in (
    Profile("trace", GPTLabelingOutput, "label-trace/v1"),
    Profile("claims", ClaimsLabelingOutput, "label-claims/v1"),
    Profile(
        "reference",
        ReferenceLabelingOutput,
        "label-reference/v1",
        shows_reference=True,
    ),
):
    PROFILES.add(_profile.name, _profile)

BY_OUTPUT = {profile.output: profile for profile in PROFILES.values()}
"""Profiles by the classes of their labels."""
BY_FAMILY = {family: profile for profile in PROFILES.values() for family in profile.families}
"""Profiles by the names of their schemas without the version."""


def profile_of(schema: str) -> Profile:
    """Return the profile of a published schema, such as ``label-claims/v1``.

    Raises:
        UnknownName: no profile has such a schema.
    """
    family = family_of(schema)
    return BY_FAMILY.get(family) or PROFILES[family]


def lacks_relevance(schema: str) -> bool:
    """Return True for the schema of answers without relevance, such as label-trace-support/v1."""
    profile = BY_FAMILY.get(family_of(schema))
    return profile is not None and family_of(schema).endswith(SUPPORT)
