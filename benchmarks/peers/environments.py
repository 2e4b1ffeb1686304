"""Virtual environments of the peers, created once in a cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

_NEEDED_BYTES = 2 * 10**9
"""Free space to begin with: most take less than 1 GB, pip's own files not counted."""
_LARGE = {"ragchecker": 14 * 10**9}
"""Free space for those that take more."""
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
    return _environment(
        peer, pins.read_bytes(), cache, ["--no-deps", "-r", str(pins)], _LARGE.get(peer)
    )


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


def _environment(
    name: str, pinned: bytes, cache: Path, wanted: list[str], needed: int | None = None
) -> Path:
    if cache.resolve().is_relative_to(ROOT):
        raise OSError(f"{cache} is in the repository; name a folder outside it")
    folder = cache / f"{name}-{hashlib.sha256(pinned).hexdigest()[:12]}"
    python, whole = folder / "bin" / "python", folder / "installed"
    if not whole.exists():
        cache.mkdir(parents=True, exist_ok=True)
        free, needed = shutil.disk_usage(cache).free, needed or _NEEDED_BYTES
        if free < needed:
            raise OSError(f"{cache} has {free / 1e9:.1f} GB left; {needed / 1e9:g} needed")
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
