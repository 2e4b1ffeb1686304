"""Print the explanations of answers that contradict themselves or the texts.

    python scripts/audit_explanations.py LABELS

One JSON object for each finding of ``labeler audit``: the record, what is odd, and the explanation
to read. Copy this file and change it.
"""

from __future__ import annotations

import json
import os
import sys

import labeler
from labeler.audit import findings_of


def explanation(label: labeler.labels.GPTLabelingOutput, keys: tuple[str, ...]) -> str:
    """What the judge wrote on the first response sentence among the keys, or on the whole."""
    for entry in label.sentence_support_information:
        if entry.response_sentence_key in keys:
            return entry.explanation
    return label.overall_supported_explanation


def main(labels: str) -> None:
    """Print the findings of every record, in order."""
    for outcome in labeler.api.read_labels(labels):
        if isinstance(outcome, labeler.LabelRecord):
            for finding in findings_of(outcome):
                said = explanation(outcome.label, finding.keys)
                row = {"id": outcome.id, **finding.as_json(), "explanation": said}
                print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and one argument
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except labeler.LabelerError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
