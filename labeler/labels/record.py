"""Stored records: labels, scores and other answers of judges, failures, and their keys."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, filterfalse
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, overload

from pydantic import ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import from_json

from labeler.catalog import Catalog
from labeler.errors import ExtensionError, LabelerError, UnknownName, UsageError
from labeler.labels.answers import (
    BY_FAMILY,
    Label,
    SentenceSupport,
    Verbatim,
    family_of,
    lacks_relevance,
)
from labeler.labels.contract import Violation, check_label
from labeler.labels.signature import Signature, label_key, retrieval_key
from labeler.sentences.display import Column, Display, Displayed, Grid, plural
from labeler.sentences.example import Frozen, KeyedExample, Sentence, is_key

AnswerT = TypeVar("AnswerT", bound=Frozen)


class Usage(Frozen):
    """Tokens that the provider charged for, summed over every attempt of one record."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Part of the prompt tokens that the provider served from its own prompt cache."""
    cache_write_tokens: int = 0
    """Part of the prompt tokens that the provider wrote to its prompt cache, where it says so."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both; the other may be a glance at a file, with the same fields."""
        return Usage.model_construct(
            **{name: count + getattr(other, name) for name, count in self.__dict__.items()}
        )


class ReplyFacts(Frozen):
    """What happened when the judge was asked; none of it enters the key."""

    served_model: str | None = None
    """The model that answered, as the server names it."""
    system_fingerprint: str | None = None
    host: str | None = None
    """Host of the server that answered, without credentials or path."""
    usage: Usage | None = None
    attempts: int = 1
    """Requests sent for this record, re-asks and retries included; 0 where nobody was asked."""
    reasks: int = 0
    """Answers that were sent back to be mended."""
    broken_contracts: dict[str, int] = Field(default_factory=dict)
    """Violations by kind in the answers that were re-asked."""
    seconds: float | None = None
    """Wall time from the first request to the answer."""
    created_at: str | None = None
    """When the answer came, ISO 8601 in UTC."""
    labeler_version: str | None = None
    thresholds: dict[str, float] = Field(default_factory=dict, exclude_if=operator.not_)
    """Lowest probabilities of positive verdicts, by kind of verdict; see
    :mod:`labeler.labels.thresholds`. Absent if the judge gave no probabilities."""


class SentenceScores(Frozen):
    """A scoring judge's numbers behind its verdicts, by sentence key; higher means more."""

    support: dict[str, FiniteFloat] = Field(default_factory=dict)
    relevance: dict[str, FiniteFloat] = Field(default_factory=dict)
    utilization: dict[str, FiniteFloat] = Field(default_factory=dict)
    adherence: FiniteFloat | None = Field(default=None, exclude_if=lambda value: value is None)
    """Probability that every response sentence is supported. Set if the numbers above are
    calibrated probabilities; ``None`` for scores of another scale."""


class RetrievalBasis(Frozen):
    """The retrieval label that the relevance of a label rests on."""

    key: str
    """Key of the retrieval label; see :func:`retrieval_key`."""
    signature: Signature
    relevance_explanation: str
    """As the judge wrote it, in the numbering of :func:`distinct_documents`."""
    all_relevant_sentence_keys: tuple[str, ...]
    """In the numbering of the label's own documents."""
    scores: dict[str, FiniteFloat] = Field(default_factory=dict, exclude_if=operator.not_)
    """A scoring judge's numbers behind the relevance, by sentence key in that numbering."""

    def __str__(self) -> str:
        return f"judged without the response: retrieval label {self.key[:12]}, {self.signature}"


