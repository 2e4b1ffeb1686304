"""Commands about label stores themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labeler.cli.running import SOME_FAILED
from labeler.cli.terminal import notify, plural
from labeler.data.options import DEFAULT_STORE


def merge(
    sources: Annotated[
        list[str], typer.Argument(help="Store folders, or folders that contain stores.")
    ],
    *,
    into: Annotated[str, typer.Option(help="Folder of the merged store.")],
) -> int:
    """Copy several stores into one; labels in it stay as they are."""
    from labeler.store.maintenance import merge_stores

    merged = merge_stores(sources, into)
    notify(
        f"{into}: {plural(merged.stores, 'store')} read, {merged.new} new, "
        f"{merged.present} there already, "
        f"{merged.failures} failures"
    )
    for error in merged.rescued:
        notify(f"  copied under its own key: {error}")
    for id in merged.differing:  # noqa: A001 - the field's name
        notify(f"  {id!r} is there with another label, which was kept")
    for error in merged.damaged:
        notify(f"  not copied: {error}")
    for kept in _corrections_of(sources):
        notify(
            f"  not copied: {kept} holds what people said; add its lines to {Path(into, kept.name)}"
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
        kinds = [f"{count} {kind}" for kind, count in sorted(found.sound.items())]
        notify(
            f"{folder}: sound: {', '.join(kinds) or 'none'}; damaged keys: "
            f"{len(found.damaged_keys)}; damaged: {len(found.damaged)}; "
            f"stored twice: {len(found.repeated)}"
        )
        for error in found.damaged_keys + found.damaged:
            notify(f"  {error}")
        for id in found.repeated:  # noqa: A001 - the field's name
            notify(f"  {id!r} is stored twice: it was bought again after its key was damaged")
        damaged |= bool(found.damaged_keys or found.damaged)
    return SOME_FAILED if damaged else 0


def _corrections_of(sources: list[str]) -> list[Path]:
    """Return the corrections files of merged stores."""
    from labeler.data.corrections.file import corrections_path
    from labeler.store.maintenance import stores_in

    found = dict.fromkeys(store for source in sources for store in stores_in(source))
    files = [corrections_path(store) for store in found]
    return [file for file in files if file.is_file()]
