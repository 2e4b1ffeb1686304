"""Reading labels needs no network and runs no code that was stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"

WATCHED = """
import sys
seen = []
def watch(event, args):
    if event.startswith(("socket.", "pickle.", "subprocess.", "os.exec", "os.system")):
        seen.append(event)
sys.addaudithook(watch)
import labeler.api, labeler.calculators, labeler.cli, labeler.cli.reading
import labeler.judges.embedded.judge
import labeler.sentences.splitting.general, labeler.store.disk
sys.argv = ["labeler", *sys.argv[1:]]
del seen[:]
code = labeler.cli.run()
print("SEEN", sorted(set(seen)), code, file=sys.stderr)
"""


def watched(folder: Path, *arguments: object) -> str:
    """Run the command under an audit hook; what it saw and the exit code."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.splitlines()[-1]


def test_the_embedded_judge_connects_to_nothing(tmp_path: Path) -> None:
    """Its event loop has a socket pair of its own, and nothing else."""
    seen = watched(tmp_path, "label", EXAMPLES, "--judge", "embedded", "-o", "labels.jsonl")
    assert "connect" not in seen
    assert "getaddrinfo" not in seen
    assert "pickle" not in seen
    assert seen.endswith(" 0")


@pytest.mark.parametrize("labels", ["labels.jsonl", ".labeler"])
def test_reading_labels_touches_no_socket_and_no_pickle(tmp_path: Path, labels: str) -> None:
    """From a label file and from a store alike."""
    watched(tmp_path, "label", EXAMPLES, "--judge", "embedded", "-o", "labels.jsonl")
    assert watched(tmp_path, "metrics", labels, "--metrics", "all") == "SEEN [] 0"
    assert watched(tmp_path, "show", labels, "log-rotation") == "SEEN [] 0"