class Record(Frozen, Generic[AnswerT]):
    """Base of every stored answer of a judge.

    Each kind declares its remaining fields itself, in the order of the stored JSON.
    """

    kind: str
    version: Literal[1] = 1
    key: str
    """Identity of the judgment; see :meth:`compute_key`."""

    keyed_by: ClassVar[str]
    """Fields that the key is computed from, for error messages."""

    if TYPE_CHECKING:
        signature: Signature
        reply: ReplyFacts = ReplyFacts()

        @property
        def example(self) -> KeyedExample:
            """The row."""

        @property
        def answer(self) -> AnswerT:
            """The judge's answer."""

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id

    def compute_key(self) -> str:
        """Compute the key from the record's content: 64 hexadecimal digits."""
        raise NotImplementedError

    @property
    def printed(self) -> str:
        """The printed signature under which numbers of the record are averaged."""
        return str(self.signature)

    def shown(self) -> Iterator[tuple[str, Sequence[str | Sentence]]]:
        """Yield headings and what stands below them where the record is shown to people."""
        yield self.id, [str(self.signature)]
        for name, value in self.answer.model_dump(mode="json").items():
            yield name, list(map(str, value if isinstance(value, list) else [value]))

    def content(self) -> str:
        """Return the judge's answer as JSON; by this, copies differ from other answers."""
        return self.answer.model_dump_json(warnings=False)

    def fault(self) -> str | None:
        """Return why the record cannot be what was stored, or ``None`` for a sound one.

        Finds damage and careless edits. A careful forger can make an edited file sound again.
        """
        if self.compute_key() != self.key:
            return f"its key is not that of its {self.keyed_by}"
        return self._content_fault()

    def _content_fault(self) -> str | None:
        """Return what contradicts itself in a record with the right key."""
        return None


class LabelRecord(Displayed, Record[Label]):
    """A label with everything that is needed to read, recompute and audit it again."""

    keyed_by: ClassVar[str] = "question, sentences and signature (see label_key)"

    kind: Literal["label"] = "label"
    example: KeyedExample
    label: Label
    """The answer with canonical keys."""
    verbatim: Verbatim | None = None
    """The answer as given, if normalization changed it."""
    normalised: dict[str, int] = Field(default_factory=dict)
    """Trivial repairs by kind."""
    violations: tuple[Violation, ...] = ()
    """Contract violations that an importer kept. Records of a judge have none."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()
    scores: SentenceScores | None = None
    not_measured: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """Metrics that the judge's answers say nothing about; calculators leave them undefined."""
    retrieval: RetrievalBasis | None = Field(default=None, exclude_if=operator.not_)
    """Source of the relevance, if it was judged without the response; absent otherwise."""

    @property
    def answer(self) -> Label:
        """The label."""
        return self.label

    UNEXPLAINED: ClassVar[str] = "probabilities, no explanation"
    """Shown in place of the explanations of a judge that gives none."""

    @property
    def lacks_explanations(self) -> bool:
        """True if the judge answered with probabilities and without explanations."""
        label = self.label
        explained = label.relevance_explanation or label.overall_supported_explanation
        return (
            self.scores is not None
            and self.scores.adherence is not None
            and not explained
            and not any(entry.explanation for entry in label.sentence_support_information)
        )

    def why(self, verdict: SentenceSupport) -> str:
        """Return the explanation of a verdict, or its probability if the judge gave no other."""
        likely = self.scores.support if self.scores and self.lacks_explanations else {}
        key = verdict.response_sentence_key
        return f"probability of support {likely[key]:.4g}" if key in likely else verdict.explanation

    def content(self) -> str:
        """Return the label as JSON, and the answer as given if that differs."""
        given = "" if self.verbatim is None else self.verbatim.model_dump_json(warnings=False)
        return self.label.model_dump_json(warnings=False) + given

    def _display(self) -> Display:
        label, example = self.label, self.example
        columns = [Column("key", words=True), Column("sentence of the response", words=True)]
        columns += [Column("supported", words=True), Column("by", words=True)]
        texts = {sentence.key: sentence.text for sentence in example.response}
        cells = [
            [
                one.response_sentence_key,
                texts.get(one.response_sentence_key, ""),
                "yes" if one.fully_supported else "no",
                " ".join(one.supporting_sentence_keys),
            ]
            for one in label.sentence_support_information
        ]
        relevant, used = label.all_relevant_sentence_keys, label.all_utilized_sentence_keys
        found = f"{len(relevant):,} relevant, {len(used):,} utilized"
        notes = [
            f"question: {example.question}",
            f"of {sum(map(len, example.documents)):,} document sentences: {found}",
            f"key {self.key}, {self.signature}",
        ]
        notes += [f"relevance: {self.retrieval}"] if self.retrieval else []
        verdict = "supported" if label.overall_supported else "not supported"
        by = f"{self.signature.judge}/{self.signature.model}"
        return Display(f"label {self.id!r} by {by}: {verdict}", Grid(columns, cells), notes)

    def compute_key(self) -> str:
        """Compute the key from the sentences and the signature."""
        return label_key(self.example, self.signature)

    def _content_fault(self) -> str | None:
        family = family_of(self.signature.response_schema.name)
        if type(self.label) is not _OUTPUTS.get(family, type(self.label)):
            return "its label is not of the profile that the schema of its signature belongs to"
        shown = chain(self.example.evidence_sentences(), self.example.response)
        odd = next(filterfalse(is_key, map(operator.attrgetter("key"), shown)), None)
        if odd is not None:
            return f"its sentences have other keys than can be, such as {odd!r:.80}"
        if check_label(self.label, self.example).answer != self.label:
            return "its label names keys that its sentences do not have, or a key twice"
        return self._basis_fault()

    def _basis_fault(self) -> str | None:
        """Return why the label cannot rest on its retrieval label, or ``None``."""
        basis = self.retrieval
        if basis is None:
            if lacks_relevance(self.signature.response_schema.name):
                return "its relevance was not asked for, and it names no retrieval label"
            return None
        if basis.key != retrieval_key(self.example, basis.signature):
            return "the key of its retrieval label is not that of its question and documents"
        if tuple(self.label.all_relevant_sentence_keys) != basis.all_relevant_sentence_keys:
            return "its relevant sentences differ from its retrieval label's"
        return None


