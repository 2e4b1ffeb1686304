"""Rows of Hugging Face data sets: saved folders, and data sets on the hub."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labeler.data.formats import HUB, Raw, plain_row
from labeler.errors import UsageError
from labeler.version import install_command

_STATE = "state.json"
_SPLITS = "dataset_dict.json"
_FORM = "hf:OWNER/NAME, hf:OWNER/NAME/CONFIG or hf:OWNER/NAME/CONFIG:SPLIT"
_ADDRESS = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:/([\w.-]+))?(?::([\w.-]+))?")


def read_saved(name: str) -> Iterator[Raw]:
    """Read the rows of a folder written by ``save_to_disk``, without the Hugging Face library.

    Raises:
        UsageError: the folder holds no saved data set, or one with several splits.
    """
    from labeler.data.formats.arrow_files import read_arrow_files  # noqa: PLC0415 - loads pyarrow

    return read_arrow_files(name, _data_files(Path(name)))


def _data_files(folder: Path) -> list[str]:
    if (folder / _SPLITS).is_file():
        splits = _object(folder / _SPLITS).get("splits")
        splits = [one for one in splits if isinstance(one, str)] if isinstance(splits, list) else []
        shown = " or ".join(str(folder / split) for split in splits) or "one of its folders"
        raise UsageError(f"{folder} holds several splits: name one, {shown:.200}")
    if not (folder / _STATE).is_file():
        raise UsageError(
            f"{folder} is a folder without {_STATE}: name files of rows, such as "
            f"{_some_file(folder)}, or a folder that save_to_disk of the Hugging Face library wrote"
        )
    entries = _object(folder / _STATE).get("_data_files")
    given = entries if isinstance(entries, list) else []
    files = [entry.get("filename") for entry in given if isinstance(entry, dict)]
    for file in files:
        if not isinstance(file, str) or Path(file).name != file or file in {"", ".", ".."}:
            raise UsageError(f"{folder / _STATE} names {file!r:.80}, which is not next to it")
    return [str(folder / str(file)) for file in files]


def _some_file(folder: Path) -> Path:
    """Return a readable file in a folder, or an example of a name."""
    kinds = (".jsonl", ".parquet", ".csv", ".json")
    found = sorted(p for p in folder.glob("*") if p.suffix in kinds) if folder.is_dir() else []
    return found[0] if found else folder / "rows.jsonl"


def _object(path: Path) -> dict[str, Any]:
    try:
        value: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {path}: {error}; save the data set again") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} holds no object; save the data set again")
    return value


def read_hub(name: str) -> Iterator[Raw]:
    """Read the rows of a data set on the hub, with the Hugging Face library and its cache.

    Raises:
        UsageError: the library is not installed, or the data set or split does not exist.
    """
    for number, row in enumerate(_loaded(name), start=1):
        yield Raw(f"{name}:row {number}", plain_row(row))


def _loaded(name: str) -> Any:  # noqa: ANN401 - the library need not be installed
    address = _ADDRESS.fullmatch(name)
    if not address:
        raise UsageError(f"{name!r:.120} names no data set of the hub: write {_FORM}")
    try:
        import datasets  # noqa: PLC0415 - slow to load, rarely needed
    except ImportError as error:
        raise UsageError(
            f"{name} needs the package datasets, which is not installed: {install_command('hub')}; "
            f"or save the data set elsewhere and name its folder without {HUB}"
        ) from error
    repository, config, split = address.groups()
    try:
        found = datasets.load_dataset(repository, config, split=split)
    except Exception as error:  # the library forwards exceptions of many others
        raise UsageError(
            f"cannot load {name}: {type(error).__name__}: {str(error)[:300]}; write {_FORM}"
        ) from error
    if split is None and isinstance(found, dict):
        if len(found) != 1:
            have = ", ".join(f"{name}:{one}" for one in found)
            raise UsageError(f"{name} has several splits: name one, as {have:.200}")
        return next(iter(found.values()))
    return found
