"""Turns a keyed example into the request that a judge is sent.

Sentences travel inside blocks, each as a line: its key, and its text as a JSON string, in which no
line ends. The fence of a block carries a marker derived from the content. So text cannot forge a
key, because keys begin lines, and cannot close a block, because no text can contain the digest of
itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypedDict

from labeler.errors import UsageError
from labeler.judges.tokens import answer_tokens
from labeler.labels import resources
from labeler.labels.answers import GPTLabelingOutput, as_given
from labeler.labels.contract import CheckedLabel, Violation, check_label
from labeler.labels.logprobs import Token
from labeler.labels.non_answers import overrule
from labeler.labels.profiles import Profile, profile_of
from labeler.labels.record import AnyRecord, LabelRecord, ReplyFacts, SentenceScores
from labeler.labels.schemas import ResponseSchema
from labeler.labels.signature import Artifact, Signature, digest
from labeler.sentences.characters import inert_json
from labeler.sentences.example import Frozen, KeyedExample, Sentence

DEFAULT_PROMPT = "trace/v1"

RENDERING = 2
"""Version of the data block layout below; it enters every prompt's digest."""

_VARIABLES = frozenset({"marker", "question", "documents", "response"})
_REFERENCE = "reference"
"""The variable of prompts that show the reference answer too."""
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")
_JSON = json.JSONEncoder(ensure_ascii=False)


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """A prompt: static instructions, and a frame for one record's data."""

    name: str
    system: str
    user: str

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as they enter a label's key."""
        content = {"system": self.system, "user": self.user, "rendering": RENDERING}
        return Artifact(name=self.name, digest=digest(content))

    @cached_property
    def shows_reference(self) -> bool:
        """Whether the reference answer is part of the data."""
        return _REFERENCE in _VARIABLE.findall(self.user)

    def render(self, example: KeyedExample) -> tuple[Message, ...]:
        """Write the messages for one record: static text first, data last."""
        values = {
            "marker": marker(example, reference=self.shows_reference),
            "question": data_text(example.question),
            "documents": sentence_lines(example.document_sentences()),
            "response": sentence_lines(example.response),
            _REFERENCE: sentence_lines(example.reference or ()),
        }
        # One pass over the frame: text that came in as a value is never looked at again.
        user = _VARIABLE.sub(lambda match: values[match[1]], self.user)
        return ({"role": "system", "content": self.system}, {"role": "user", "content": user})


def parse_prompt(name: str, text: str) -> Prompt:
    """Read a prompt file: a ``# System`` part, then a ``# User`` part with ``{{variables}}``.

    Raises:
        UsageError: a part or a variable is missing, or a variable is unknown.
    """
    system, user = prompt_parts(name, text)
    found = set(_VARIABLE.findall(user)) - {_REFERENCE}
    if found != _VARIABLES:
        missing, unknown = sorted(_VARIABLES - found), sorted(found - _VARIABLES)
        raise UsageError(
            f"prompt {name!r}: its '# User' part must use each of {sorted(_VARIABLES)}; "
            f"and may use {_REFERENCE!r}; missing {missing}, unknown {unknown}"
        )
    return Prompt(name, system, user)


def prompt_parts(name: str, text: str) -> tuple[str, str]:
    """The ``# System`` part of a prompt file and its ``# User`` part.

    Raises:
        UsageError: one of them is missing.
    """
    match = re.fullmatch(r"# System\n(.+?)\n# User\n(.+)", text.replace("\r\n", "\n"), re.DOTALL)
    if not match:
        raise UsageError(
            f"prompt {name!r} needs a line '# System' first and a line '# User' after it"
        )
    return match[1].strip(), match[2].strip()


@lru_cache
def load_prompt(name: str = DEFAULT_PROMPT) -> Prompt:
    """Load a prompt that ships with the package, such as ``trace/v1``."""
    return parse_prompt(name, resources.read("prompts", name, ".md"))


