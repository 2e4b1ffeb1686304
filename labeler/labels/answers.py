"""Labels: a judge's answers about a record in one call, in three profiles that extend each other.

``trace`` has RAGBench's fields under its names (Friel, Belyi, Sanyal 2024). ``claims`` adds the
atomic claims of the response, ``reference`` those of a reference answer. Added fields come last, so
that a model decides on the shared part first. Explanations and evidence come before verdicts, so
that it reasons before it decides. :mod:`labeler.labels.contract` has the rules for answers.

A label has all fields of the profiles below its own, so it serves their metrics too. A larger
request can change the judge's decisions on the shared fields: ``labeler agree`` measures the
agreement of two profiles on the same rows.

Docstrings and descriptions of the classes are part of published schemas and never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag, create_model

from labeler.catalog import Catalog
from labeler.sentences.example import Frozen, position

AnswerT = TypeVar("AnswerT", bound=Frozen)

SPECIAL_SUPPORT: tuple[str, ...] = (
    "supported_without_sentence",
    "general",
    "well_known_fact",
    "numerical_reasoning",
)
"""Strings that stand for support without a sentence."""


class SentenceSupport(Frozen):
    """The judgment of one response sentence."""

    response_sentence_key: str = Field(description="Key of the response sentence being judged.")
    explanation: str = Field(
        description="Step by step: what the sentence claims, "
        "and what the documents say about each claim."
    )
    supporting_sentence_keys: tuple[str, ...] = Field(
        description="Keys of document sentences that support it, or special support strings. "
        "Empty exactly when the sentence is not fully supported."
    )
    fully_supported: bool = Field(description="True when every claim of the sentence is supported.")


class GPTLabelingOutput(Frozen):
    """The label of one record: relevance, support and utilization, sentence by sentence."""

    relevance_explanation: str = Field(
        description="Which information of the documents helps to answer the question, and why; "
        "judged without regard to the response."
    )
    all_relevant_sentence_keys: tuple[str, ...] = Field(
        description="Keys of all document sentences that help to answer the question."
    )
    overall_supported_explanation: str = Field(
        description="Step by step: is the response as a whole supported by the documents?"
    )
    overall_supported: bool = Field(description="True when the whole response is supported.")
    sentence_support_information: tuple[SentenceSupport, ...] = Field(
        description="One entry for every response sentence, in order."
    )
    all_utilized_sentence_keys: tuple[str, ...] = Field(
        description="Keys of all document sentences whose information the response uses."
    )


class RetrievalLabel(Frozen):
    """The relevance of a question's documents, judged without any response."""

    relevance_explanation: str = Field(
        description="Which information of the documents helps to answer the question, and why."
    )
    all_relevant_sentence_keys: tuple[str, ...] = Field(
        description="Keys of all document sentences that help to answer the question."
    )


Verdict = Literal["entailment", "neutral", "contradiction"]
"""A text's verdict on a claim: it holds, the text says nothing of it, or it does not hold."""


class ResponseClaim(Frozen):
    """One atomic claim of a response sentence, held against the documents."""

    response_sentence_key: str = Field(description="Key of the response sentence that makes it.")
    claim: str = Field(description="The claim in one short sentence that stands by itself.")
    supporting_sentence_keys: tuple[str, ...] = Field(
        description="Keys of document sentences that state it, or special support strings. "
        "Empty when it is not entailed."
    )
    contradicting_sentence_keys: tuple[str, ...] = Field(
        description="Keys of document sentences that say otherwise."
    )
    verdict: Verdict = Field(
        description="What the documents say of it: entailment, neutral, or contradiction."
    )
    relevant_to_question: bool = Field(
        description="True when the claim helps to answer the question."
    )


class ClaimsLabelingOutput(GPTLabelingOutput):
    """The label of one record, with the claims of its response."""

    response_claims: tuple[ResponseClaim, ...] = Field(
        description="Every atomic claim of the response, in the order of its sentences."
    )
    response_sentences_without_claims: tuple[str, ...] = Field(
        description="Keys of the response sentences that make no claim."
    )