class LabelFailure(Frozen):
    """A row that has no label or score, and why; it stands in the stream where that would."""

    kind: Literal["failure"] = "failure"
    version: Literal[1] = 1
    id: str
    """The row's id, or ``FILE:LINE`` where the line could not be read."""
    reason: str
    """Machine-readable code, such as ``empty_response``, ``refusal``, ``contract``."""
    message: str
    """What, where, got, allowed, and what to do."""
    attempts: int = 0
    """Requests sent for it."""
    reasks: int = 0
    """Answers sent back to the judge for correction."""
    usage: Usage | None = None
    """Tokens charged in spite of the failure."""
    violations: tuple[Violation, ...] = ()
    """Violations of the last answer, if the reason is ``contract``."""
    lasting: bool = False
    """True if a retry would most likely fail again, such as after a refusal. Lasting failures are
    stored and retried only on request. ``False`` for failures of the network or the server."""
    key: str | None = None
    """Identity of the requested judgment; ``None`` without a request."""
    signature: Signature | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def fault(self) -> str | None:
        """Return why the failure cannot be stored: it has no label's key."""
        if _KEY.fullmatch(self.key or ""):
            return None
        return f"its key is {self.key!r:.80}, a label's key is 64 hexadecimal digits"


_KEY = re.compile("[0-9a-f]{64}")

RECORDS: Catalog[type[Record[Any]]] = Catalog("kind of record", group="records", of=type)
"""Record classes by kind, imported on first use."""
RECORDS.add("label", LabelRecord)
RECORDS.add("retrieval", "labeler.labels.retrieval_record:RetrievalRecord")

AnyRecord: TypeAlias = Record[Any]
"""A record of any kind: what a store keeps."""
Outcome = LabelRecord | LabelFailure
"""The outcome of labeling a row."""
AnyOutcome: TypeAlias = AnyRecord | LabelFailure


class ForeignRecord(Record[Any]):
    """A record of a kind that no installed package reads: kept as it is, and not measured."""

    model_config = ConfigDict(extra="allow")
    keyed_by: ClassVar[str] = "content"

    version: int = 1  # type: ignore[assignment] # that of another package
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def id(self) -> str:
        """The row's id, as most kinds keep it; else the key."""
        example = (self.model_extra or {}).get("example")
        return str(example["id"] if isinstance(example, dict) and "id" in example else self.key)

    @property
    def answer(self) -> Any:  # noqa: ANN401 - of any kind
        """All that the record holds."""
        return self

    def compute_key(self) -> str:
        """Return the key as it stands: only the missing package can check it."""
        return self.key


