"""Runs examples/labels.ipynb in an empty folder and keeps what its cells show.

    python scripts/run_notebook.py

Needs what tests/notebook/requirements.txt lists.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parent.parent / "examples" / "labels.ipynb"


def main() -> None:
    """Run the notebook and write it."""
    import nbformat  # noqa: PLC0415 - not everyone has it

    nbformat.write(executed(), NOTEBOOK)


def executed() -> Any:  # noqa: ANN401 - nbformat has no types
    """Return the notebook with the present outputs of its cells."""
    import nbformat  # noqa: PLC0415 - not everyone has it
    from nbclient import NotebookClient  # noqa: PLC0415 - not everyone has it

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=120, resources=where, record_timing=False).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
    return notebook


if __name__ == "__main__":
    main()
