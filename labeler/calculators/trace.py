"""TRACe: relevance, utilization, completeness and adherence, in four definitions.

``set`` (the default) counts canonical keys once each. ``ragbench`` reproduces the published
columns of the RAGBench data set from the answer as given. ``length`` weights sentences by their
characters, as the text of the RAGBench paper defines it (Friel, Belyi, Sanyal 2024, arXiv
2407.11005).
``capstone`` follows the labeling guide of the RAG capstone project, with its constants.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import metric
from labeler.calculators.tally import Tally
from labeler.labels.answers import GPTLabelingOutput, VerbatimLabel

if TYPE_CHECKING:
    from labeler.calculators.columns import TallyColumns
    from labeler.calculators.ratio_column import RatioColumn

_PAPER = "RAGBench, arXiv 2407.11005"
_COLUMNS = "published columns of the RAGBench data set"
_GUIDE = "GPT labeling guide of the RAG capstone project"

_RELEVANT = ("all_relevant_sentence_keys",)
_UTILIZED = ("all_utilized_sentence_keys",)
_BOTH = ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
_SUPPORT = ("sentence_support_information",)

_CAPSTONE_SENTENCES = 20
"""Document sentences of a typical context by the guide, used instead of the real number."""


@metric(
    "relevance",
    definition="set",
    default=True,
    needs=_RELEVANT,
    source=_PAPER,
    formula="|R| / N",
    vector=lambda c: c.document_share(c.relevant),
)
def relevance(tally: Tally) -> Ratio:
    """Share of the retrieved sentences that help to answer the question.

    Counts: relevant sentences over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(tally.relevant)


@metric(
    "utilization",
    definition="set",
    default=True,
    needs=_UTILIZED,
    source=_PAPER,
    formula="|U| / N",
    vector=lambda c: c.document_share(c.utilized),
)
def utilization(tally: Tally) -> Ratio:
    """Share of the retrieved sentences that the response uses.

    Counts: utilized sentences over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(tally.utilized)


@metric(
    "completeness",
    definition="set",
    default=True,
    needs=_BOTH,
    source=_PAPER,
    formula="|R∩U| / |R|",
    vector=lambda c: c.ratio(c.relevant_and_utilized, c.relevant, if_empty="no_relevant_sentences"),
)
def completeness(tally: Tally) -> Ratio:
    """Share of the relevant sentences that the response uses.

    Counts: sentences both relevant and utilized over relevant sentences.
    Undefined when: no sentence is relevant.
    """
    both = tally.relevant & tally.utilized
    return Ratio.of(len(both), len(tally.relevant), if_empty="no_relevant_sentences")


def _adherence(columns: TallyColumns) -> RatioColumn:
    return _adherence_capstone(columns).unless(columns.response == 0, "empty_response")


def _adherence_capstone(columns: TallyColumns) -> RatioColumn:
    holds = columns.unsupported == 0
    return columns.flag(holds).unless(columns.unjudged & holds, "unjudged_response_sentence")


@metric(
    "adherence",
    definition="set",
    default=True,
    needs=_SUPPORT,
    source=_PAPER,
    formula="1 if every response sentence is fully supported, else 0",
    vector=_adherence,
)
def adherence(tally: Tally) -> Ratio:
    """Return 1 if the documents support the whole response.

    Counts: 1 if every response sentence is fully supported, else 0.
    Undefined when: the response has no sentences, or a sentence has no verdict and none of the
    others is unsupported.
    """
    if not tally.response:
        return Ratio.missing("empty_response")
    if tally.unjudged and not tally.unsupported:
        return Ratio.missing("unjudged_response_sentence")
    return Ratio.flag(not tally.unsupported)


@metric(
    "adherence_fraction",
    definition="set",
    default=True,
    needs=_SUPPORT,
    source="adherence without its all-or-nothing step",
    formula="supported response sentences / |A|",
    vector=lambda c: c.response_share(c.supported),
)
def adherence_fraction(tally: Tally) -> Ratio:
    """Share of the response sentences that are fully supported.

    Counts: supported sentences over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.supported)


@metric(
    "relevance",
    definition="ragbench",
    needs=_RELEVANT,
    source=_COLUMNS,
    formula="len(R as stored) / N",
    bounded=False,  # duplicate keys count twice
    vector=lambda c: c.document_share(c.stored_relevant),
)
def relevance_ragbench(tally: Tally) -> Ratio:
    """Published ``relevance_score``: duplicates and unknown keys count.

    Counts: stored relevant keys over document sentences.
    Undefined when: there are no document sentences.
    """
    stored = tally.stored.all_relevant_sentence_keys
    return Ratio.of(len(stored), tally.sentences, if_empty="no_document_sentences")


