"""Virtual environments for the peers, made once and kept under a cache folder."""

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
"""Free space to begin with: the larger of the two takes 0.8 GB, pip's own files beside it."""
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there: what would leave this machine fails at once."""


def cache_folder() -> Path:
    """Where environments are kept unless another folder is named."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rag-labeler-peers"


def interpreter(peer: str, cache: Path) -> Path:
    """The Python that has a peer, which is installed if need be; takes minutes the first time.

    Args:
        peer: ``ragas`` or ``deepeval``; ``peer.txt`` beside this file pins what is installed.
        cache: a folder outside the repository.

    Raises:
        OSError: the folder is in the repository, or lacks space.
        subprocess.CalledProcessError: pip failed.
    """
    if cache.resolve().is_relative_to(ROOT):
        raise OSError(f"{cache} is in the repository; name a folder outside it")
    pins = HERE / f"{peer}.txt"
    folder = cache / f"{peer}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    python, whole = folder / "bin" / "python", folder / "installed"
    if not whole.exists():
        cache.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(cache).free
        if free < _NEEDED_BYTES:
            raise OSError(f"{cache} has {free / 1e9:.1f} GB left; {_NEEDED_BYTES / 1e9:g} needed")
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(pins)]
        subprocess.run(install, check=True, capture_output=True, text=True)  # noqa: S603
        whole.touch()
    return python


def version(peer: str) -> str:
    """The version of a peer that is pinned."""
    lines = (HERE / f"{peer}.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{peer}=="))


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
