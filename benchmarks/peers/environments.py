"""Virtual environments of the peers, created once in a cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import ROOT, ServerProcess, write_rows

HERE = Path(__file__).parent

_NEEDED_BYTES = 2 * 10**9
"""Free space to begin with: most take less than 1 GB, pip's own files not counted."""
_DISTRIBUTIONS = {"trulens": "trulens-core", "ragchecker_formulas": "ragchecker"}
"""Where the package that is named for a tool is not its core."""
_TOOLS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
"""What every environment has of its own."""
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there: what would leave this machine fails at once."""


def cache_folder() -> Path:
    """Where environments are kept unless another folder is named."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rag-labeler-peers"


def interpreter(peer: str, cache: Path) -> Path:
    """The Python that has a peer, which is installed if need be; takes minutes the first time.

    Args:
        peer: ``ragas`` or ``deepeval``, say; ``peer.txt`` next to this file pins what is installed.
        cache: a folder outside the repository.

    Raises:
        OSError: the folder is in the repository, or lacks space.
        subprocess.CalledProcessError: pip failed.
    """
    pins = HERE / f"{peer}.txt"
    return _environment(peer, pins.read_bytes(), cache, ["--no-deps", "-r", str(pins)])


def own_interpreter(cache: Path) -> Path:
    """The Python that has labeler as this repository holds it, installed as the README says.

    Raises:
        OSError: the folder is in the repository, or lacks space.
        subprocess.CalledProcessError: pip failed.
    """
    project, pins = ROOT / "pyproject.toml", ROOT / "constraints.txt"
    pinned = project.read_bytes() + pins.read_bytes()
    python = _environment("labeler", pinned, cache, ["-c", str(pins), str(ROOT)])
    present = python.parent.parent / "source"
    if not present.exists() or present.read_text() != _source():
        _pip(python, ["--no-deps", "--force-reinstall", str(ROOT)])
        present.write_text(_source())
    return python


def _source() -> str:
    """A digest of all that labeler's wheel is made of."""
    folders = (ROOT / name for name in ("labeler", "prompts", "schemas"))
    files = (file for folder in folders for file in folder.rglob("*") if file.suffix != ".pyc")
    whole = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file()):
        whole.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return whole.hexdigest()


def _environment(name: str, pinned: bytes, cache: Path, wanted: list[str]) -> Path:
    if cache.resolve().is_relative_to(ROOT):
        raise OSError(f"{cache} is in the repository; name a folder outside it")
    folder = cache / f"{name}-{hashlib.sha256(pinned).hexdigest()[:12]}"
    python, whole = folder / "bin" / "python", folder / "installed"
    if not whole.exists():
        cache.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(cache).free) < _NEEDED_BYTES:
            raise OSError(f"{cache} has {free / 1e9:.1f} GB left; {_NEEDED_BYTES / 1e9:g} needed")
        venv.create(folder, with_pip=True, clear=True)
        _pip(python, wanted)
        whole.touch()
    return python


def _pip(python: Path, wanted: list[str]) -> None:
    install = [str(python), "-m", "pip", "install", "--quiet", *wanted]
    subprocess.run(install, check=True, capture_output=True, text=True)


def version(peer: str, name: str | None = None) -> str:
    """The version of a peer that is pinned, or of another package next to it."""
    name = name or _DISTRIBUTIONS.get(peer, peer)
    lines = (HERE / f"{peer}.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{name}=="))


def size(python: Path) -> tuple[float, int]:
    """Megabytes and packages of an environment, without its tools and without byte code."""
    (packages,) = (python.parent.parent / "lib").glob("python*/site-packages")
    files = (
        file
        for folder in packages.iterdir()
        if not folder.name.startswith(_TOOLS)
        for file in (folder.rglob("*") if folder.is_dir() else [folder])
    )
    taken = sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
    infos = [one.name for one in packages.glob("*.dist-info") if not one.name.startswith(_TOOLS)]
    return taken / 1e6, len(infos)


def quiet(home: Path) -> Mapping[str, str]:
    """The environment of a peer's process: nothing of ours, no telemetry, nobody to reach.

    Args:
        home: where it may leave its files.
    """
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {
        **dict.fromkeys(proxies, _NOWHERE),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": tempfile.gettempdir(),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "DO_NOT_TRACK": "1",
        "RAGAS_DO_NOT_TRACK": "true",
        "LANGCHAIN_TRACING_V2": "false",
        "LANGSMITH_TRACING": "false",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "DEEPEVAL_DISABLE_DOTENV": "1",
        "CONFIDENT_OPEN_BROWSER": "NO",
    }


Json = dict[str, Any]
_LONGEST_RUN = 1_800.0
"""Seconds after which a run is given up."""


def run_peer(
    peer: str, python: Path, rows: Sequence[Json], server: ServerProcess, **options: object
) -> tuple[Json, list[Json]]:
    """Run a tool's script in the working directory, while a server runs; what it took, and results.

    Args:
        peer: its script is ``PEER_run.py`` next to this file.
        python: the interpreter that has it.
        rows: the records.
        server: the server that it asks.
        options: of the script; ``True`` for one without a value, ``home`` for its directory.
    """
    home = Path(str(options.pop("home")))
    records, out = write_rows(home / "records.jsonl", rows), home / "out.jsonl"
    with server:
        given = {"url": server.url, "records": records, "out": out, **options}
        words = [[f"--{k}"] if v is True else [f"--{k}", str(v)] for k, v in given.items()]
        subprocess.run(
            [str(python), str(HERE / f"{peer}_run.py"), *(word for pair in words for word in pair)],
            cwd=home,
            env={**quiet(home), "PYTHONPATH": str(HERE.parent)},
            capture_output=True,
            check=True,
            text=True,
            timeout=_LONGEST_RUN,
        )
    whole, *results = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    return whole, results


def said_by(error: Exception) -> str:
    """Return the last line of a failed program's errors, or the name of the error."""
    said = str(getattr(error, "stderr", None) or error).strip().splitlines()
    return said[-1] if said else type(error).__name__
