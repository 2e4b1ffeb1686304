"""What is stored: labels, scores and what else judges answer, failures in their place, and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, TypeAdapter

from labeler.errors import UsageError
from labeler.labels.answers import Label, Verbatim
from labeler.labels.contract import Violation, check_label
from labeler.labels.criteria import Criterion, ScoreAnswer, ScoreMethod, StepsAnswer
from labeler.labels.profiles import PROFILES
from labeler.labels.questions import QuestionsAnswer, Similarity
from labeler.labels.signature import Signature, digest
from labeler.sentences.example import Frozen, KeyedExample
from labeler.sentences.keys import is_key


class Usage(Frozen):
    """Tokens that the provider charged for, summed over every attempt of one record."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Part of the prompt tokens that the provider served from its own prompt cache."""
    cache_write_tokens: int = 0
    """Part of the prompt tokens that the provider wrote to its prompt cache, where it says so."""

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        mine, theirs = self.model_dump(), other.model_dump()
        return Usage(**{name: count + theirs[name] for name, count in mine.items()})


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


class SentenceScores(Frozen):
    """A scoring judge's numbers behind its verdicts, by sentence key; higher means more."""

    support: dict[str, FiniteFloat] = Field(default_factory=dict)
    relevance: dict[str, FiniteFloat] = Field(default_factory=dict)
    utilization: dict[str, FiniteFloat] = Field(default_factory=dict)


class LabelRecord(Frozen):
    """A label with everything that is needed to read, recompute and audit it again."""

    kind: Literal["label"] = "label"
    version: Literal[1] = 1
    key: str
    """Identity of the judgement: :func:`label_key` of the sentences and the signature."""
    example: KeyedExample
    label: Label
    """The answer with canonical keys."""
    verbatim: Verbatim | None = None
    """The answer as it was given, where normalisation changed it."""
    normalised: dict[str, int] = Field(default_factory=dict)
    """Trivial repairs by kind."""
    violations: tuple[Violation, ...] = ()
    """Broken contracts that an importer kept; a judge's record has none."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()
    scores: SentenceScores | None = None

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id


class ScoreRecord(Frozen):
    """A score with everything that is needed to read, recompute and audit it again."""

    kind: Literal["score"] = "score"
    version: Literal[1] = 1
    key: str
    """Identity of the judgement: :func:`score_key` of what was shown, criterion and signature."""
    example: KeyedExample
    """The whole row, also what the criterion did not show."""
    criterion: Criterion
    answer: ScoreAnswer
    distribution: dict[int, FiniteFloat] | None = None
    """Probability of each score, as far as the log-probabilities tell; ``None`` without them."""
    method: ScoreMethod = "answer"
    """What the score is computed from: the answer alone, or the distribution."""
    samples: int = Field(default=1, ge=1)
    """How many trials the run that wrote this took together for one score."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id


class StepsRecord(Frozen):
    """Evaluation steps that a judge wrote for a criterion, once."""

    kind: Literal["steps"] = "steps"
    version: Literal[1] = 1
    key: str
    """Identity of the judgement: :func:`steps_key` of criterion and signature."""
    criterion: Criterion
    """Without the steps."""
    answer: StepsAnswer
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def id(self) -> str:
        """The criterion's name."""
        return self.criterion.name