def parse_outcome(content: bytes) -> AnyOutcome:
    """Parse an outcome of any kind; other modules' kinds are imported when one occurs.

    Raises:
        UnknownName: it names no kind of outcome, and is not a record of an unknown kind.
        ValidationError: the content is not an outcome.
        ExtensionError: the package that declares its kind fails.
    """
    kind = written_kind(content) or _kind_of(content)
    if kind == "failure":
        return LabelFailure.model_validate_json(content)
    if kind in RECORDS:
        try:
            return RECORDS[kind].model_validate_json(content)
        except (LabelerError, ValidationError):
            raise
        except Exception as error:  # a third party may have written the class
            fault = f"{type(error).__name__}: {error}"
            raise ExtensionError(f"records of kind {kind!r} cannot be read: {fault}") from error
    try:
        return ForeignRecord.model_validate_json(content)
    except ValidationError as error:
        raise UnknownName(_NO_KIND) from error


_BEGIN = re.compile(rb'\{"kind":"([\w-]+)",')
"""The beginning of every record that this package writes."""
_NO_KIND = "it has no 'kind' of label, score or failure"
_LONGEST_KIND = 64


def written_kind(content: bytes) -> str | None:
    """Return the kind of a record as this package writes it, unparsed; ``None`` for other texts."""
    begin = _BEGIN.match(content)
    kind = begin[1].decode() if begin else None
    return kind if kind in RECORDS else None


def _kind_of(content: bytes) -> str:
    """Return the kind of an outcome; "label" if pydantic is left to describe what is wrong.

    Raises:
        UnknownName: it has none, or one that is too long to be one.
    """
    fields: Any = None
    with suppress(ValueError, RecursionError):
        fields = from_json(content)  # accepts NaN
    kind = fields.get("kind", "") if isinstance(fields, dict) else "label"
    if isinstance(kind, str) and 0 < len(kind) <= _LONGEST_KIND:
        return kind
    raise UnknownName(_NO_KIND)


@overload
def records_of(
    outcomes: Iterable[AnyOutcome], kind: Literal["label"]
) -> Iterator[LabelRecord | LabelFailure]: ...


@overload
def records_of(outcomes: Iterable[AnyOutcome], kind: str) -> Iterator[AnyOutcome]: ...


def records_of(outcomes: Iterable[AnyOutcome], kind: str) -> Iterator[AnyOutcome]:
    """Select the records of one kind and the failures of requests for that kind.

    A row that could not be read counts as a failure of every kind.
    """
    return (outcome for outcome in outcomes if requested_kind(outcome) in {kind, None})


def given_outcome(where: str, given: Any) -> Any:  # noqa: ANN401 - of a caller
    """Return an outcome that a caller gave.

    Raises:
        UsageError: it is something else, such as a row.
    """
    if not hasattr(given, "signature"):
        raise UsageError(
            f"{where} is a {type(given).__name__}, not a label: rows are labeled first, by "
            "labeler.label; labeler.load reads stored labels"
        )
    return given


def requested_kind(outcome: AnyOutcome) -> str | None:
    """Return the kind of a record, or the kind that a failed request would have become.

    ``None`` for a row that could not be read.
    """
    if not isinstance(outcome, LabelFailure):
        return outcome.kind
    if outcome.signature is None:
        return None
    family = family_of(outcome.signature.response_schema.name)
    return "label" if family in _OUTPUTS else family


def require_labels(name: str) -> Callable[[Iterable[AnyOutcome]], Iterator[AnyOutcome]]:
    """Return a generator that passes outcomes on, and fails at their end if none is of a label.

    Failed rows alone pass, if the file holds no records of another kind.

    Args:
        name: the file or store, for the message.

    Raises:
        UsageError: on reading, the outcomes end without a label or a failure to label.
    """

    def checked_kinds(outcomes: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        kinds = Counter[str]()
        for outcome in outcomes:
            kinds[requested_kind(outcome) or ""] += 1
            yield outcome
        unread = kinds.pop("", 0)
        if not kinds["label"] and (kinds or not unread):
            raise UsageError(f"{name}: {no_labels(kinds)}")

    return checked_kinds


def no_labels(others: Mapping[str, int]) -> str:
    """Return the message about outcomes without a label, with the records of other kinds."""
    held = [f"{plural(n, 'record')} of kind {kind!r}" for kind, n in others.items() if n]
    found = f", but {', '.join(held)}" if held else ""
    return f"no labels{found}: name what 'labeler label' wrote; 'labeler metrics' summarizes others"


_OUTPUTS = {family: profile.output for family, profile in BY_FAMILY.items()}