class ComparedClaim(ResponseClaim):
    """A claim of the response, held against the documents and the reference answer."""

    reference_verdict: Verdict = Field(
        description="What the reference answer says of it: entailment, neutral, or contradiction."
    )


class ReferenceClaim(Frozen):
    """One atomic claim of the reference answer, held against the documents and the response."""

    reference_sentence_key: str = Field(description="Key of the reference sentence that makes it.")
    claim: str = Field(description="The claim in one short sentence that stands by itself.")
    supporting_sentence_keys: tuple[str, ...] = Field(
        description="Keys of document sentences that state it. Empty when none does."
    )
    response_verdict: Verdict = Field(
        description="What the response says of it: entailment, neutral, or contradiction."
    )


class ReferenceLabelingOutput(ClaimsLabelingOutput):
    """The label of one record that has a reference answer, with the claims of both."""

    response_claims: tuple[ComparedClaim, ...] = Field(
        description="Every atomic claim of the response, in the order of its sentences."
    )
    reference_claims: tuple[ReferenceClaim, ...] = Field(
        description="Every atomic claim of the reference answer, in the order of its sentences."
    )
    reference_sentences_without_claims: tuple[str, ...] = Field(
        description="Keys of the reference sentences that make no claim."
    )


class VerbatimSupport(Frozen):
    """A sentence judgment as it was given, before normalisation."""

    response_sentence_key: str
    explanation: str
    supporting_sentence_keys: tuple[str, ...]
    fully_supported: bool | None
    """``None`` if the source left it open, as many published RAGBench rows do."""


class VerbatimLabel(Frozen):
    """An answer as it was given: spelling, duplicates, unknown keys and gaps included."""

    relevance_explanation: str
    all_relevant_sentence_keys: tuple[str, ...]
    overall_supported_explanation: str
    overall_supported: bool
    sentence_support_information: tuple[VerbatimSupport, ...]
    all_utilized_sentence_keys: tuple[str, ...]


def _profile(value: object) -> str:
    """Return the profile of a stored label, by its fields."""
    names = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    if "reference_claims" in names:
        return "reference"
    return "claims" if "response_claims" in names else "trace"


Label = Annotated[
    Annotated[GPTLabelingOutput, Tag("trace")]
    | Annotated[ClaimsLabelingOutput, Tag("claims")]
    | Annotated[ReferenceLabelingOutput, Tag("reference")],
    Discriminator(_profile),
]
"""A label of any profile."""

Verbatim = Annotated[
    Annotated[VerbatimLabel, Tag("trace")]
    | Annotated[ClaimsLabelingOutput, Tag("claims")]
    | Annotated[ReferenceLabelingOutput, Tag("reference")],
    Discriminator(_profile),
]
"""An answer as given. Only ``trace`` has a form of its own, because only imported labels have gaps,
and these have that profile."""


def as_given(answer: GPTLabelingOutput) -> Verbatim:
    """Return a judge's answer in the form that is stored with a label that differs from it."""
    if isinstance(answer, ClaimsLabelingOutput):
        return answer
    return VerbatimLabel(**answer.model_dump())


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
for _each in (
    Profile("trace", GPTLabelingOutput, "label-trace/v1"),
    Profile("claims", ClaimsLabelingOutput, "label-claims/v1"),
    Profile(
        "reference",
        ReferenceLabelingOutput,
        "label-reference/v1",
        shows_reference=True,
    ),
):
    PROFILES.add(_each.name, _each)

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


@cache
def without_relevance(output: type[GPTLabelingOutput]) -> type[Any]:
    """Return the class of a profile's answers that say nothing about relevance."""
    fields: dict[str, Any] = {
        name: (field.annotation, field)
        for name, field in output.model_fields.items()
        if name not in RetrievalLabel.model_fields
    }
    made = create_model(f"{output.__name__}WithoutRelevance", __base__=Frozen, **fields)
    made.__doc__ = "The label of one record without its relevance."
    return made


