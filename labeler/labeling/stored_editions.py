"""Stops a run that names no edition before it buys again what another edition has labeled.

The records say which edition made them: those of a run's first rows, else some others of its store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from labeler.data.first_pass import count_rows
from labeler.data.options import ExampleOptions
from labeler.data.rows import Rows, RowSequence
from labeler.errors import StoreError, UsageError
from labeler.judges.judge import FREE_JUDGES
from labeler.labeling.cache import LabelCache
from labeler.labeling.editions import EDITIONS, OptionsT, edition_in, edition_of, in_edition
from labeler.labeling.modes import LABELS_READ, first_tasks, known_modes
from labeler.labeling.tasks import LabelTasks, TaskFactory
from labeler.labels.record import AnyRecord
from labeler.sentences.example import Example
from labeler.store.memory import MemoryStore

_SAMPLE = 200
"""First rows from which the cost of a run is estimated."""


def require_edition(
    options: OptionsT,
    rows: Rows,
    tasks_of: Callable[[OptionsT], Sequence[TaskFactory]],
    cache: LabelCache,
    *,
    total: int | None = None,
) -> None:
    """Check, before any spend, that a run leaves no labels of another edition behind unasked.

    Judges that cost nothing label again; a notice names the option that takes the stored labels.

    Args:
        options: of the run; a named edition or prompt says what is wanted.
        rows: of the run.
        tasks_of: builds the run's task factories from options.
        cache: where labels are looked up.
        total: number of rows, if ``rows`` are only some.

    Raises:
        UsageError: labels of these rows, or all labels of the store, are of another edition.
            Nothing was sent.
    """
    held = held_edition(options, rows, tasks_of, cache)
    if held is None:
        return
    own, factories = edition_of(options), tasks_of(options)
    old, new = (option_of(options, edition) for edition in (held, own))
    if not any(map(_is_paid, factories)):
        cache.notice(
            f"edition {held} labeled these rows before; this judge costs nothing, so edition {own} "
            f"labels them again; {old} takes the stored labels"
        )
        return
    where = getattr(cache.store, "directory", "the store")
    known = _FirstRows(rows, cache).known(tasks_of(in_edition(options, held)))
    is_known = any(known.values())
    stored = "0 calls for what is stored" if is_known else "none is of these rows and options"
    raise UsageError(
        f"{where} has labels of edition {held}, and "
        f"this version labels by edition {own}: nothing was sent. Add {old} to go on with them "
        f"({stored}), or {new} to label again "
        f"({_cost(rows, total, factories)}); Python functions take the same as a keyword"
    )


def held_edition(
    options: OptionsT,
    rows: Rows,
    tasks_of: Callable[[OptionsT], Sequence[TaskFactory]],
    cache: LabelCache,
) -> int | None:
    """Return the edition of stored labels that a run would leave behind without being asked to.

    Args:
        options: as for :func:`require_edition`, and so on.
        rows: of the run.
        tasks_of: builds the run's task factories from options.
        cache: where labels are looked up.

    Returns:
        The edition; ``None`` if the run names its own or finds nothing of another: neither a label
        of a first row that its own edition lacks, nor, without any label of them, a store without
        its own edition.
    """
    if _names_edition(options) or cache.is_new:
        return None
    own = edition_of(options)
    found = _FirstRows(rows, cache)
    known = found.known(tasks_of(options), failed=True)
    if known and all(known.values()):
        return None
    others: dict[int, Sequence[TaskFactory]] = {}
    for edition in EDITIONS.keys() - {own}:
        with suppress(UsageError):  # an option, such as --keys-in-schema, that it does not have
            others[edition] = tasks_of(in_edition(options, edition))
    for edition, factories in others.items():
        others_known = found.known(factories).items()
        if any(is_known and not known.get(mark) for mark, is_known in others_known):
            return edition
    if any(known.values()) or not any(map(_is_paid, tasks_of(options))):
        return None
    held = set(_editions(cache.store))
    return None if own in held else max(held & others.keys(), default=None)


def _names_edition(options: ExampleOptions) -> bool:
    """Return True if nothing is left to the default edition."""
    if options.edition is not None:
        return True
    if hasattr(options, "prompt"):
        return options.prompt is not None
    return options.splitter is not None


def option_of(options: ExampleOptions, edition: int) -> str:
    """Return the option that names an edition, next to the other options."""
    if options.splitter is None:
        return f"--edition {edition}"
    return f"--prompt {EDITIONS[edition].prompts}"


@dataclass(frozen=True)
class _FirstRows:
    """The first rows of a run, which tell for whom its labels were made."""

    rows: Rows
    cache: LabelCache

    def known(
        self, factories: Sequence[TaskFactory], *, failed: bool = False
    ) -> dict[tuple[str, int, str], bool]:
        """Return what a paid judge, or any if none is paid, has answered.

        Args:
            factories: build the tasks.
            failed: whether lasting failures count as answers.

        Returns:
            True or False by row, number of the factory, and kind of the answer.
        """
        store, found = self.cache.store, dict[tuple[str, int, str], bool]()

        def is_known(key: str) -> bool:
            return self.cache.is_known(key) or (failed and store.failure(key) is not None)

        paid = [factory for factory in factories if _is_paid(factory)]
        for number, factory in enumerate(paid or factories):
            for task in first_tasks(factory, self.rows):
                mark = task.example.id, number, task.kind.name
                if not found.get(mark):  # by a window of it
                    found[mark] = any(known_modes([task], is_known).values())
        return found


def _is_paid(factory: TaskFactory) -> bool:
    return factory.judge.spec.judge not in FREE_JUDGES


def _editions(store: Iterable[AnyRecord]) -> Iterator[int]:
    """Yield the edition of some records that may have cost something."""
    with suppress(StoreError):  # a damaged label is reported when its row is needed
        for record in islice(store, LABELS_READ):
            edition = edition_in(record.signature)
            if edition is not None and record.signature.judge not in FREE_JUDGES:
                yield edition


def _cost(rows: Rows, given: int | None, factories: Sequence[TaskFactory]) -> str:
    """Return the number of rows and the expected cost of judging them, for people."""
    from labeler.labeling.estimate import estimate  # noqa: PLC0415 - for runs that stop only
    from labeler.labeling.options import EstimateOptions  # noqa: PLC0415 - with it

    total, dollars = given or count_rows(rows), Decimal(0)
    contents = [row.content for row in islice(rows, _SAMPLE)]
    sample = RowSequence([one for one in contents if isinstance(one, Example)])
    for factory in filter(_is_paid, factories):
        price = getattr(factory.judge, "price", None)
        if not isinstance(factory, LabelTasks) or price is None:
            return f"{total:,} rows, cost unknown"
        found = estimate(sample, factory, MemoryStore(), EstimateOptions(), price=price)
        if found.online is not None:
            dollars += found.online.expected * total / max(1, len(contents))
    return f"{total:,} rows, about ${dollars:,.2f}"
