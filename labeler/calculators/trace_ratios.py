"""TRACe: relevance, utilization, completeness and adherence, in four definitions.

``set`` (the default) counts canonical keys once each. ``ragbench`` reproduces the published
columns of the RAGBench data set from the answer as given. ``length`` weights sentences by their
characters, as the text of the RAGBench paper defines it (Friel, Belyi, Sanyal 2024, arXiv
2407.11005).
``capstone`` follows the labeling guide of the RAG capstone project, with its constants.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import alias, metric
from labeler.calculators.tally import Tally, unsupported_as_published

RELEVANT = ("all_relevant_sentence_keys",)
UTILIZED = ("all_utilized_sentence_keys",)
SUPPORT = ("sentence_support_information",)
"""Fields of the label that metrics of sentences need."""
_BOTH = (*RELEVANT, *UTILIZED)

_paper = partial(metric, source="RAGBench, arXiv 2407.11005")
_by_count = partial(_paper, definition="set", default=True)
_by_length = partial(_paper, definition="length")
_as_published = partial(
    metric, definition="ragbench", source="published columns of the RAGBench data set"
)
_by_guide = partial(
    metric, definition="capstone", source="GPT labeling guide of the RAG capstone project"
)

_NOT_MEASURED = Ratio.missing("not_measured_by_judge")
_NO_PROBABILITIES = Ratio.missing("no_probabilities")
_CAPSTONE_SENTENCES = 20
"""Document sentences of a typical context by the guide, used instead of the real number."""


@_by_count("relevance", needs=RELEVANT, formula="|R| / N")
def relevance(tally: Tally) -> Ratio:
    """Share of the retrieved sentences that help to answer the question.

    Counts: relevant sentences over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(len(tally.relevant))


@_by_count("utilization", needs=UTILIZED, formula="|U| / N")
def utilization(tally: Tally) -> Ratio:
    """Share of the retrieved sentences that the response uses.

    Counts: utilized sentences over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(len(tally.utilized))


@_by_count("completeness", needs=_BOTH, formula="|R∩U| / |R|")
def completeness(tally: Tally) -> Ratio:
    """Share of the relevant sentences that the response uses.

    Counts: sentences both relevant and utilized over relevant sentences.
    Undefined when: no sentence is relevant, or the judge does not measure completeness.
    """
    if not tally.measures_completeness:
        return _NOT_MEASURED
    both = tally.relevant & tally.utilized
    return Ratio.of(len(both), len(tally.relevant), if_empty="no_relevant_sentences")


@_by_count(
    "adherence", needs=SUPPORT, formula="1 if every response sentence is fully supported, else 0"
)
def adherence(tally: Tally) -> Ratio:
    """Return 1 if the documents support the whole response.

    Counts: 1 if every response sentence is fully supported, else 0.
    Undefined when: the response has no sentences, or a sentence has no verdict and none of the
    others is unsupported.
    """
    if not tally.response:
        return Ratio.missing("empty_response")
    return adherence_capstone(tally)


@metric(
    "adherence_fraction",
    definition="set",
    default=True,
    needs=SUPPORT,
    source="adherence without its all-or-nothing step",
    formula="supported response sentences / |A|",
)
def adherence_fraction(tally: Tally) -> Ratio:
    """Share of the response sentences that are fully supported.

    Counts: supported sentences over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.supported)


_PROBABILITIES = ("scores.relevance", "scores.utilization", "scores.adherence")
_by_probability = partial(
    metric, needs=_PROBABILITIES, source="calibrated probabilities of the judge"
)


@_by_probability(
    "adherence_score",
    definition="probability",
    default=True,
    formula="P(every response sentence is supported)",
)
def adherence_score(tally: Tally) -> Ratio:
    """Calibrated probability that the documents support the whole response.

    Counts: the stored probability, to four decimal places, over 1.
    Undefined when: the judge gave no probabilities (``no_probabilities``).
    """
    if tally.probabilities is None:
        return _NO_PROBABILITIES
    return Ratio(tally.probabilities.adherence, 1)


@_by_probability("relevance", definition="expected", formula="Σ P(relevant) / N")
def relevance_expected(tally: Tally) -> Ratio:
    """Expected share of the retrieved sentences that help to answer the question.

    Counts: sum of the document sentences' probabilities, each to four decimal places, over them.
    Undefined when: the judge gave no probabilities (``no_probabilities``), or there are no document
    sentences.
    """
    if tally.probabilities is None:
        return _NO_PROBABILITIES
    return tally.document_share(tally.probabilities.relevance)


@_by_probability("utilization", definition="expected", formula="Σ P(utilized) / N")
def utilization_expected(tally: Tally) -> Ratio:
    """Expected share of the retrieved sentences that the response uses.

    Counts: sum of the document sentences' probabilities, each to four decimal places, over them.
    Undefined when: the judge gave no probabilities (``no_probabilities``), or there are no document
    sentences.
    """
    if tally.probabilities is None:
        return _NO_PROBABILITIES
    return tally.document_share(tally.probabilities.utilization)


@_as_published("relevance", needs=RELEVANT, formula="len(R as stored) / N", bounded=False)
def relevance_ragbench(tally: Tally) -> Ratio:
    """Published ``relevance_score``: duplicates and unknown keys count.

    Counts: stored relevant keys over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(len(tally.stored.all_relevant_sentence_keys))


@_as_published("utilization", needs=UTILIZED, formula="len(U as stored) / N", bounded=False)
def utilization_ragbench(tally: Tally) -> Ratio:
    """Published ``utilization_score``: duplicates and unknown keys count.

    Counts: stored utilized keys over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(len(tally.stored.all_utilized_sentence_keys))


