"""Checks of a label against itself: verdicts and lists of keys that contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from labeler.audit.registry import Found, Subject, check
from labeler.labels.answers import SentenceSupport
from labeler.sentences.display import are, plural

FEWEST_JUDGED = 3
"""Response sentences from which a single unsupported one is noted."""
FEWEST_SENTENCES = 5
"""Document sentences below which it is normal that all are relevant."""


def _share(count: int, whole: str) -> str:
    """Return ``1 of 3 sentences is``, ``2 of 3 sentences are``."""
    return f"{count} {whole} {are(count)}"


def _judged(entries: Iterable[SentenceSupport]) -> frozenset[str]:
    """Return the response sentences of verdicts; imported labels may judge one twice."""
    return frozenset(entry.response_sentence_key for entry in entries)


def _claiming(subject: Subject, entries: Iterable[SentenceSupport]) -> frozenset[str]:
    """Return those that metrics count: sentences that do not only name sources."""
    return _judged(entries) & subject.claims.keys()


@check(
    "overall_against_sentences", severity="contradiction", applies=lambda subject: subject.judged
)
def overall_against_sentences(subject: Subject) -> Iterator[Found]:
    """Overall verdict against those on the sentences.

    A response is supported exactly when all its sentences are: one of the verdicts is wrong, and
    with it adherence or the share of supported sentences.
    """
    unsupported = subject.in_order(_judged(subject.unsupported))
    if subject.label.overall_supported and unsupported:
        sentences = plural(len(_judged(subject.judged)), "sentence")
        counted = _share(len(unsupported), f"of its {sentences}")
        yield Found(f"Supported as a whole, but {counted} not.", unsupported)
    if not subject.label.overall_supported and not unsupported:
        yield Found("Unsupported as a whole, but every sentence is supported.")


@check(
    "verdict_hangs_on_one",
    severity="note",
    applies=lambda subject: len(_claiming(subject, subject.judged)) >= FEWEST_JUDGED,
    weight=0.25,
)
def verdict_hangs_on_one(subject: Subject) -> Iterator[Found]:
    """One sentence alone makes the response unsupported.

    Every other sentence is supported, so adherence of the record stands and falls with this one
    verdict: look whether it claims anything that documents had to say.
    """
    unsupported = tuple(_claiming(subject, subject.unsupported))
    if len(unsupported) == 1 and not subject.label.overall_supported:
        count = plural(len(_claiming(subject, subject.judged)), "sentence")
        yield Found(f"Of its {count}, only this one is not supported.", unsupported)


@check("support_not_utilized", severity="contradiction", applies=lambda subject: subject.supporting)
def support_not_utilized(subject: Subject) -> Iterator[Found]:
    """Support by a sentence that is not utilized.

    A sentence whose information supports the response was used by it: either it is missing from the
    utilized list, or the support is claimed wrongly.
    """
    unused = subject.supporting - subject.utilized
    if unused:
        yield Found(
            "Named as support, but not in the list of utilized sentences.", subject.in_order(unused)
        )


@check(
    "utilized_not_relevant",
    severity="suspicion",
    applies=lambda subject: subject.utilized,
    weight=0.1,
)
def utilized_not_relevant(subject: Subject) -> Iterator[Found]:
    """Utilized but not relevant.

    A response may use what does not help to answer the question, but more often the list of
    relevant sentences has a gap: look whether it says something about the question.
    """
    unasked = subject.utilized - subject.relevant
    if unasked and subject.relevant:
        counted = _share(len(unasked), f"of {plural(len(subject.utilized), 'utilized sentence')}")
        yield Found(f"{counted} not called relevant.", subject.in_order(unasked))


@check(
    "relevant_nothing",
    severity="contradiction",
    version=2,
    applies=lambda subject: (
        bool(subject.utilized | subject.supporting) and subject.record.retrieval is None
    ),
    weight=0.3,
)
def relevant_nothing(subject: Subject) -> Iterator[Found]:
    """Nothing relevant, though documents are used or support.

    An answer that is drawn from documents that do not help to answer is possible and rare:
    relevance and completeness rest on an empty list.
    """
    if not subject.relevant:
        yield Found(
            "Nothing is relevant, but document sentences are utilized or support the response.",
            subject.in_order(subject.utilized | subject.supporting),
        )


@check(
    "relevant_everything",
    severity="note",
    applies=lambda subject: len(subject.documents) >= FEWEST_SENTENCES,
)
def relevant_everything(subject: Subject) -> Iterator[Found]:
    """Every document sentence relevant.

    Long documents rarely hold relevant sentences only: check that the judge distinguished between
    sentences.
    """
    if subject.relevant.issuperset(subject.documents):
        yield Found(f"All {len(subject.documents)} document sentences are called relevant.")


@check(
    "special_strings_only",
    severity="suspicion",
    applies=lambda subject: len(_claiming(subject, subject.supported)) >= FEWEST_SUPPORTED,
    weight=0.1,
)
def special_strings_only(subject: Subject) -> Iterator[Found]:
    """Mostly supported by special strings.

    A string such as 'general' stands for sentences that need no document; where it carries most of
    a response of three sentences or more, nothing was checked.
    """
    supported = _claiming(subject, subject.supported)
    special = [
        entry.response_sentence_key
        for entry in subject.supported
        if entry.response_sentence_key in supported
        if entry.supporting_sentence_keys and not subject.named(entry)
    ]
    if 2 * len(special) > len(supported):
        yield Found(
            f"{len(special)} of {len(supported)} supported sentences name no document sentence as "
            "support.",
            subject.in_order(special),
        )


FEWEST_SUPPORTED = 3
"""Supported sentences below which special strings may be right for most of them."""


MARGIN = 0.1
"""Relative distance to the threshold within which a score is undecided."""
HALF = 0.5
"""Default threshold: of shares of votes, and of judges without a threshold of their own."""
LEFT_OPEN = "fully_supported_null"
"""Count of verdicts that were null in the source and derived from the supporting keys."""


@check("contract_broken", severity="suspicion")
def contract_broken(subject: Subject) -> Iterator[Found]:
    """Keys or verdicts that break the contract.

    The answer named sentences that were never shown, or left some out; an importer keeps such
    labels, and metrics count what is left.
    """
    broken: Counter[str] = Counter(violation.kind for violation in subject.record.violations)
    if broken:
        keys = (key for violation in subject.record.violations for key in violation.keys)
        known = subject.in_order(key for key in keys if key in subject.texts)
        yield Found(f"The answer broke the contract: {_counted(broken)}.", known)


@check("answer_repaired", severity="note")
def answer_repaired(subject: Subject) -> Iterator[Found]:
    """Answer repaired.

    The judge wrote keys in another spelling or twice, or praised a response without content; many
    repairs: a careless model.
    """
    repairs = {
        name: count for name, count in subject.record.normalised.items() if name != LEFT_OPEN
    }
    if repairs:
        yield Found(f"Repaired in the answer: {_counted(repairs)}.")


@check("verdict_left_open", severity="note")
def verdict_left_open(subject: Subject) -> Iterator[Found]:
    """Verdicts that were left open.

    The source holds no verdict on these sentences; they count as supported because keys are listed
    for them, as for partial support.
    """
    count = subject.record.normalised.get(LEFT_OPEN, 0)
    if count:
        verdicts = plural(len(subject.judged), "verdict")
        yield Found(
            f"The source left {count} of {verdicts} open; {'it was' if count == 1 else 'they were'}"
            " read off the supporting keys."
        )


@check(
    "undecided_score",
    severity="note",
    applies=lambda subject: bool(subject.record.scores and subject.record.scores.support),
    weight=0.2,
)
def undecided_score(subject: Subject) -> Iterator[Found]:
    """A verdict hangs by little.

    The score of a sentence lies next to the threshold, or the votes on it were nearly even: a
    little more or less, and the verdict were the other.
    """
    given = subject.record.scores.support if subject.record.scores else {}
    scores = {key: value for key, value in given.items() if key in subject.claims}
    made = subject.record
    chosen = {**made.reply.thresholds, **made.signature.thresholds}
    threshold = chosen.get("support", HALF)
    near = [k for k, v in scores.items() if abs(v - threshold) <= MARGIN * abs(threshold)]
    if near:
        yield Found(
            f"The support of {len(near)} of {plural(len(scores), 'sentence')} lies within "
            f"{MARGIN:.0%} of the threshold {threshold:g}.",
            subject.in_order(near),
        )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
