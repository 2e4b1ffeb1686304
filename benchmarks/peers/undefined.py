"""Check what peers return where a metric here is undefined, by running their own functions.

    scripts/check_elsewhere peers-undefined [--write docs/metrics.md]

Prints each value of each peer next to the one here. Exits with 1 where a definition that is named
after a peer differs, or where the table of docs/metrics.md is not what was found; ``--write``
writes the table.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import ROOT, table, today, with_environments, write_block
from labeler.calculators import METRICS, Ratio, tally
from labeler.labels.answers import ComparedClaim
from labeler.labels.record import LabelRecord
from peers.environments import quiet, version
from support.labeled import expects, record, reference_output, right, wrong

PAGE = ROOT / "docs" / "metrics.md"
RUN = Path(__file__).with_name("undefined_run.py")
PEERS = {"ragas": "RAGAS", "deepeval": "DeepEval", "ragchecker": "RAGChecker", "trulens": "TruLens"}
_PINS = {"ragchecker": "ragchecker_formulas"}
"""Pins of a peer's formulas alone, where all of it is large."""
_NONE = "n/a"


class Case(NamedTuple):
    """Verdicts on one record, with one sentence in each document."""

    relevant: Sequence[bool] = (True, False)
    used: Sequence[bool] = (True, False)
    claims: Sequence[ComparedClaim] = (right("a", ["0a"]),)
    reference: Sequence[tuple[Sequence[str], bool]] = ((("0a",), True),)
    """The documents' sentences that entail each claim, and whether the response entails it."""
    response: bool = True
    """False if the response is empty."""

    @property
    def label(self) -> LabelRecord:
        """The label that says so."""
        keys = [f"{n}a" for n in range(len(self.relevant))]
        answer = reference_output(
            self.claims,
            [expects(by, found=found) for by, found in self.reference],
            relevant=[key for key, flag in zip(keys, self.relevant, strict=True) if flag],
            utilized=[key for key, flag in zip(keys, self.used, strict=True) if flag],
            silent=[] if self.claims or not self.response else ["a"],
            silent_reference=[] if self.reference else ["ref.a"],
        )
        made = record(documents=[1] * len(keys), answer=answer)
        if made.violations:
            raise ValueError(f"no label can say so: {made.violations}")
        return made

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the verdicts for a peer's environment."""
        return {
            "name": name,
            "relevant": self.relevant,
            "used": self.used,
            "response": "R." if self.response else "",
            "claims": [
                {
                    "verdict": one.verdict,
                    "documents": _places(one.supporting_sentence_keys),
                    "against": _places(one.contradicting_sentence_keys),
                    "correct": one.reference_verdict == "entailment",
                    "on_topic": one.relevant_to_question,
                }
                for one in self.claims
            ],
            "reference": [
                {"documents": _places(by), "found": found} for by, found in self.reference
            ],
        }


def _places(keys: Sequence[str]) -> list[int]:
    return [int(key[:-1]) for key in keys]


CASES = {
    "all defined": Case(
        relevant=(False, True, True, False),
        used=(True, False, True, False),
        claims=(
            right("a", ["1a"]),
            right("a"),
            wrong("a", ["0a", "1a"]),
            wrong("a", ["3a"], on_topic=False),
            wrong("a", against=["2a"]),
            wrong("a"),
        ),
        reference=((("1a",), True), (("1a", "2a"), False), ((), True)),
    ),
    "no document is relevant": Case(relevant=(False, False)),
    "the response uses no document": Case(used=(False, False)),
    "there are no documents": Case((), (), (right("a"),), (((), True),)),
    "the response makes no claim": Case(claims=()),
    "the response is empty": Case(claims=(), response=False),
    "the reference makes no claim": Case(claims=(wrong("a", ["0a"]),), reference=()),
    "the reference makes no claim, the response several": Case(
        claims=(right("a"), wrong("a"), wrong("a", ["0a"])), reference=()
    ),
    "no document entails a claim of the reference": Case(reference=(((), True),)),
}
OTHERWISE = {"the reference makes no claim": "the reference makes no claim, the response several"}
"""Cases of one condition with other claims: a peer whose values differ has no fixed one."""
BY_CLAIMS = "by its claims"
_NO_CLAIM, _EMPTY = "the response makes no claim", "the response is empty"
_NO_REFERENCE, _NO_DOCUMENT = "the reference makes no claim", "there are no documents"
_UNDEFINED = {
    "context_precision": ("no document is relevant", _NO_DOCUMENT),
    "context_utilization_precision": ("the response uses no document",),
    "context_relevancy": (_NO_DOCUMENT,),
    "faithfulness:claim": (_NO_CLAIM, _EMPTY),
    "hallucination_contexts": (_NO_DOCUMENT,),
    "answer_relevancy": (_NO_CLAIM, _EMPTY),
    "context_recall": (_NO_REFERENCE,),
    "context_precision_claims": (_NO_REFERENCE, _NO_DOCUMENT),
    "context_utilization_claims": (_NO_REFERENCE, "no document entails a claim of the reference"),
    "claim_precision": (_NO_CLAIM, _NO_REFERENCE),
    "claim_recall": (_NO_REFERENCE,),
    "claim_f1": (_NO_CLAIM, _NO_REFERENCE),
    "noise_sensitivity_relevant": (_NO_CLAIM, _NO_REFERENCE),
    "noise_sensitivity_irrelevant": (_NO_CLAIM, _NO_REFERENCE),
    "hallucination_incorrect": (_NO_CLAIM, _NO_REFERENCE),
    "self_knowledge": (_NO_CLAIM, _NO_REFERENCE),
}
ROWS = [(metric, case) for metric, cases in _UNDEFINED.items() for case in cases]
"""The rows of the table: a metric and a case in which it is undefined."""

