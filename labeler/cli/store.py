"""Commands about label stores themselves."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sized
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler import api
from labeler.cli import options
from labeler.cli.options import check_label_target
from labeler.cli.terminal import SOME_FAILED, notify
from labeler.data.corrections.file import CorrectionsFile, corrections_path
from labeler.data.label_files import SHARDS, is_store
from labeler.data.lines import rewrite_without
from labeler.data.options import DEFAULT_STORE, ExampleOptions
from labeler.data.rows import RowStream
from labeler.errors import UsageError
from labeler.extensions import call_declared, every
from labeler.judges.prompting import (
    DECISIONS,
    DEFAULT_PROMPT,
    Prompt,
    is_retrieval_prompt,
    load_prompt,
    prompt_file,
    read_instructions,
    read_prompt,
)
from labeler.labeling.options import TaskOptions
from labeler.labels.answers import DEFAULT_PROFILE, family_of, version_of
from labeler.labels.record import LabelFailure
from labeler.labels.signature import read_resource, resource_names, retrieval_example
from labeler.sentences.characters import visible
from labeler.sentences.display import are, plural
from labeler.sentences.splitting import SPLITTERS, key_example

if TYPE_CHECKING:
    from labeler.store.database import Database
    from labeler.store.maintenance import Found, RowSelection


def merge(
    sources: Annotated[
        list[str], typer.Argument(help="Store folders, or folders that contain stores.")
    ],
    *,
    into: Annotated[str, typer.Option(help="Folder of the merged store.")],
) -> int:
    """Copy several stores into one; labels in it stay as they are."""
    from labeler.labeling.cache import pending_labels
    from labeler.store.maintenance import merge_stores, stores_in

    stores = stores_in(*sources)
    merged = merge_stores(stores, into)
    notify(
        f"{plural(merged.new, 'record')} of {plural(len(stores), 'store')} copied into {into}, "
        f"{merged.present} there already, {plural(merged.failures, 'failure')}"
    )
    for error in merged.misplaced:
        notify(f"  copied under its own key: {error}")
    for id in merged.differing:  # noqa: A001 - the field's name
        notify(f"  {id!r} is there with another label, which was kept")
    for error in merged.damaged:
        notify(f"  not copied: {error}")
    for store in stores:
        if (kept := corrections_path(store)).is_file():
            where = Path(into, kept.name)
            notify(f"  not copied: {kept} holds what people said; add its lines to {where}")
        pending: list[object] = [*pending_labels(store).values()]
        if coming := sum(len(one) for one in pending if isinstance(one, Sized)):
            notify(
                f"  not copied: {plural(coming, 'label')} of {store} in open batches: collect them "
                "there, then merge again; in another store they would be bought again"
            )
    return SOME_FAILED if merged.damaged else 0


def verify(
    store: Annotated[
        str, typer.Argument(help="Store folder, or a folder that contains stores.")
    ] = DEFAULT_STORE,
) -> int:
    """Read every record, and report damaged ones."""
    from labeler.store.maintenance import stores_in, verify_store

    damaged = False
    for folder in stores_in(store):
        found = verify_store(folder)
        kinds = [f"{count:,} of kind {kind!r}" for kind, count in sorted(found.sound.items())]
        broken = len(found.misplaced) + len(found.damaged)
        total = plural(broken + sum(found.sound.values()), "record")
        state = f"{broken:,} of {total} {are(broken)} damaged" if broken else "no damage"
        notify(f"{folder}: {state} (sound: {', '.join(kinds) or 'none'})")
        for error in found.misplaced + found.damaged:
            notify(f"  {error}")
        damaged |= bool(found.misplaced or found.damaged)
    return SOME_FAILED if damaged else 0


Stores = list[tuple[Path, "Database", "Found"]]


def delete(
    store: Annotated[str, typer.Argument(help="Folder of the label store.")],
    *,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Row id; repeatable.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="FIELD=VALUE of the metadata; repeatable, all must match."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report counts without deleting.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> int:
    """Delete rows from a store, with every trace of their text."""
    from labeler.evidence.copies import COPIES
    from labeler.store.database import Database
    from labeler.store.maintenance import RowSelection, find_rows

    selection = RowSelection(frozenset(ids or ()), dict(map(_condition, where or ())))
    if not selection.ids and not selection.where:
        raise UsageError("name rows to delete: --id ID or --where FIELD=VALUE")
    folders, copies = _stores(Path(store)), Path(store, COPIES)
    with ExitStack() as opened:
        alone = {
            one: opened.enter_context(closing(Database(one.absolute(), "alone")))
            for one in (*folders, *filter(is_store, [copies]))
        }
        stores = [(one, alone[one], find_rows(alone[one], selection)) for one in folders]
        counts = _delete_traces(stores, selection, dry_run=True)
        listed = ", ".join(plural(n, kind) for kind, n in counts.items())
        notify(f"{store}: {listed} to delete" if listed else f"{store}: no match")
        known = set[str]().union(*(found.ids for _, _, found in stores))
        if missing := sorted(selection.ids - known):
            notify(f"  no label or failure has id {', '.join(map(repr, missing))}")
        unreadable = sum(len(found.damaged) for _, _, found in stores)
        if unreadable:
            notify(f"  damaged rows, which may be of these ids: {unreadable}; see store verify")
        if not dry_run:
            if counts and not yes and not _confirmed():
                notify("nothing was deleted")
                return 0
            _delete_traces(stores, selection, dry_run=False)
            for _, file, found in stores:
                file.delete(found.rowids)
                file.wipe()
            if counts and copies in alone:  # copies of one record hold texts of others
                shutil.rmtree(copies)
                notify(f"{copies}: answers of exams and anchors, which may hold their texts")
            if counts:
                notify("deleted")
    return SOME_FAILED if unreadable else 0


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can confirm the deletion here: add --yes; nothing was deleted")
    try:
        return typer.confirm("Delete them for good?", err=True)
    except typer.Abort:
        return False


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--where {text!r}: write FIELD=VALUE, such as --where user=42")
    return name, value


def _stores(store: Path) -> list[Path]:
    """Return the store and the stores of its shards."""
    found = [store] if is_store(store) else []
    if (store / SHARDS).is_dir():
        found += filter(is_store, sorted((store / SHARDS).iterdir()))
    if not found:
        raise UsageError(f"there is no label store in {store}; name the folder of one")
    return found


def _delete_traces(stores: Stores, selection: RowSelection, *, dry_run: bool) -> Counter[str]:
    """Delete everything of the selected rows but the rows, which name the rest; return counts.

    An interrupted deletion can thus be repeated.
    """
    counts = Counter[str]()
    for folder, _, found in stores:
        counts.update(found.kinds)
        for name, delete in every("deletions").items():
            given = delete, folder, selection, found.keys
            deleted = call_declared("deletions", name, *given, dry_run=dry_run)
            counts[f"{name} request"] += deleted or 0
        corrections = CorrectionsFile(corrections_path(folder))
        said = [
            event
            for event in corrections.read().events
            if event.key in found.keys or selection.selects(event.id, {})
        ]
        counts["correction"] += len(said)
        if said and not dry_run:
            keys = {event.key.encode() for event in said}
            corrections.rewrite(
                lambda path, keys=keys: rewrite_without(  # type: ignore[misc]
                    path, lambda line: any(key in line for key in keys)
                )
            )
    return +counts


def import_(
    file: Annotated[str, typer.Argument(help="A label file, such as export writes.")],
    *,
    store: options.Store = ".labeler",
) -> None:
    """Import the records of a label file into a store."""
    from labeler.store import maintenance

    imported = maintenance.import_labels(api.stored_outcomes(file), store)
    notify(
        f"{plural(imported.new, 'record')} of {file} imported into {store}, "
        f"{imported.present} there already"
    )
    for id in imported.differing:  # noqa: A001 - the field's name
        notify(f"  {id!r} is there with another label, which was kept")


def export(*, output: options.Output = "-", store: options.Store = ".labeler") -> None:
    """Export every record of a store to a label file."""
    check_label_target([store], output)
    written = api.write_labels(api.stored_outcomes(store), output)
    notify(f"{plural(written, 'record')} exported from {store}")


def prompt(
    name: Annotated[
        str | None, typer.Argument(help="Prompt name, such as trace/v1, or a file of your own.")
    ] = None,
    *,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print a JSON Schema instead, or list all.")
    ] = False,
    instructions: Annotated[str | None, options.parameter(TaskOptions, "instructions")] = None,
    rows: Annotated[
        str | None, typer.Option(help="Print the messages for the first row of this file instead.")
    ] = None,
    given: ExampleOptions,
) -> None:
    """Print a prompt, the messages for one row, or a JSON Schema."""
    if rows is None and instructions is None and not (name and prompt_file(name)):
        kind, suffix = ("schemas", ".json") if schema else ("prompts", ".md")
        names = "\n".join([*resource_names(kind, suffix), ""])
        sys.stdout.write(names if name is None else read_resource(kind, name, suffix))
        return
    worded = _worded(name or DEFAULT_PROMPT).with_instructions(read_instructions(instructions))
    if rows is None:
        sys.stdout.write(f"# System\n\n{visible(worded.system_text)}\n\n# User\n\n{worded.user}\n")
        return
    found = next(iter(RowStream(given.open(rows), (), notify))).content
    if isinstance(found, LabelFailure):
        raise UsageError(found.message)
    keyed = key_example(found, SPLITTERS[given.splitter], shows_conversation=True)
    shown = retrieval_example(keyed) if is_retrieval_prompt(worded.name) else keyed
    for message in worded.render(shown):
        sys.stdout.write(f"--- {message['role']}\n{visible(message['content'])}\n")


def _worded(name: str) -> Prompt:
    """Return the prompt of a name or a file."""
    file = prompt_file(name)
    if file is not None:
        return read_prompt(file, DEFAULT_PROFILE)
    if family_of(name) == DECISIONS:
        from labeler.judges.decisions.questions import decision_prompt

        return decision_prompt(f"{DEFAULT_PROFILE}/{version_of(name)}")
    return load_prompt(name if "/" in name else f"{DEFAULT_PROFILE}/{name}")
