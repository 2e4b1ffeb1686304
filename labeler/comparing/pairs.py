"""Join two sets of labels by record, for ``compare``, ``agree``, ``diff`` and human labels.

Records are joined by id. The id of a record without one of its own is a digest of its content, so
an edited answer gives it another id: such records are paired by question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from labeler.calculators import Metric
from labeler.calculators.groups import DIFFERS, NO_GROUP, check_column
from labeler.calculators.summary import CountedRows
from labeler.calculators.tally import PARTS
from labeler.comparing.sides import (
    LISTED,
    Choice,
    Kept,
    Side,
    SideOptions,
    quoted,
    read_side,
    with_named_groups,
)
from labeler.data.parsing import is_content_id
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome
from labeler.sentences.display import Brief, are, plural


class QuestionPairs(NamedTuple):
    """Records that are paired by question, for want of ids.

    Attributes:
        names: their ids in A by their ids in B.
        unclear: records of A without a partner, whose question repeats in A or B, or is blank.
    """

    names: Mapping[str, str]
    unclear: int

    def note(self) -> str:
        """Return the number of records that are paired so; empty without any."""
        count = len(self.names)
        return f"{count:,} without an id {are(count)} paired by question" if count else ""

    def warning(self, total: int) -> str:
        """Return the number of records that cannot be paired, and the remedy; empty without any.

        Args:
            total: number of records with a label in A.
        """
        if not self.unclear:
            return ""
        return (
            f"{self.unclear:,} of {total:,} records {are(self.unclear)} not compared, without an "
            "id and with a question that repeats or is blank (label both sides with --id question, "
            "or with another column that names each row)"
        )


def pair_by_question(
    a: Mapping[str, Hashable], b: Mapping[str, Hashable], failed: Collection[str]
) -> QuestionPairs:
    """Pair the records whose ids are digests and stand on one side only.

    A pair has a question that no other such record of its side has.

    Args:
        a: digest of the question by id, of the labels of A; falsy for a blank question.
        b: the same of B.
        failed: ids of the failures of both sides.
    """
    alone = [
        {
            name: question
            for name, question in side.items()
            if name not in other and name not in failed and is_content_id(name)
        }
        for side, other in ((a, b), (b, a))
    ]
    counts = [Counter(side.values()) for side in alone]
    unique = [
        {question: name for name, question in side.items() if question and count[question] == 1}
        for side, count in zip(alone, counts, strict=True)
    ]
    names = {
        name: unique[0][question] for question, name in unique[1].items() if question in unique[0]
    }
    shared = sum(count for question, count in counts[0].items() if question in counts[1])
    return QuestionPairs(names, shared - len(names))


def others_of(parts: str) -> str:
    """Return parts that differ in words: ``other documents and another response``."""
    single = {"question", "response"}
    named = (f"{'another' if part in single else 'other'} {part}" for part in parts.split(" and "))
    return " and ".join(named).replace("_", " ")


SENTENCES = PARTS[:3]
"""Those whose sentences are judged."""

T = TypeVar("T")


class Pair(NamedTuple, Generic[T]):
    """The two labels of one record."""

    id: str
    a: Kept[T]
    b: Kept[T]

    @property
    def differing(self) -> tuple[str, ...]:
        """The :data:`PARTS` that are not the same on both sides."""
        both = zip(PARTS, self.a.digests, self.b.digests, strict=True)
        return tuple(part for part, mine, theirs in both if mine != theirs)

    @property
    def group(self) -> str | None:
        """Value of the grouping column: of both sides, or of the only side with a value."""
        a, b = self.a.group, self.b.group
        if b in {a, NO_GROUP}:
            return a
        return b if a == NO_GROUP else DIFFERS


@dataclass(frozen=True, repr=False)
class PairCounts(Brief):
    """The records of both sides; each is counted once.

    Attributes:
        pairs: labeled on both sides and compared.
        same: pairs with the same question, documents and response.
        unlike: other pairs, by the parts that differ, such as ``documents and response``.
        left_out: labeled on both sides and not compared, by the parts that differ.
        left_out_ids: the first few of these.
        only_a: labeled in A; B does not have the record.
        only_b: labeled in B; A does not have the record.
        failed_a: failed in A and not in B.
        failed_b: failed in B and not in A.
        failed_both: failed in both.
        duplicates: labels of both sides left out because they repeat.
        by_question: the records that are paired by question, as they have no id.
    """

    pairs: int
    same: int
    unlike: dict[str, int]
    left_out: dict[str, int]
    left_out_ids: tuple[str, ...]
    only_a: int
    only_b: int
    failed_a: int
    failed_b: int
    failed_both: int
    duplicates: int = 0
    by_question: QuestionPairs = field(default_factory=lambda: QuestionPairs({}, 0))

    @property
    def warning(self) -> str:
        """The records that cannot be paired, and the remedy; empty without any."""
        return self.by_question.warning(self.pairs + sum(self.left_out.values()) + self.only_a)

    def in_words(self, b: str = "B") -> str:
        """Return the pairs, and the records that are none: ``60 records in both, 3 only in A``.

        Args:
            b: name of the second side.
        """
        both = plural(self.pairs, "record")
        others = (
            (self.only_a, "only in A"),
            (self.only_b, f"only in {b}"),
            (self.failed_a, "failed in A"),
            (self.failed_b, f"failed in {b}"),
            (self.failed_both, "failed in both"),
            *((count, f"with {others_of(parts)} in {b}") for parts, count in self.left_out.items()),
        )
        found = [f"{both} in both", *(f"{n:,} {what}" for n, what in others if n)]
        return ", ".join(filter(None, [*found, self.by_question.note()]))

    def others_as_json(self) -> dict[str, Any]:
        """Return the published counts of the records that have no two labels."""
        names = ("only_a", "only_b", "failed_a", "failed_b", "failed_both", "duplicates")
        by_question = {"by_question": len(self.by_question.names)}
        return {name: getattr(self, name) for name in names} | by_question


@dataclass(frozen=True, repr=False)
class Pairs(Brief, Generic[T]):
    """The records that are compared, in A's order.

    Attributes:
        a: the labels to start from.
        b: the labels that are compared with them.
        pairs: the two labels of each record.
        counts: the numbers of pairs and of other records.
    """

    a: Side[T]
    b: Side[T]
    pairs: tuple[Pair[T], ...] = field(repr=False)
    counts: PairCounts

    def __iter__(self) -> Iterator[Pair[T]]:
        return iter(self.pairs)

    def measurable(self, metrics: Iterable[Metric]) -> list[Metric]:
        """Return the metrics whose fields some label of each side has."""
        sides = [{kept.output for kept in side.labels.values()} for side in (self.a, self.b)]
        return [
            metric
            for metric in metrics
            if all(any(issubclass(o, metric.profile.output) for o in one) for one in sides)
        ]


def _joined(a: Side[T], b: Side[T], same: tuple[str, ...]) -> Pairs[T]:
    """Pair the records that both sides have a label of, with the same parts."""
    asked, again = ({name: kept.question for name, kept in one.labels.items()} for one in (a, b))
    by_question = pair_by_question(asked, again, {*a.failed, *b.failed})
    b = b.renamed(by_question.names)
    pairs: list[Pair[T]] = []
    left_out: dict[str, str] = {}
    unlike: Counter[str] = Counter()
    for name, kept in a.labels.items():
        if name not in b.labels:
            continue
        pair = Pair(name, kept, b.labels[name])
        if parts := [part for part in pair.differing if part in same]:
            left_out[name] = " and ".join(parts)
        else:
            pairs.append(pair)
            unlike[" and ".join(pair.differing)] += 1
    counts = PairCounts(
        pairs=len(pairs),
        same=unlike.pop("", 0),
        unlike=dict(unlike),
        left_out=dict(Counter(left_out.values()).most_common()),
        left_out_ids=tuple(islice(left_out, LISTED)),
        only_a=len(a.labels.keys() - b.labels.keys() - b.failed.keys()),
        only_b=len(b.labels.keys() - a.labels.keys() - a.failed.keys()),
        failed_a=len(a.failed.keys() - b.failed.keys()),
        failed_b=len(b.failed.keys() - a.failed.keys()),
        failed_both=len(a.failed.keys() & b.failed.keys()),
        duplicates=a.repeated + b.repeated,
        by_question=by_question,
    )
    if not pairs:
        raise UsageError(_no_pairs(a, b, counts))
    return Pairs(a, b, tuple(pairs), counts)


def read_pairs(
    runs: Sequence[Iterable[AnyOutcome] | CountedRows],
    keep: tuple[Callable[[Any], T], Callable[[Any], T]],
    options: SideOptions,
    *,
    names: Sequence[str],
    metrics: Sequence[Metric] | None = None,
    same: tuple[str, ...] = SENTENCES,
    mixed: bool = True,
) -> list[Pairs[T]]:
    """Read sets of labels and pair the records of the first, A, with each other set's, B.

    Records without an id are paired by content, else by question. See :func:`read_side`.

    Args:
        runs: outcomes to start from, and one or several others that are compared with them.
        keep: returns the facts of a label of A and of a B that are kept.
        options: the labels of both sides, and their groups.
        names: names of the sides in errors and results.
        metrics: metrics to measure; see :func:`read_side`.
        same: parts that must be the same on both sides; other records are left out.
        mixed: whether labels of several signatures may be taken together without a choice.

    Raises:
        UsageError: a side has no label that fits the choice, or several of a record; there is no
            pair; or no label has the column.
    """
    if len(names) != len(runs):
        raise UsageError(f"{len(names)} names for {len(runs)} sets of labels: give one for each")
    choices = [Choice(name, options.signature, options.trial) for name in names]
    a, *others = with_named_groups(
        *(
            read_side(run, keep[place > 0], one, metrics=metrics, by=options.by, mixed=mixed)
            for place, (run, one) in enumerate(zip(runs, choices, strict=True))
        )
    )
    found = [_joined(a, b, same) for b in others]
    for b in others:
        check_column(options.by, a.columns | b.columns, "to group by")
    return found


def _no_pairs(a: Side[T], b: Side[T], counts: PairCounts) -> str:
    if counts.left_out:
        total = sum(counts.left_out.values())
        differing = ", ".join(f"{count} in {parts}" for parts, count in counts.left_out.items())
        message = (
            f"{a.name} and {b.name} share {plural(total, 'labeled id')} "
            f"({quoted(counts.left_out_ids, total)}), but under each of them the sentences differ "
            f"({differing}), or another splitter cut them: give both sides the same rows under the "
            "same ids (--id)"
        )
        if all("question" in parts for parts in counts.left_out):
            return message
        others = "labeler compare can compare the metrics of different documents and responses"
        return f"{message}; {others}"
    unclear = f"{counts.warning}; " if counts.warning else ""
    return (
        f"{unclear}{a.name} and {b.name} have no labeled record in common: "
        f"{a.name} has {a.summary()}, {b.name} has {b.summary()}; "
        "records are joined by id: give both sides the same ids (--id)"
    )