Values = Mapping[str, Mapping[str, float | str]]
"""Values of one peer, by case and metric."""


def run(peer: str, python: str) -> Values:
    """Score all cases with a peer's functions, with the Python of its environment."""
    cases = json.dumps([case.as_json(name) for name, case in CASES.items()])
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [python, RUN, peer],
            input=cases,
            capture_output=True,
            text=True,
            check=False,
            env=quiet(Path(home)),
            cwd=home,
        )
    if done.returncode:
        sys.exit(f"{peer} failed:\n{done.stderr[-2000:]}")
    found: Values = json.loads(done.stdout)
    return found


def own(metric: str, peer: str) -> str | None:
    """Return the id of the definition here that has a peer's values, if there is one."""
    name = "hallucination" if metric == "hallucination_contexts" else metric.partition(":")[0]
    return f"{name}:{peer}" if f"{name}:{peer}" in METRICS else None


def compared(found: Mapping[str, Values]) -> Iterator[tuple[str, bool]]:
    """Yield a line for each value of each peer, and whether it is as it should be."""
    for name, case in CASES.items():
        counted = tally(case.label)
        for peer, values in found.items():
            for metric, theirs in values[name].items():
                ours = own(metric, peer)
                here = METRICS[ours or metric].compute(counted)
                as_expected = ours is None or _equal(theirs, here)
                mark = "" if ours is None or isinstance(theirs, str) else "equal"
                mark = mark if as_expected else "DIFFERS"
                shown = _shown(here)
                yield (
                    f"{name:45} {metric:30} {PEERS[peer]:11} {_cell(theirs):26} "
                    f"{ours or metric:40} {shown:26} {mark}".rstrip(),
                    as_expected,
                )
    for metric, name in ROWS:
        ratio = METRICS[metric].compute(tally(CASES[name].label))
        if ratio.undefined is None:
            yield f"{metric} is {ratio.value} here if {name}: a row of the table is wrong", False


def _equal(theirs: float | str, here: Ratio) -> bool:
    # A number cannot be compared with an error, which says that the peer takes no such record.
    if isinstance(theirs, str):
        return True
    return here.value is not None and math.isclose(theirs, here.value, abs_tol=1e-9)


def _shown(ratio: Ratio) -> str:
    return ratio.undefined or f"{ratio.value:.10g}"


def _cell(theirs: float | str | None) -> str:
    if theirs is None:
        return _NONE
    return theirs if isinstance(theirs, str) else f"{round(theirs, 9):.9g}"


def table_of(found: Mapping[str, Values], date: str) -> list[str]:
    """Return the table of docs/metrics.md."""
    names = [f"{shown} {version(_PINS.get(peer, peer))}" for peer, shown in PEERS.items()]
    lines = []
    for metric, name in ROWS:
        cells = []
        for peer in PEERS:
            ours = own(metric, peer)
            value = found[peer][name].get(metric)
            other = found[peer][OTHERWISE.get(name, name)].get(metric)
            varies = value != other and isinstance(value, float) and not math.isnan(value)
            named = f" (`{ours}`)" if ours and isinstance(value, float) else ""
            cells.append((BY_CLAIMS if varies else _cell(value)) + named)
        lines.append([f"`{metric}`", name, *cells])
    above = (
        f"Run on {date}. {_NONE}: no such metric; an error's name: the peer's function raises "
        f"it; {BY_CLAIMS}: it depends on the verdicts on the response's claims."
    )
    return [above, "", *table(["metric", "undefined here if", *names], lines, left=6)]


def main() -> int:
    """Run the peers, compare, and check or write the table."""
    parser = with_environments(__doc__)
    pythons = dict((given := parser.parse_args()).pythons)
    found = {peer: run(peer, pythons[_PINS.get(peer, peer)]) for peer in PEERS}
    lines = list(compared(found))
    print("\n".join(line for line, _ in lines))
    present = PAGE.read_text(encoding="utf-8")
    known = re.search(r"Run on (\d{4}-\d\d-\d\d)\.", present)
    made = table_of(found, known[1] if known and not given.write else today())
    is_same = "\n".join(made) in present
    if given.write:
        write_block(given.write, "peers undefined", made)
    elif not is_same:
        print(f"the table of {PAGE.name} differs from what was found: run it with --write")
    unexpected = sum(not as_expected for _, as_expected in lines)
    print(f"{len(lines)} values, {unexpected} wrong")
    return int(bool(unexpected) or (not given.write and not is_same))


if __name__ == "__main__":
    sys.exit(main())
