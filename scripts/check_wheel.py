"""Build the wheel and use it in a clean environment without development packages.

    python scripts/check_wheel.py [ENVIRONMENT]

By default the environment is made here. A given one has the declared packages already, and no
others: CI keeps that of the README's first command.

What only a wheel can get wrong is checked: that prompts and schemas are inside and nothing else
leaks out, that no undeclared package is needed, that the command starts and does its job.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

READ_EVERYTHING = """
import sys
from labeler.judges.prompting import load_prompt, prompt_parts
from labeler.labels.signature import read_resource, resource_names
from labeler.labels.signature import load_schema
prompts, schemas = resource_names("prompts", ".md"), resource_names("schemas", ".json")
assert prompts and schemas, (prompts, schemas)
for name in prompts: assert all(prompt_parts(name, read_resource("prompts", name, ".md")))
for name in schemas: assert read_resource("schemas", name, ".json")
load_prompt().artifact, load_schema().artifact
print("read from the wheel:", *prompts, *schemas)

import tomllib
from labeler.errors import LabelerError
from labeler.extensions import load, offered
declared = tomllib.loads(open(sys.argv[1]).read())["project"]["entry-points"]
for group, own in declared.items():
    kind = group.partition(".")[2]
    assert {name.partition(" ")[0] for name in own} == offered(kind).keys(), group
    for name in offered(kind):
        try: load(kind, name, object)
        except LabelerError as missing: assert ".whl[" in str(missing), missing  # names its extra
print("entry points of the wheel:", sum(map(len, declared.values())), "in", len(declared), "groups")
"""


_OPTIONAL = ["score", "--help"]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command away from the checkout and return what it prints."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """Build a wheel by way of the source distribution, as a release would."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """The wheel brings one package and its metadata, and installs nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    packages = {top for top in tops if not top.endswith(".dist-info")}
    if packages != {"labeler"}:
        sys.exit(f"the wheel has {sorted(packages)} at its top, not labeler alone")


def main() -> None:
    """Build, install, and try."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = build(folder)
        check_contents(wheel)
        home = Path(sys.argv[1]).absolute() if sys.argv[1:] else folder / "venv"
        options: tuple[str | Path, ...] = ("--no-deps", "--force-reinstall")
        if not sys.argv[1:]:
            venv.create(home, with_pip=False)
            options = ("-c", ROOT / "constraints.txt")
        python, command = home / "bin" / "python", home / "bin" / "labeler"
        pip = (sys.executable, "-m", "pip", "--python", python)
        run(*pip, "install", "-q", *options, wheel, cwd=folder)
        run(*pip, "check", cwd=folder)
        print(run(python, "-c", READ_EVERYTHING, ROOT / "pyproject.toml", cwd=folder).strip())
        for arguments in (
            ["--help"],
            ["--version"],
            ["prompt", "--schema"],
            ["prompt", "trace/v1"],
            _OPTIONAL,
        ):
            run(command, *arguments, cwd=folder)
        rows, labels = ROOT / "examples" / "rows.jsonl", folder / "labels.jsonl"
        run(command, "label", rows, "--judge", "embedded", "-o", labels, cwd=folder)
        print(run(command, "metrics", labels, cwd=folder))


if __name__ == "__main__":
    main()
