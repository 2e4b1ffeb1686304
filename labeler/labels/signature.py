"""Signatures: the facts that can change a label, their printed form, and the keys of labels.

Also the prompts and schemas that ship with the package, which signatures name.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json

from labeler.errors import UnknownName, UsageError
from labeler.labels.answers import BY_FAMILY
from labeler.sentences.example import KeyedExample, Sentence, document_key


def canonical_json(value: object) -> bytes:
    """Encode a JSON value canonically: sorted keys, no spaces, UTF-8.

    Raises:
        ValueError: the value holds NaN or an infinity, or text with a lone surrogate.
    """
    return _CANONICAL.encode(value).encode("utf-8")


_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def storable_json(where: str, value: object) -> bytes:
    """Encode sampling parameters canonically.

    Raises:
        UsageError: a stored label with them could not be written, or not be read again.
    """
    try:
        text = canonical_json(value)
        from_json(b"[" * _LEVELS + text + b"]" * _LEVELS)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{where} holds a value that is not JSON: {error}") from None
    return text


_LEVELS = 8
"""Levels of a stored label around its parameters: what is nested too deeply is not read back."""


texts_json = msgspec.json.Encoder(order="sorted").encode
"""Encodes texts and integers, in lists and objects, like :func:`canonical_json`, but faster; raises
``ValueError`` for a text with a lone surrogate."""


def texts_digest(value: object) -> str:
    """Return :func:`digest` of texts and integers, in lists and objects, but faster."""
    return hashlib.sha256(texts_json(value)).hexdigest()


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


class Artifact(BaseModel):
    """A released prompt or schema: its name and the digest of its content."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Path-like name with version, such as ``trace/v1``."""
    digest: str
    """SHA-256 of the content, 64 hexadecimal digits."""

    def __str__(self) -> str:
        return f"{self.name}@{self.digest[:8]}"


_PACKAGE = Path(__file__).parent.parent


def resource_folder(kind: str) -> Path:
    """Return the folder of one kind of resource, inside the package or next to it.

    Args:
        kind: ``prompts`` or ``schemas``.

    Raises:
        UnknownName: the installation is broken, because neither folder exists.
    """
    for place in (_PACKAGE / kind, _PACKAGE.parent / kind):
        if place.is_dir():
            return place
    raise UnknownName(
        f"no {kind} folder in {_PACKAGE} or next to it: "
        "reinstall the package, its wheel carries them"
    )


def resource_names(kind: str, suffix: str) -> list[str]:
    """Return the sorted names of all resources of a kind, such as ``trace/v1``."""
    root = resource_folder(kind)
    found = (path.relative_to(root).as_posix() for path in root.rglob(f"*{suffix}"))
    return sorted(name.removesuffix(suffix) for name in found)


def read_resource(kind: str, name: str, suffix: str) -> str:
    """Read one resource as text.

    Raises:
        UnknownName: no resource has that name.
    """
    folder, known = resource_folder(kind), resource_names(kind, suffix)
    if name not in known:
        have = ", ".join(known)
        raise UnknownName(f"no {kind.rstrip('s')} {name!r} in {folder}; have: {have}")
    return (folder / f"{name}{suffix}").read_text(encoding="utf-8")


DEFAULT_SCHEMA = "label-trace/v1"


