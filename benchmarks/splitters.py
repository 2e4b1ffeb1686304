"""Measure every sentence splitter: its speed, and its agreement with RAGBench and with people.

Run it as ``python benchmarks/splitters.py``. It takes the real rows where they are at hand (see
``ragbench_data.py``), else a text of its own. Processor speed cancels out in the third column:
how many times longer splitting takes than decoding the same bytes. Then it prints the agreement
with hand-made boundaries (``boundaries.py``) and every error; ``pysbd`` and nltk's punkt are
compared if they are installed. With ``--write docs/measured/splitters.md`` it only puts the wrong
boundaries of each text, and the growth of time on pathological ones, into the page.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from boundaries import error_lines, print_report
from judge_dialects import write_block
from labeler.sentences.splitting import SPLITTERS, Splitter
from ragbench_data import ragbench_rows

ROUNDS, LENGTH = 3, 80_000
OWN_TEXT = (
    "Retrieval puts passages before a model (Smith et al., 2020). Dr. Brown found that 3.5 of 10 "
    "answers, e.g. those on the U.S. market, went beyond them [12]. Is that much? It is!\n\n"
    "- See https://a.example/b.html for more.\n- Or write to x@y.example. Thank you.\n\n"
)


class Labeled(NamedTuple):
    """A text with its published sentences."""

    text: str
    sentences: list[str]


class Corpus(NamedTuple):
    """What is split."""

    name: str
    documents: list[Labeled]
    responses: list[Labeled]


def main() -> None:
    """Print the figures, or write those of the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", type=Path, help="the page to write tables into")
    page = options.parse_args().write
    if page is None:
        print_figures()
    else:
        write_block(page, "errors", list(error_lines()))
        write_block(page, "growth", list(growth_lines()))


def growth_lines() -> Iterator[str]:
    """Yield a table of how time grows with the length of pathological texts."""
    from unit.test_splitting_general import UNITS, shape  # noqa: PLC0415 - of the tests

    yield f"| splitter | texts | time at {LENGTH:,} letters by that at a quarter: median | most |"
    yield "|---|--:|--:|--:|"
    splitter, growth = SPLITTERS["general"], []
    for unit in UNITS:
        texts = (shape(unit, "x", length) for length in (LENGTH // 4, LENGTH))
        quarter, whole = (_fastest(partial(splitter.split, text)) for text in texts)
        growth.append(whole / quarter)
    yield f"| `{splitter}` | {len(growth)} | {statistics.median(growth):.1f} | {max(growth):.1f} |"


def print_figures() -> None:
    """Print one table line a splitter, then the agreement with hand-made boundaries."""
    corpus = _ragbench() or Corpus("own text", [Labeled(OWN_TEXT * 4, [])] * 2000, [])
    texts = [labeled.text for labeled in corpus.documents + corpus.responses]
    encoded = [text.encode() for text in texts]
    megabytes = sum(map(len, encoded)) / 1e6
    reading = _fastest(lambda: [content.decode() for content in encoded])
    print(f"{corpus.name}: {len(texts):,} texts, {megabytes:.1f} MB, fastest of {ROUNDS} rounds\n")
    print("| splitter | MB/s | times decoding | documents reproduced | responses reproduced |")
    print("|---|--:|--:|--:|--:|")
    for splitter in (SPLITTERS[name] for name in SPLITTERS if name != "given"):
        seconds = _fastest(partial(_split_all, splitter, texts))
        counts = [_reproduced(splitter, part) for part in (corpus.documents, corpus.responses)]
        speed = f"{megabytes / seconds:.1f} | {seconds / reading:,.0f}"
        print(f"| {splitter} | {speed} | {counts[0]} | {counts[1]} |")
    print_report()


def _ragbench() -> Corpus | None:
    """Read the real rows, where they are at hand."""
    documents, responses = [], []
    for row in ragbench_rows():
        responses.append(_labeled(row["response"], row["response_sentences"]))
        for text, pairs in zip(row["documents"], row["documents_sentences"], strict=True):
            documents.append(_labeled(text, pairs))
    return Corpus("RAGBench", documents, responses) if responses else None


def _labeled(text: str, pairs: list[list[str]]) -> Labeled:
    return Labeled(text, [sentence for _, sentence in pairs])


def _split_all(splitter: Splitter, texts: list[str]) -> None:
    for text in texts:
        splitter.split(text)


def _fastest(work: Callable[[], object]) -> float:
    """Seconds of processor time of the fastest round, after one that loads what is lazy."""
    work()
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        rounds.append(time.process_time() - begin)
    return min(rounds)


def _reproduced(splitter: Splitter, part: list[Labeled]) -> str:
    """Count the texts whose sentences are the published ones; their keys follow from the order."""
    if not any(labeled.sentences for labeled in part):
        return "-"
    equal = sum(
        [piece.text for piece in splitter.split(text)] == sentences for text, sentences in part
    )
    return f"{equal:,} of {len(part):,}"


if __name__ == "__main__":
    main()
