"""The text of a sentence as the judge compares it: without citation markers, numbers as digits.

Documents and responses are read the same way, so that "twelve [3]" equals "12", "12,500" equals
"12500", and a verbatim copy of a sentence equals it whatever it cites.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from labeler.sentences.citations import without_markers
from labeler.sentences.example import KeyedExample, Sentence
from labeler.sentences.numbers import decimal_marks, read_number, with_plain_numbers


@dataclass(frozen=True)
class PlainText:
    """Texts as they are compared.

    Attributes:
        marks: what may be the decimal mark of the record.
    """

    marks: str = "."

    @classmethod
    def of(cls, example: KeyedExample) -> PlainText:
        """Return the reading of a record's texts."""
        texts = (*example.evidence_sentences(), *example.response, *(example.reference or ()))
        return cls(decimal_marks([example.question, *(one.text for one in texts)]))

    def __call__(self, text: str) -> str:
        """Return a text without citation markers and with its numbers in plain digits."""
        return with_plain_numbers(without_markers(text), self.marks)

    def sentence(self, sentence: Sentence) -> Sentence:
        """Return a sentence with its text as it is compared."""
        return replace(sentence, text=self(sentence.text))

    def values(self, number: str) -> tuple[str, ...]:
        """Return the values that a compared number may have."""
        return read_number(number, self.marks)