@dataclass(frozen=True)
class ResponseSchema:
    """A published JSON schema of an answer."""

    name: str
    text: str

    @cached_property
    def json_schema(self) -> Mapping[str, Any]:
        """The parsed schema."""
        schema: dict[str, Any] = json.loads(self.text)
        return schema

    @cached_property
    def compact(self) -> str:
        """The schema as it is sent: the same JSON without spaces."""
        return json.dumps(self.json_schema, separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as in a label's key; the order of fields is part of the digest."""
        return Artifact(name=self.name, digest=digest(self.text))


@lru_cache
def load_schema(name: str = DEFAULT_SCHEMA) -> ResponseSchema:
    """Load the published schema of a label profile, such as ``label-trace/v1``."""
    return ResponseSchema(name, read_resource("schemas", name, ".json"))


class Signature(BaseModel):
    """The facts, besides the sentences, that can change a label.

    All of it enters the label's key. Keys, addresses, time-outs, concurrency and the package's
    version do not change what is asked and are not here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """The kind of judge: ``openai``, ``embedded``, ``ragbench`` for published labels, …"""
    model: str
    """The requested model; the reply's facts have the one that answered."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """The sampling parameters, and other settings of the judge that can change a label."""
    prompt: Artifact | None = None
    """The prompt; ``None`` for an imported label."""
    response_schema: Artifact
    """The schema of the label."""
    splitter: str
    """The splitter of the sentences, such as ``general/1``."""
    source: str | None = None
    """The published row of an imported label. Imported labels of equal sentences may differ, so the
    row is part of the key. It is not printed, because it would split numbers that belong together.
    """
    instructions: str = Field(default="", exclude_if=operator.not_)
    """Domain rules of the user, which the judge read after the prompt."""
    trial: int = 0
    """0 for the first judgment of a record; repeats count up and have keys of their own."""
    thresholds: dict[str, float] = Field(default_factory=dict, exclude_if=operator.not_)
    """Thresholds that were moved after the judgment, by kind of verdict; the verdicts follow from
    stored probabilities (:mod:`labeler.labels.thresholds`)."""

    def facts(self) -> dict[str, Any]:
        """Return the facts that enter a key, as a JSON value.

        Facts at their defaults are omitted, so that facts added later do not change present keys.
        """
        return self.model_dump(mode="json", exclude_defaults=True)

    def __str__(self) -> str:
        """Return the printed form, for people; only :class:`ReviewCounts` are read back from it.

        Equal signatures share one text: many records are held with theirs.
        """
        parts = [
            f"judge:{escaped(self.judge)}/{escaped(self.model)}",
            f"prompt:{self.prompt or 'none'}",
            f"schema:{self.response_schema}",
            f"splitter:{escaped(self.splitter)}",
        ]
        if self.instructions:
            parts.append(f"instructions:{digest(self.instructions)[:8]}")
        for name, value in sorted(self.sampling.items()):
            parts.append(f"{name}:{escaped(str(value))}")
        for name, value in sorted(self.thresholds.items()):
            parts.append(f"threshold:{name}={value}")
        if self.trial:
            parts.append(f"trial:{self.trial}")
        return sys.intern("|".join(parts))


def escaped(text: str) -> str:
    """Escape the separators of a printed signature."""
    return text.replace("|", "%7C").replace("\n", "%0A")


MAJORITY = "majority"
"""Kind of judge in the signature of a majority label, whose scores are shares of votes."""
CORRECTIONS = "corrections"
"""The sampling fact that marks a corrected label in its signature."""
JUDGED = "judged"
"""The sampling fact with the selection in a signature."""
_PRINTED = re.compile(rf"\|{JUDGED}:(\d+) of (\d+), (\d+) at random(?:\||$)", re.ASCII)


class ReviewCounts(NamedTuple):
    """How many labels of one judge configuration people judged, and how these were selected.

    People who judge only labels of one kind, such as those that the judge called unsupported,
    correct errors in one direction. Means can then be further from the truth than the judge's own.

    Attributes:
        judged: labels that people judged.
        labels: all labels.
        random: judged labels that were drawn at random.
    """

    judged: int
    labels: int
    random: int

    @classmethod
    def printed_in(cls, label: str | None) -> ReviewCounts | None:
        """Return the selection in a printed signature; ``None`` if people judged no label."""
        found = _PRINTED.search(label or "")
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"{self.judged} of {self.labels}, {self.random} at random"

    @property
    def is_biased(self) -> bool:
        """True if people judged some labels only, and not all of these were drawn at random."""
        return self.random < self.judged < self.labels

    def warning(self, labels: str = "LABELS", corrections: str = "CORRECTIONS") -> str:
        """Return the consequence of a biased selection, and the remedy.

        Args:
            labels: the label file that people judged, as a shell takes it, if it is known.
            corrections: the corrections file.
        """
        sample = f"labeler review {labels} --queue random --sample 100, then "
        return (
            f"people judged {self.judged:,} of these {self.labels:,} labels, {self.random:,} of "
            "them drawn at random, so means and intervals are biased; for all records: "
            f"{'' if self.random else sample}labeler agree {labels} --human {corrections} "
            "--random-sample"
        )


def selection_warnings(labels: Iterable[str | None]) -> Iterator[str]:
    """Yield each warning of printed signatures once."""
    found = dict.fromkeys(map(ReviewCounts.printed_in, labels))
    yield from (one.warning() for one in found if one and one.is_biased)


def label_key(example: KeyedExample, signature: Signature) -> str:
    """Compute the key of a label from all that can change it and nothing else.

    Included: the question, every keyed sentence, speakers of earlier turns, and the signature.
    Excluded: the row's id and metadata, offsets, names of tools, and the reference answer unless
    the profile shows it to the judge.

    Returns:
        64 hexadecimal digits.
    """
    seen = texts_json(shown(example, reference=shows_reference(signature)))
    return key_of(seen, _encoded_facts(signature))


_FACTS: dict[bytes, bytes] = {}
"""Encoded facts of signatures, which the records of a run share, by their JSON: equal numbers such
as 0 and 0.0 have different keys."""
_MOST_FACTS = 64


def _encoded_facts(signature: Signature) -> bytes:
    """Return the canonical JSON of a signature's facts."""
    text = to_json(signature)
    found = _FACTS.get(text)
    if found is None:
        if len(_FACTS) >= _MOST_FACTS:
            _FACTS.clear()
        found = _FACTS[text] = canonical_json(signature.facts())
    return found


def key_of(seen: bytes, facts: bytes) -> str:
    """Return a label's key from canonical JSON: of :func:`shown`, and of the signature's facts."""
    return hashlib.sha256(b'{"shown":%b,"signature":%b}' % (seen, facts)).hexdigest()


def retrieval_key(example: KeyedExample, signature: Signature) -> str:
    """Compute the key of a retrieval label from question, documents, history and signature.

    Documents count as a set: their order, repeats and empty ones change nothing.

    Returns:
        64 hexadecimal digits.
    """
    seen = shown(retrieval_example(example))
    return digest({"retrieval": seen, "signature": signature.facts()})


def retrieval_example(example: KeyedExample) -> KeyedExample:
    """Return what a retrieval label is about: question, earlier turns and distinct documents."""
    return KeyedExample(
        id=example.id,
        question=example.question,
        documents=tuple(
            tuple(
                Sentence(document_key(place, n), s.text, s.start, s.end)
                for n, s in enumerate(example.documents[numbers[0]])
            )
            for place, numbers in enumerate(distinct_documents(example))
        ),
        response=(),
        splitter=example.splitter,
        history=example.history,
    )


def distinct_documents(example: KeyedExample) -> list[list[int]]:
    """Return the documents in the order of a retrieval label: by SHA-256 of their sentences.

    Returns:
        For each distinct document, the numbers of the example's documents with this text; empty
        documents are left out.
    """
    found: dict[str, list[int]] = {}
    for number, document in enumerate(example.documents):
        if document:
            found.setdefault(digest([s.text for s in document]), []).append(number)
    return [numbers for _, numbers in sorted(found.items())]


def shows_reference(signature: Signature) -> bool:
    """Return whether the judge saw the reference answer."""
    return signature.response_schema.name.startswith(_SHOWS_REFERENCE)


_SHOWS_REFERENCE = tuple(f"{name}/" for name, p in BY_FAMILY.items() if p.shows_reference)


def shown(example: KeyedExample, *, reference: bool = False) -> dict[str, Any]:
    """Return the parts of an example that a judge sees, as a JSON value.

    Absent parts are omitted, so that parts added later do not change present keys.

    Args:
        example: the keyed sentences.
        reference: whether to include the reference answer.
    """
    parts: dict[str, Any] = {
        "question": example.question,
        "documents": list(map(_texts, example.documents)),
        "response": _texts(example.response),
        "reference": _texts(example.reference or ()) if reference else [],
        "history": [[turn.role, _texts(turn.sentences)] for turn in example.history],
        "tool_outputs": [_texts(output.sentences) for output in example.tool_outputs],
    }
    return dict(filter(operator.itemgetter(1), parts.items()))


def _texts(sentences: Iterable[Sentence]) -> list[tuple[str, str]]:
    return [*map(_KEY_AND_TEXT, sentences)]


_KEY_AND_TEXT = operator.attrgetter("key", "text")