@_as_published(
    "completeness",
    needs=_BOTH,
    formula="|set(R)∩set(U)| / len(R as stored); 1 if R is empty",
    conventions=(("no_relevant_sentences", 1.0),),
)
def completeness_ragbench(tally: Tally) -> Ratio:
    """Published ``completeness_score``.

    Counts: distinct stored keys in both lists over the length of the stored relevant list.
    Undefined when: the judge does not measure completeness; 1 by convention if nothing is relevant.
    """
    if not tally.measures_completeness:
        return _NOT_MEASURED
    relevant = tally.stored.all_relevant_sentence_keys
    both = set(relevant).intersection(tally.stored.all_utilized_sentence_keys)
    return Ratio(len(both), len(relevant), convention=1.0)


@_as_published(
    "adherence",
    needs=("overall_supported", *SUPPORT),
    formula="1 if the list of unsupported sentences is empty, else 0",
)
def adherence_ragbench(tally: Tally) -> Ratio:
    """Published ``adherence_score``.

    Counts: 1 if the list of unsupported sentences is empty; it is empty whenever the response is
    judged supported as a whole.
    Undefined when: never.
    """
    return Ratio.flag(not unsupported_as_published(tally.stored))


@_by_length("relevance", needs=RELEVANT, formula="Σ chars of R / Σ chars of S")
def relevance_length(tally: Tally) -> Ratio:
    """Share of the retrieved characters that belong to relevant sentences.

    Counts: characters of relevant sentences over characters of all document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.length_share(tally.relevant)


@_by_length("utilization", needs=UTILIZED, formula="Σ chars of U / Σ chars of S")
def utilization_length(tally: Tally) -> Ratio:
    """Share of the retrieved characters that belong to utilized sentences.

    Counts: characters of utilized sentences over characters of all document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.length_share(tally.utilized)


@_by_length("completeness", needs=_BOTH, formula="Σ chars of R∩U / Σ chars of R")
def completeness_length(tally: Tally) -> Ratio:
    """Share of the relevant characters that belong to utilized sentences.

    Counts: characters of sentences both relevant and utilized over characters of relevant ones.
    Undefined when: no sentence is relevant, or the judge does not measure completeness.
    """
    if not tally.measures_completeness:
        return _NOT_MEASURED
    both, relevant = tally.length(tally.relevant & tally.utilized), tally.length(tally.relevant)
    return Ratio.of(both, relevant, if_empty="no_relevant_sentences")


# It involves no lengths.
alias("adherence", "adherence", definition="length", source="RAGBench, arXiv 2407.11005")


@_by_guide("relevance", needs=RELEVANT, formula="min(1, |R| / 20); 0 if R is empty")
def relevance_capstone(tally: Tally) -> Ratio:
    """Relevant sentences on the guide's fixed scale of 20.

    Counts: relevant sentences, at most 20, over 20.
    Undefined when: never.
    """
    return Ratio(min(len(tally.relevant), _CAPSTONE_SENTENCES), _CAPSTONE_SENTENCES)


@_by_guide("utilization", needs=_BOTH, formula="min(1, |U| / |R|); 0 if R is empty")
def utilization_capstone(tally: Tally) -> Ratio:
    """Utilized sentences per relevant sentence, at most 1.

    Counts: utilized sentences, at most as many as are relevant, over relevant sentences.
    Undefined when: never; 0 by convention if nothing is relevant.
    """
    relevant = len(tally.relevant)
    return Ratio(min(len(tally.utilized), relevant), relevant, convention=0.0)


@_by_guide(
    "completeness", needs=_BOTH, formula="|R∩U| / |R|; if R is empty: 1 if U is empty too, else 0"
)
def completeness_capstone(tally: Tally) -> Ratio:
    """Share of the relevant sentences that the response uses.

    Counts: sentences both relevant and utilized over relevant sentences.
    Undefined when: the judge does not measure completeness; if nothing is relevant, 1 by
    convention if nothing is used, else 0.
    """
    if not tally.measures_completeness:
        return _NOT_MEASURED
    both = tally.relevant & tally.utilized
    return Ratio(len(both), len(tally.relevant), convention=0.0 if tally.utilized else 1.0)


@_by_guide(
    "adherence",
    needs=SUPPORT,
    formula="1 if every response sentence is fully supported or there is none, else 0",
    conventions=(("empty_response", 1.0),),
)
def adherence_capstone(tally: Tally) -> Ratio:
    """Return 1 if the documents support the whole response; an empty one counts as supported.

    Counts: 1 if no response sentence is unsupported, else 0.
    Undefined when: a sentence has no verdict and none of the others is unsupported.
    """
    if tally.unjudged and not tally.unsupported:
        return Ratio.missing("unjudged_response_sentence")
    return Ratio.flag(not tally.unsupported)


@_by_guide(
    "trace_mean",
    needs=(*_BOTH, *SUPPORT),
    formula="(relevance + utilization + completeness + adherence) / 4, all of this dialect",
)
def trace_mean_capstone(tally: Tally) -> Ratio:
    """Mean of the four values of the guide.

    Counts: their sum over 4.
    Undefined when: adherence is undefined, or the judge does not measure completeness.
    """
    four = (completeness_capstone, adherence_capstone, relevance_capstone, utilization_capstone)
    parts = [compute(tally) for compute in four]
    undefined = next((part for part in parts if part.undefined), None)
    if undefined is not None:
        return undefined
    return Ratio(sum((part.exact for part in parts), Fraction()), len(parts))