@dataclass(frozen=True)
class JudgeRequest:
    """One record to be judged, and all that can change the answer.

    As it stands it asks for a label. Requests for other answers are subclasses, which say in what
    class an answer is read, what it must keep, and what record it becomes; everything between the
    row and the store treats all of them alike.
    """

    key: str
    """That of the record it becomes, 64 hexadecimal digits."""
    example: KeyedExample
    signature: Signature
    prompt: Prompt
    schema: ResponseSchema

    @property
    def profile(self) -> Profile:
        """How much is asked."""
        return profile_of(self.schema.name)

    @property
    def output(self) -> type[GPTLabelingOutput]:
        """The class of the label that is asked for."""
        return self.profile.output

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages, rendered on first use."""
        return self.prompt.render(self.example)

    @property
    def answer_type(self) -> type[Frozen]:
        """The class that an answer is read into."""
        return self.output

    @property
    def rules(self) -> str | None:
        """What an answer must keep, in words for a judge that broke it.

        ``None`` for labels: their rules name keys, and stand with the judges.
        """
        return None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What is sent besides the judge's own parameters."""
        return {}

    @property
    def expected_tokens(self) -> int:
        """About how long an answer will be."""
        referenced = len(self.example.reference or ())
        return answer_tokens(len(self.example.response), self.profile.name, referenced)

    def broken_by(self, answer: Frozen) -> tuple[Violation, ...]:
        """What an answer breaks of what it must keep; empty for one that may be stored."""
        return self._checked(_label(answer)).violations

    def admit(
        self,
        answer: Frozen,
        facts: ReplyFacts,
        *,
        scores: SentenceScores | None = None,
        tokens: Sequence[Token] = (),
    ) -> AnyRecord | tuple[Violation, ...]:
        """Make the record that an answer becomes, or say what it breaks.

        Args:
            answer: of :attr:`answer_type`.
            facts: what happened when the judge was asked.
            scores: a scoring judge's numbers behind its verdicts.
            tokens: the answer's tokens, where their probabilities were asked for and given.
        """
        del tokens
        given = _label(answer)
        checked = self._checked(given)
        if checked.violations:
            return checked.violations
        label, overruled = overrule(checked.label, self.example)
        return LabelRecord(
            key=self.key,
            example=self.example,
            label=label,
            verbatim=as_given(given) if label != given else None,
            normalised={**checked.normalised, **overruled},
            signature=self.signature,
            reply=facts,
            scores=scores,
        )

    def _checked(self, given: GPTLabelingOutput) -> CheckedLabel:
        """A label held against the contract; once, though judges and whoever admits it ask."""
        for latest, checked in self._latest:
            if latest is given:
                return checked
        checked = check_label(given, self.example)
        self._latest[:] = [(given, checked)]
        return checked

    @cached_property
    def _latest(self) -> list[tuple[GPTLabelingOutput, CheckedLabel]]:
        return []

    def renamed(self, record: AnyRecord) -> AnyRecord:
        """The stored record of this request's key under this row's name and columns."""
        return record.model_copy(update={"example": self.example})


def _label(answer: Frozen) -> GPTLabelingOutput:
    """An answer to a request for a label.

    Raises:
        TypeError: it is none; the judge's code is at fault.
    """
    if not isinstance(answer, GPTLabelingOutput):
        raise TypeError(f"a label was asked for, got a {type(answer).__name__}")
    return answer


def marker(example: KeyedExample, *, reference: bool = False) -> str:
    """The fence marker of a record: 16 hexadecimal digits, fixed by all content that is shown."""
    texts: list[Any] = [[s.text for s in document] for document in example.documents]
    content: list[Any] = [example.question, texts, [s.text for s in example.response]]
    if reference:
        content.append([s.text for s in example.reference or ()])
    return digest({"fence": content})[:16]


def sentence_lines(sentences: Iterable[Sentence]) -> str:
    """Sentences as the lines of a data block."""
    # Written out as one text: what is escaped in it never spans two lines.
    return inert_json("\n".join(_line(s.key, s.text) for s in sentences))


def sentence_line(key: str, text: str) -> str:
    """A sentence as a line of a data block, such as ``0a "Paris is the capital."``."""
    return inert_json(_line(key, text))


def _line(key: str, text: str) -> str:
    return f"{key} {_JSON.encode(text)}"


def data_text(text: str) -> str:
    """A JSON string, in which nothing can pass for a line break or a model's control token."""
    return inert_json(_JSON.encode(text))