@metric(
    "utilization",
    definition="ragbench",
    needs=_UTILIZED,
    source=_COLUMNS,
    formula="len(U as stored) / N",
    bounded=False,  # duplicate keys count twice
    vector=lambda c: c.document_share(c.stored_utilized),
)
def utilization_ragbench(tally: Tally) -> Ratio:
    """Published ``utilization_score``: duplicates and unknown keys count.

    Counts: stored utilized keys over document sentences.
    Undefined when: there are no document sentences.
    """
    stored = tally.stored.all_utilized_sentence_keys
    return Ratio.of(len(stored), tally.sentences, if_empty="no_document_sentences")


@metric(
    "completeness",
    definition="ragbench",
    needs=_BOTH,
    source=_COLUMNS,
    formula="|set(R)∩set(U)| / len(R as stored); 1 if R is empty",
    vector=lambda c: c.plain(c.stored_both, c.stored_relevant, convention=1.0),
)
def completeness_ragbench(tally: Tally) -> Ratio:
    """Published ``completeness_score``.

    Counts: distinct stored keys in both lists over the length of the stored relevant list.
    Undefined when: never; 1 by convention if nothing is relevant.
    """
    stored = tally.stored.all_relevant_sentence_keys
    both = set(stored) & set(tally.stored.all_utilized_sentence_keys)
    return Ratio(len(both), len(stored), convention=1.0)


@metric(
    "adherence",
    definition="ragbench",
    needs=("overall_supported", *_SUPPORT),
    source=_COLUMNS,
    formula="1 if the list of unsupported sentences is empty, else 0",
    vector=lambda c: c.flag(c.stored_unsupported == 0),
)
def adherence_ragbench(tally: Tally) -> Ratio:
    """Published ``adherence_score``.

    Counts: 1 if the list of unsupported sentences is empty; it is empty whenever the response is
    judged supported as a whole.
    Undefined when: never.
    """
    return Ratio.flag(not unsupported_as_published(tally.stored))


def unsupported_as_published(stored: GPTLabelingOutput | VerbatimLabel) -> list[str]:
    """Return RAGBench's ``unsupported_response_sentence_keys``.

    A sentence counts as unsupported if ``fully_supported`` is false, or null without supporting
    keys. The list is empty whenever ``overall_supported`` is true.
    """
    if stored.overall_supported:
        return []
    return [
        entry.response_sentence_key
        for entry in stored.sentence_support_information
        if entry.fully_supported is False
        or (entry.fully_supported is None and not entry.supporting_sentence_keys)
    ]


@metric(
    "relevance",
    definition="length",
    needs=_RELEVANT,
    source=_PAPER,
    formula="Σ chars of R / Σ chars of S",
    vector=lambda c: c.length_share(c.relevant_length),
)
def relevance_length(tally: Tally) -> Ratio:
    """Share of the retrieved characters that belong to relevant sentences.

    Counts: characters of relevant sentences over characters of all document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.length_share(tally.relevant)


@metric(
    "utilization",
    definition="length",
    needs=_UTILIZED,
    source=_PAPER,
    formula="Σ chars of U / Σ chars of S",
    vector=lambda c: c.length_share(c.utilized_length),
)
def utilization_length(tally: Tally) -> Ratio:
    """Share of the retrieved characters that belong to utilized sentences.

    Counts: characters of utilized sentences over characters of all document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.length_share(tally.utilized)


@metric(
    "completeness",
    definition="length",
    needs=_BOTH,
    source=_PAPER,
    formula="Σ chars of R∩U / Σ chars of R",
    vector=lambda c: c.ratio(
        c.relevant_and_utilized_length, c.relevant_length, if_empty="no_relevant_sentences"
    ),
)
def completeness_length(tally: Tally) -> Ratio:
    """Share of the relevant characters that belong to utilized sentences.

    Counts: characters of sentences both relevant and utilized over characters of relevant ones.
    Undefined when: no sentence is relevant.
    """
    both = tally.length(tally.relevant & tally.utilized)
    return Ratio.of(both, tally.length(tally.relevant), if_empty="no_relevant_sentences")


@metric(
    "adherence",
    definition="length",
    needs=_SUPPORT,
    source=_PAPER,
    formula="1 if every response sentence is fully supported, else 0",
    vector=_adherence,
)
def adherence_length(tally: Tally) -> Ratio:
    """Same as the ``set`` definition: adherence involves no lengths.

    Counts: as ``adherence``.
    Undefined when: as ``adherence``.
    """
    return adherence(tally)