class QuestionsRecord(Frozen):
    """Questions that a response would reply to, with everything that is needed to read them again.

    A file may say besides how like the row's question they are; a store need not.
    """

    kind: Literal["questions"] = "questions"
    version: Literal[1] = 1
    key: str
    """Identity of the judgement: :func:`questions_key` of the response and the signature."""
    example: KeyedExample
    """The whole row, also what the judge was not shown."""
    answer: QuestionsAnswer
    similarity: Similarity | None = None
    """By the embedder of the run that wrote this; ``None`` where nobody embedded anything."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id


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
    """Requests that were sent for it."""
    reasks: int = 0
    """Answers that were sent back to be mended."""
    usage: Usage | None = None
    """Tokens that were charged all the same."""
    violations: tuple[Violation, ...] = ()
    """What the last answer broke, where the reason is ``contract``."""
    lasting: bool = False
    """Whether asking the same again would most likely end the same, as after a refusal: then it is
    stored, and asked again only on request. ``False`` where the network or the server failed."""
    key: str | None = None
    """Identity of the judgement that was asked for in vain; ``None`` where nothing was asked."""
    signature: Signature | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


AnyRecord = LabelRecord | ScoreRecord | StepsRecord | QuestionsRecord
"""Whatever a judge's answer became: what a store keeps."""
Outcome = LabelRecord | LabelFailure
"""What becomes of a row that is labelled."""
ScoreOutcome = ScoreRecord | LabelFailure
"""What becomes of a row that is scored."""
QuestionsOutcome = QuestionsRecord | LabelFailure
"""What becomes of a row for whose response questions are written."""
AnyOutcome = AnyRecord | LabelFailure
OUTCOME: TypeAdapter[AnyOutcome] = TypeAdapter(Annotated[AnyOutcome, Field(discriminator="kind")])
"""Reads a line of any kind back."""


def labels_among(outcomes: Iterable[AnyOutcome]) -> Iterator[Outcome]:
    """The labels among outcomes of any kind, and the failures of rows that were to be labelled.

    Raises:
        UsageError: it is a path; nothing is read here.
    """
    if isinstance(outcomes, str):
        raise UsageError(f"{outcomes!r} is a path: pass labeler.read_labels({outcomes!r})")
    for outcome in outcomes:
        if isinstance(outcome, LabelRecord) or (
            isinstance(outcome, LabelFailure) and _of_family(outcome, _LABELS)
        ):
            yield outcome


def scores_among(outcomes: Iterable[AnyOutcome]) -> Iterator[ScoreOutcome]:
    """The scores among outcomes of any kind, and the failures of rows that were to be scored."""
    for outcome in outcomes:
        if isinstance(outcome, ScoreRecord) or (
            isinstance(outcome, LabelFailure) and _of_family(outcome, _SCORES)
        ):
            yield outcome


def questions_among(outcomes: Iterable[AnyOutcome]) -> Iterator[QuestionsOutcome]:
    """The written questions among outcomes of any kind, and the failures of rows without them."""
    for outcome in outcomes:
        if isinstance(outcome, QuestionsRecord) or (
            isinstance(outcome, LabelFailure) and _of_family(outcome, _QUESTIONS)
        ):
            yield outcome


def _of_family(failure: LabelFailure, families: frozenset[str]) -> bool:
    """Whether a failure is that of a request for such an answer.

    That of a row that could not even be read is that of every request.
    """
    if failure.signature is None:
        return True
    return failure.signature.response_schema.name.partition("/")[0] in families


_LABELS = frozenset(profile.family for profile in PROFILES.values())
_SCORES = frozenset({"score"})
_QUESTIONS = frozenset({"questions"})


def label_key(example: KeyedExample, signature: Signature) -> str:
    """Name a judgement by all that can change it and nothing else.

    In it: the question, every keyed sentence, and the signature. Not in it: the row's id and
    metadata, offsets, and a reference answer that the judge is not shown, which is one of the
    profile that the signature's schema belongs to.

    Returns:
        64 hexadecimal digits.
    """
    referenced = shows_reference(signature)
    return digest({"shown": shown(example, reference=referenced), "signature": signature.facts()})


def score_key(example: KeyedExample, criterion: Criterion, signature: Signature) -> str:
    """Name a score by all that can change it: what is shown, the criterion, and the signature.

    Not in it: what the criterion does not show, its threshold, the row's id and metadata.

    Returns:
        64 hexadecimal digits.
    """
    parts = criterion.parts(has_reference=bool(example.reference))
    seen = {name: text for name, text in shown(example, reference=True).items() if name in parts}
    facts = {"shown": seen, "criterion": criterion.facts(), "signature": signature.facts()}
    return digest(facts)


