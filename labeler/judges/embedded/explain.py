"""Explanations of probabilities, in a sentence or two.

Documents and responses are untrusted text. Explanations quote only a few single words, each
truncated, so they cannot carry markup, an instruction or a whole sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labeler.judges.embedded.support import Evidence

QUOTED_WORDS = 6
QUOTED_LETTERS = 24
NAMED_KEYS = 3


def explain_support(evidence: Evidence, threshold: float) -> str:
    """Explain the probability of support of one response sentence."""
    if evidence.kind == "empty":
        return "Not supported: the response claims nothing that documents could support."
    if evidence.kind == "general":
        return "Claims nothing of its own, so there is nothing to look for in the documents."
    if evidence.kind == "source":
        return "Only names sources, so there is nothing to look for in the documents."
    if evidence.kind == "meta":
        return _explain_meta(evidence)
    relation = "at least" if evidence.support >= threshold else "below"
    parts = [
        _closest(evidence),
        _listed("Not in any document", evidence.unseen),
        _listed("Names not in any document", evidence.names),
        _listed("Numbers without a match in the closest sentences", evidence.numbers),
        "The closest sentence says the same but for a negation." if evidence.flipped else "",
        "It negates, and no sentence near the closest does." if evidence.negates_alone else "",
        f"Probability of support {evidence.support:.2f}, {relation} the threshold {threshold:.2f}.",
    ]
    return " ".join(filter(None, parts))


def explain_overall(evidence: Mapping[str, Evidence], supported: Sequence[str]) -> str:
    """Explain the overall verdict by the number of supported sentences and the weakest others."""
    if all(found.kind == "empty" for found in evidence.values()):
        return "The response claims nothing that documents could support."
    counted = f"{len(supported)} of {len(evidence)} response sentences are supported."
    weak = {key: found.support for key, found in evidence.items() if key not in supported}
    if not weak:
        return counted
    lowest = _ranked({key: -value for key, value in weak.items()}, -1)
    return f"{counted} Lowest probabilities of support: {lowest}."


def explain_relevance(
    scores: Mapping[str, float],
    threshold: float,
    unseen_question: Sequence[str],
    *,
    of_response: bool,
    left_out: int = 0,
) -> str:
    """Explain the choice of relevant document sentences.

    Args:
        scores: their probabilities by key.
        threshold: lowest probability of a relevant sentence.
        unseen_question: words of the question that no document contains.
        of_response: True if the words of a response counted, too.
        left_out: number of sentences beyond the limit, which were not compared.
    """
    chosen = sum(value >= threshold for value in scores.values())
    if not scores:
        return "There are no document sentences."
    found = (
        f"{chosen} of {len(scores)} document sentences reach probability {threshold:.2f} by words "
        f"shared with the question{' and the response' * of_response}; highest: {_ranked(scores)}."
    )
    missing = _listed("Words of the question in no document", unseen_question)
    cut = f"{left_out} more share fewer words and were not compared." if left_out else ""
    return " ".join(filter(None, [found, missing, cut]))


def _explain_meta(evidence: Evidence) -> str:
    if evidence.flipped:
        return (
            "Says that the documents do not say something, but the closest sentence "
            f"{evidence.closest[0]} says it ({_words(evidence.matched)})."
        )
    return "Says that the documents do not say something, and no document sentence says just that."


def _closest(evidence: Evidence) -> str:
    if not evidence.closest:
        return "No document sentence shares a content word with it."
    share = f"{evidence.coverage:.0%} of its content by weight ({_words(evidence.matched)})"
    first, *others = evidence.closest
    second = f"; more is in {others[0]}" if others else ""
    return f"Closest {_SENTENCES.get(first[0], 'document sentence')} {first} has {share}{second}."


_SENTENCES = {"h": "sentence of earlier turns", "t": "sentence of tool outputs"}
"""What a key names, by its first letter; keys of documents begin with a digit."""


def _listed(title: str, words: Sequence[str]) -> str:
    return f"{title}: {_words(words)}." if words else ""


def _words(words: Sequence[str]) -> str:
    quoted = ", ".join(word[:QUOTED_LETTERS] for word in words[:QUOTED_WORDS])
    return f"{quoted}, …" if len(words) > QUOTED_WORDS else quoted


def _ranked(scores: Mapping[str, float], sign: int = 1) -> str:
    """List the highest scores with their keys, each multiplied by the sign."""
    best = sorted(scores, key=lambda key: -scores[key])[:NAMED_KEYS]
    return ", ".join(f"{key} ({sign * scores[key]:.2f})" for key in best)