def _relevance_capstone(columns: TallyColumns) -> RatioColumn:
    return columns.plain(columns.relevant.clip(max=_CAPSTONE_SENTENCES), _CAPSTONE_SENTENCES)


@metric(
    "relevance",
    definition="capstone",
    needs=_RELEVANT,
    source=_GUIDE,
    formula="min(1, |R| / 20); 0 if R is empty",
    vector=_relevance_capstone,
)
def relevance_capstone(tally: Tally) -> Ratio:
    """Relevant sentences on the guide's fixed scale of 20.

    Counts: relevant sentences, at most 20, over 20.
    Undefined when: never.
    """
    return Ratio(min(len(tally.relevant), _CAPSTONE_SENTENCES), _CAPSTONE_SENTENCES)


def _utilization_capstone(columns: TallyColumns) -> RatioColumn:
    used = columns.utilized.clip(max=columns.relevant)
    return columns.plain(used, columns.relevant, convention=0.0)


@metric(
    "utilization",
    definition="capstone",
    needs=_BOTH,
    source=_GUIDE,
    formula="min(1, |U| / |R|); 0 if R is empty",
    vector=_utilization_capstone,
)
def utilization_capstone(tally: Tally) -> Ratio:
    """Utilized sentences per relevant sentence, at most 1.

    Counts: utilized sentences, at most as many as are relevant, over relevant sentences.
    Undefined when: never; 0 by convention if nothing is relevant.
    """
    relevant = len(tally.relevant)
    return Ratio(min(len(tally.utilized), relevant), relevant, convention=0.0)


def _completeness_capstone(columns: TallyColumns) -> RatioColumn:
    convention = (columns.utilized == 0).astype("float64")
    return columns.plain(columns.relevant_and_utilized, columns.relevant, convention=convention)


@metric(
    "completeness",
    definition="capstone",
    needs=_BOTH,
    source=_GUIDE,
    formula="|R∩U| / |R|; if R is empty: 1 if U is empty too, else 0",
    vector=_completeness_capstone,
)
def completeness_capstone(tally: Tally) -> Ratio:
    """Share of the relevant sentences that the response uses.

    Counts: sentences both relevant and utilized over relevant sentences.
    Undefined when: never; if nothing is relevant, 1 by convention if nothing is used, else 0.
    """
    both = len(tally.relevant & tally.utilized)
    return Ratio(both, len(tally.relevant), convention=0.0 if tally.utilized else 1.0)


@metric(
    "adherence",
    definition="capstone",
    needs=_SUPPORT,
    source=_GUIDE,
    formula="1 if every response sentence is fully supported or there is none, else 0",
    vector=_adherence_capstone,
)
def adherence_capstone(tally: Tally) -> Ratio:
    """Return 1 if the documents support the whole response; an empty one counts as supported.

    Counts: 1 if no response sentence is unsupported, else 0.
    Undefined when: a sentence has no verdict and none of the others is unsupported.
    """
    return adherence(tally) if tally.response else Ratio.flag(holds=True)


def _trace_mean_capstone(columns: TallyColumns) -> RatioColumn:
    adherence = _adherence_capstone(columns)
    some = columns.relevant.clip(min=1)
    none = (columns.relevant == 0) & (columns.utilized == 0)
    relevance = columns.relevant.clip(max=_CAPSTONE_SENTENCES) * some
    of_relevant = columns.utilized.clip(max=columns.relevant) + columns.relevant_and_utilized + none
    total = relevance + _CAPSTONE_SENTENCES * (of_relevant + adherence.numerator * some)
    mean = columns.plain(total, 4, parts=_CAPSTONE_SENTENCES * some)
    return mean.undefined_like(adherence)


@metric(
    "trace_mean",
    definition="capstone",
    needs=(*_BOTH, *_SUPPORT),
    source=_GUIDE,
    formula="(relevance + utilization + completeness + adherence) / 4, all of this dialect",
    vector=_trace_mean_capstone,
)
def trace_mean_capstone(tally: Tally) -> Ratio:
    """Mean of the four values of the guide.

    Counts: their sum over 4.
    Undefined when: adherence is undefined.
    """
    four = [
        relevance_capstone(tally),
        utilization_capstone(tally),
        completeness_capstone(tally),
        adherence_capstone(tally),
    ]
    undefined = next((part.undefined for part in four if part.undefined), None)
    if undefined:
        return Ratio.missing(undefined)
    return Ratio(sum((part.exact for part in four), Fraction()), len(four))