def steps_key(criterion: Criterion, signature: Signature) -> str:
    """Name evaluation steps by the criterion's text, its scale, and the signature.

    Returns:
        64 hexadecimal digits.
    """
    facts = {name: fact for name, fact in criterion.facts().items() if name not in _NOT_OF_STEPS}
    return digest({"steps_for": facts, "signature": signature.facts()})


_NOT_OF_STEPS = frozenset({"name", "steps"})


def questions_key(example: KeyedExample, signature: Signature) -> str:
    """Name written questions by the response, which is all that is shown, and the signature.

    Returns:
        64 hexadecimal digits.
    """
    seen = shown(example)["response"]
    return digest({"questions_for": seen, "signature": signature.facts()})


def fault_of(record: AnyRecord) -> str | None:
    """Why a record cannot be what was stored, or ``None`` for a sound one.

    Whoever edits a file can also make it sound again: this finds damage and careless edits.
    """
    if isinstance(record, LabelRecord):
        return _fault_of_label(record)
    if isinstance(record, ScoreRecord):
        return _fault_of_score(record)
    if isinstance(record, QuestionsRecord):
        return _fault_of_questions(record)
    if steps_key(record.criterion, record.signature) != record.key:
        return "its key is not that of its criterion and signature (see steps_key)"
    return None


def _fault_of_score(record: ScoreRecord) -> str | None:
    if score_key(record.example, record.criterion, record.signature) != record.key:
        return "its key is not that of its sentences, criterion and signature (see score_key)"
    if record.answer.score not in record.criterion.scale:
        return "its score is not on the scale of its criterion"
    if (record.method == "logprobs") is not bool(record.distribution):
        return "its method does not fit its distribution"
    known = record.distribution or {}
    if not all(score in record.criterion.scale and 0 < p <= 1 for score, p in known.items()):
        return "its distribution holds a score off the scale, or what is no probability"
    return None


def _fault_of_questions(record: QuestionsRecord) -> str | None:
    if questions_key(record.example, record.signature) != record.key:
        return "its key is not that of its response and signature (see questions_key)"
    return record.similarity.fault() if record.similarity else None


def _fault_of_label(record: LabelRecord) -> str | None:
    if label_key(record.example, record.signature) != record.key:
        return "its key is not that of its question, sentences and signature (see label_key)"
    family = record.signature.response_schema.name.partition("/")[0]
    if type(record.label) is not _OUTPUTS.get(family, type(record.label)):
        return "its label is not of the profile that the schema of its signature belongs to"
    keys = [*record.example.document_keys(), *record.example.response_keys()]
    odd = next((key for key in keys if not is_key(key)), None)
    if odd is not None:
        return f"its sentences have other keys than can be, such as {odd!r:.80}"
    if check_label(record.label, record.example).label != record.label:
        return "its label names keys that its sentences do not have, or a key twice"
    return None


_OUTPUTS = {profile.family: profile.output for profile in PROFILES.values()}


def shows_reference(signature: Signature) -> bool:
    """Whether the judge was shown the reference answer."""
    return signature.response_schema.name.startswith(_SHOWS_REFERENCE)


_SHOWS_REFERENCE = tuple(f"{p.family}/" for p in PROFILES.values() if p.shows_reference)


def shown(example: KeyedExample, *, reference: bool = False) -> dict[str, Any]:
    """What a judge is shown of an example, as a JSON value.

    Args:
        example: the sentences.
        reference: whether the reference answer is shown too.
    """
    value: dict[str, Any] = {
        "question": example.question,
        "documents": [[[s.key, s.text] for s in document] for document in example.documents],
        "response": [[s.key, s.text] for s in example.response],
    }
    if reference:
        value["reference"] = [[s.key, s.text] for s in example.reference or ()]
    return value


def is_canary(outcome: AnyOutcome) -> bool:
    """Whether an outcome is that of a twin, or of one window of a record: both enter no number."""
    made_by = outcome.signature
    return made_by is not None and not made_by.counts