def lowered(label: GPTLabelingOutput, output: type[AnswerT]) -> AnswerT:
    """Reduce a label to a smaller profile, or to a part of one.

    Args:
        label: a label of that profile or one that extends it.
        output: the label class of the smaller profile, or its :func:`without_relevance`.
    """
    if type(label) is output:
        return label
    kept = {name: getattr(label, name) for name in output.model_fields}
    if "response_claims" in kept and "reference_claims" not in kept:
        kept["response_claims"] = tuple(
            ResponseClaim(**{name: getattr(claim, name) for name in ResponseClaim.model_fields})
            for claim in kept["response_claims"]
        )
    return output(**kept)


def judged_sentences(label: GPTLabelingOutput) -> dict[str, SentenceSupport]:
    """Return the judgment of each judged response sentence, by key.

    Imported labels may judge a sentence twice. As in the metrics, it is supported only if both
    judgments say so, and then by the keys of both.
    """
    found: dict[str, SentenceSupport] = {}
    for entry in label.sentence_support_information:
        before = found.get(entry.response_sentence_key)
        if before is not None and before.fully_supported and entry.fully_supported:
            named = dict.fromkeys(
                [*before.supporting_sentence_keys, *entry.supporting_sentence_keys]
            )
            found[entry.response_sentence_key] = before.model_copy(
                update={"supporting_sentence_keys": tuple(named)}
            )
        elif before is None or before.fully_supported:
            found[entry.response_sentence_key] = entry
    return found


def in_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return keys in reading order without repeats; then special strings, then invalid keys."""
    return tuple(sorted(set(keys), key=_sort_key))


_SPECIAL = {name: rank for rank, name in enumerate(SPECIAL_SUPPORT)}


def _sort_key(key: str) -> tuple[int, int, int, str]:
    if key in _SPECIAL:
        return 3, _SPECIAL[key], 0, ""
    try:
        return (*position(key), "")
    except ValueError:
        return 4, 0, 0, key


def is_majority(yes: int, voters: int, *, tie: bool = False) -> bool:
    """Return True if more than half of the voters say yes.

    Args:
        yes: number of yes votes.
        voters: number of voters.
        tie: the verdict if exactly half of them do.
    """
    return tie if 2 * yes == voters else 2 * yes > voters


def majority_keys(named: Collection[Iterable[str]], tied: Container[str] = ()) -> tuple[str, ...]:
    """Return the keys that more than half of the voters name, else those that most of them name.

    Args:
        named: the keys of each voter, at least one of them not empty.
        tied: keys that half of the voters are enough for.
    """
    counts = Counter(key for keys in named for key in set(keys))
    kept = [key for key, n in counts.items() if is_majority(n, len(named), tie=key in tied)]
    most = max(counts.values())
    return in_order(kept or [key for key, count in counts.items() if count == most])


GENERAL = "general"
"""The special string of a sentence that makes no claim."""
UNDECIDED = 0.85
"""Probability of support at which an opinion speaks neither for a verdict nor against it."""


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """A second judge's scores of a record's response sentences, without texts.

    Attributes:
        support: probability that the documents support a sentence, by its key.
        general: sentences that make no claim, as the judge sees it.
    """

    support: Mapping[str, float]
    general: frozenset[str]

    def disagreements(self, label: GPTLabelingOutput) -> dict[str, float]:
        """Return how surely a verdict of a label is wrong, from 0 to 1, by response sentence.

        Sentences whose only support is a special string are left out: no document is their source.
        """
        found = {}
        for key, entry in judged_sentences(label).items():
            given = entry.supporting_sentence_keys
            if key in self.support and not (given and set(given) <= set(SPECIAL_SUPPORT)):
                contrary = _against(self.support[key])
                found[key] = contrary if entry.fully_supported else 1 - contrary
        return found


def _against(likely: float) -> float:
    """Return how surely the documents do not support a sentence of a probability of support.

    A judge's own verdict is evidence too, and most sentences are supported: of a sentence that a
    judge calls unsupported, half of all have a probability above 0.89. The scale is undecided at
    :data:`UNDECIDED`, between this and 0.5.
    """
    odds = likely * (1 - UNDECIDED)
    contrary = (1 - likely) * UNDECIDED
    return contrary / (odds + contrary)
