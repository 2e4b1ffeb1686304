"""Fast decoding of a label's JSON into an index row, as strict as reading label files.

It checks the same as :mod:`labeler.data.label_files`: the type of every field, no unknown fields,
the key recomputed from sentences and signature, the profile, and that the label names only its own
sentences. A line that fails a check is passed to the models of :mod:`labeler.labels.record`, which
decide and report errors. So this module may reject too much, never too little. A valid record that
it rejects is written as JSON and decoded once more.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any, NamedTuple

import msgspec

from labeler.calculators.columns import (
    BY_CONVERSATION,
    CITING,
    COMPARED,
    CONTRADICTED,
    CONTRADICTING,
    COUNTERPART,
    ENTAILED,
    ENTAILING,
    GENERAL,
    GROUNDED,
    IN_CHUNK,
    ON_TOPIC,
    RELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    UTILIZED,
    WELL_CITED,
)
from labeler.calculators.index.rows import IndexRow, Unindexable, metadata_text
from labeler.calculators.index.structs import (
    NO_PROFILE_FIELDS,
    OBJECT,
    RECORD,
    SIGNATURE,
    profile_fields,
)
from labeler.calculators.tally import (
    COMPLETENESS,
    CitationCounts,
    count_citations,
    count_stored,
    sum_probabilities,
)
from labeler.calculators.tally import GENERAL as GENERAL_SUPPORT
from labeler.labels.answering import LONGEST_NAME, AnsweringModel
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.non_answers import OVERRULED
from labeler.labels.profiles import BY_FAMILY, family_of, lacks_relevance
from labeler.labels.record import (
    LabelRecord,
    key_of,
    retrieval_key,
    shows_reference,
)
from labeler.labels.signature import Signature, canonical_json
from labeler.sentences.example import KeyedToolOutput, KeyedTurn, Sentence
from labeler.sentences.keys import (
    document_key,
    history_key,
    reference_key,
    response_key,
    tool_key,
)

_SPECIAL = frozenset(SPECIAL_SUPPORT)
_ENTAILMENT, _CONTRADICTION = "entailment", "contradiction"
_DEEPEST = 64
"""Deepest nesting of metadata that is decoded here; the models have their own limit."""


class NeedsValidation(Exception):
    """A line that the pydantic models must validate."""


def decode_label(content: bytes, key: str | None = None) -> IndexRow | None:
    """Decode the JSON of a label record.

    Args:
        content: the JSON.
        key: the expected label key, if known.

    Returns:
        Its index row; ``None`` for a valid label that enters no number, such as a canary's.

    Raises:
        NeedsValidation: it is another kind of record, damaged, edited, or merely unusual.
    """
    try:
        record = RECORD.decode(content)
        if key is not None and key != record.key:
            raise NeedsValidation
        signature = bytes(record.signature)
        read = _common_signature if len(signature) <= _LONGEST_SIGNATURE else _signature
        signed, facts = read(signature)
        row = _row(record, signed, facts)
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
        pass
    else:
        return row if signed.counts else None
    raise NeedsValidation  # not from the error, whose message may hold most of the line


def label_row(record: LabelRecord) -> IndexRow:
    """Return the index row of a valid label that enters numbers.

    Raises:
        Unindexable: a sentence has another key than that of its position, or the metadata is not
            JSON.
    """
    metadata = metadata_text(record.example.metadata)
    try:
        row = decode_label(record.model_dump_json().encode())
    except NeedsValidation as error:
        raise Unindexable(
            f"record {record.id!r}: its sentences have other keys than their places, or its "
            "content is unusual"
        ) from error
    if row is None:
        raise Unindexable(f"record {record.id!r} enters no number")
    return row._replace(metadata=metadata)


class _Signed(NamedTuple):
    """Facts of a signature that its labels share.

    Attributes:
        label: the printed signature.
        asked: kind of judge, and the requested model.
        counts: True if such labels enter numbers; False for canaries.
        family: common prefix of the schema names of its profile.
        references: True if the judge saw the reference answer.
        lacks_relevance: True if a retrieval label has the relevance.
        before: its facts in canonical JSON, up to the source of an imported label.
        after: its facts after the source.
    """

    label: str
    asked: tuple[str, str]
    counts: bool
    family: str
    references: bool
    lacks_relevance: bool
    before: bytes
    after: bytes

    def facts(self, source: str | None) -> bytes:
        """Return the facts that enter the label key."""
        if source is None:
            return self.before + self.after
        return self.before + b'"source":' + msgspec.json.encode(source) + b"," + self.after


_LONGEST_SIGNATURE = 1 << 14
"""Maximum bytes of a cached signature, so that the cache stays within megabytes."""


def _signature(content: bytes) -> tuple[_Signed, bytes]:
    """Return a signature's facts, and those that enter the key, from its JSON."""
    given = SIGNATURE.decode(content)
    source = _or(given.source, None)
    given.source = msgspec.UNSET
    unsourced = msgspec.json.encode(given)
    read = _common_signed if len(unsourced) <= _LONGEST_SIGNATURE else _signed
    signed = read(unsourced)
    return signed, signed.facts(source)


_common_signature = lru_cache(maxsize=1024)(_signature)


def _signed(content: bytes) -> _Signed:
    """Return the facts of a signature without a source, from its JSON."""
    read = Signature.model_validate_json(content)
    signature = read.model_copy(update={"source": _MARK})
    before, *after = canonical_json(signature.facts()).split(f'"source":"{_MARK}",'.encode())
    if len(after) != 1:
        raise NeedsValidation
    return _Signed(
        label=str(signature),
        asked=(signature.judge[:LONGEST_NAME], signature.model[:LONGEST_NAME]),
        counts=signature.counts,
        family=family_of(signature.response_schema.name),
        references=shows_reference(signature),
        lacks_relevance=signature.part is None and lacks_relevance(signature.response_schema.name),
        before=before,
        after=after[0],
    )


_common_signed = lru_cache(maxsize=1024)(_signed)

_MARK = "5f2b0c6e-the-source-of-an-imported-label"
_PROFILE_OF = {family: profile.name for family, profile in BY_FAMILY.items()}


def _object(content: bytes) -> dict[str, Any]:
    """Decode a JSON object within the limit of nesting."""
    found = OBJECT.decode(content)
    if content.count(b"[") + content.count(b"{") <= _DEEPEST:
        return found
    level: list[object] = [found]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return found
    raise NeedsValidation


def _inside(value: object) -> Iterable[object]:
    """Return the lists and objects inside a list or object."""
    inside = value.values() if isinstance(value, dict) else value
    return [each for each in inside if isinstance(each, dict | list)]  # type: ignore[attr-defined]


def _or(value: Any, default: Any) -> Any:  # noqa: ANN401 - whatever a field may hold
    return default if value is msgspec.UNSET else value


def _row(record: Any, signed: _Signed, facts: bytes) -> IndexRow:  # noqa: ANN401 - as above
    example, label, verbatim = record.example, record.label, record.verbatim
    sizes = tuple(map(len, example.documents))
    shape = _common_shape(sizes) if max(sum(sizes), len(sizes)) <= _FEW else _shape_of(sizes)
    pairs = [[(s.key, s.text) for s in part] for part in example.documents]
    lengths = {key: len(text) for key, text in chain.from_iterable(pairs)}
    if list(lengths) != shape.keys or len(lengths) < sum(sizes):
        raise NeedsValidation
    response, positions = _in_order(example.response, response_key)
    shown = {"documents": pairs, "question": example.question, "response": response}
    if signed.references:
        shown = _with_reference(shown, example)
    shown, conversation = _with_conversation(shown, example)
    # Canonical JSON has sorted keys and no spaces; for texts alone, msgspec writes the same.
    there = {name: part for name, part in shown.items() if part}
    if key_of(_ENCODE(there), facts) != record.key:
        raise NeedsValidation
    profile = _profile(label)
    if _PROFILE_OF.get(signed.family, profile) != profile:
        raise NeedsValidation
    places, documents = shape.places, bytearray(len(sizes))
    relevant = _marked(label.all_relevant_sentence_keys, RELEVANT, places, documents)
    utilized = _marked(label.all_utilized_sentence_keys, UTILIZED, places, documents)
    both = relevant & utilized
    marked = [relevant - both, utilized - both, both]
    counts = list(map(len, marked))
    characters = [sum(map(lengths.__getitem__, some)) for some in marked]
    answer = label
    if verbatim is not msgspec.UNSET and verbatim is not None:
        _profile_of_verbatim(verbatim)
        if OVERRULED.isdisjoint(_or(record.normalised, ())):
            answer = verbatim
    basis = _or(record.retrieval, None)
    if basis is not None or signed.lacks_relevance:
        _require_basis(basis, example, label.all_relevant_sentence_keys)
    evidence = places | conversation if conversation else places
    metadata = b"{}" if example.metadata is msgspec.UNSET else bytes(example.metadata)
    reference = b""
    if profile == "reference":
        reference = bytes(sorted(_reference_claims(example, label, places, documents)))
    cited = count_citations(dict(response), len(sizes), _supports(label, evidence))
    claims = b""
    if profile != "trace":
        claims = bytes(sorted(_claims(label, evidence, positions, documents)))
    return IndexRow(
        id=example.id,
        key=record.key,
        content=_content(label, _or(verbatim, None)),
        label=signed.label,
        answered=_answered(record.reply, signed),
        failed=None,
        profile=profile,
        question=example.question,
        metadata=metadata.decode(),
        columns=_object(metadata).keys(),
        documents=bytes(documents),
        response=bytes(sorted(_response_marks(label, evidence, positions, cited))),
        claims=claims,
        reference_claims=reference,
        numbers=(
            *count_stored(answer),
            cited.pairs,
            cited.correct,
            *_probabilities(record, lengths),
            bool(example.history or example.tool_outputs),
            len(lengths) - sum(counts),
            *counts,
            sum(lengths.values()) - sum(characters),
            *characters,
        ),
    )


def _probabilities(record: Any, keys: Iterable[str]) -> tuple[int, ...]:  # noqa: ANN401 - as above
    """Return whether there are probabilities, their sums, and whether completeness is measured."""
    found = sum_probabilities(_or(record.scores, None), keys)
    measured = COMPLETENESS not in _or(record.not_measured, ())
    return (found is not None, *(found or (0, 0, 0)), measured)


def _require_basis(basis: Any, example: Any, relevant: list[str]) -> None:  # noqa: ANN401 - as above
    """Require a retrieval label of the question and documents, with the same relevance."""
    if basis is None:
        raise NeedsValidation
    signature = _parsed_signature(bytes(basis.signature))
    if basis.key != retrieval_key(example, signature):
        raise NeedsValidation
    if basis.all_relevant_sentence_keys != relevant:
        raise NeedsValidation


_parsed_signature = lru_cache(maxsize=256)(Signature.model_validate_json)


def _answered(reply: Any, signed: _Signed) -> bytes:  # noqa: ANN401 - as above
    """Return the model that answered, as :meth:`AnsweringModel.of` does, in JSON."""
    name, host = (reply.served_model or "", reply.host or "") if reply else ("", "")
    return _encoded_model(*signed.asked, name[:LONGEST_NAME], host[:LONGEST_NAME])


@lru_cache(maxsize=256)
def _encoded_model(*parts: str) -> bytes:
    return _ENCODE(AnsweringModel(*parts))


_ENCODE = msgspec.json.Encoder().encode


def _content(*answers: Any) -> int:  # noqa: ANN401 - as above
    """Return the digest of answers; the same in every spelling of their JSON."""
    return int.from_bytes(hashlib.sha256(_ENCODE(answers)).digest()[:8], "little")


_PAIR = operator.attrgetter("key", "text")


def _with_reference(shown: dict[str, Any], example: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Return what was shown with the reference answer, sorted by name."""
    reference = list(map(_PAIR, _or(example.reference, None) or ()))
    return dict(sorted({**shown, "reference": reference}.items()))


def _with_conversation(shown: dict[str, Any], example: Any) -> tuple[dict[str, Any], _Places]:  # noqa: ANN401 - as above
    """Return what was shown with turns and tool outputs, sorted by name, and their sentences."""
    turns, outputs = _or(example.history, ()), _or(example.tool_outputs, ())
    example.history = tuple(KeyedTurn(one.role, _sentences(one)) for one in turns)
    example.tool_outputs = tuple(KeyedToolOutput(_sentences(one), one.name) for one in outputs)
    if not turns and not outputs:
        return shown, {}
    found, places = dict(shown), {}
    for number, turn in enumerate(turns):
        pairs, keys = _in_order(turn.sentences, partial(history_key, number))
        found.setdefault("history", []).append((turn.role, pairs))
        places.update(keys)
    for number, output in enumerate(outputs):
        pairs, keys = _in_order(output.sentences, partial(tool_key, number))
        found.setdefault("tool_outputs", []).append(pairs)
        places.update(keys)
    return dict(sorted(found.items())), dict.fromkeys(places, _NO_DOCUMENT)


def _sentences(part: Any) -> tuple[Sentence, ...]:  # noqa: ANN401 - as above
    return tuple(Sentence(s.key, s.text, s.start, s.end) for s in part.sentences)


def _profile(label: Any) -> str:  # noqa: ANN401 - as above
    """Return the profile whose fields a label has exactly."""
    found = profile_fields(label)
    if found == NO_PROFILE_FIELDS:
        return "trace"
    there = [value is not msgspec.UNSET for value in found]
    claims, reference = there[:2], there[2:]
    compared = {
        claim.reference_verdict is not msgspec.UNSET for claim in _or(label.response_claims, ())
    }
    if all(claims) and not any(reference) and True not in compared:
        return "claims"
    if all(there) and False not in compared:
        return "reference"
    raise NeedsValidation


def _profile_of_verbatim(label: Any) -> None:  # noqa: ANN401 - as above
    """Require a profile of an answer as given; only ``trace`` allows gaps."""
    gaps = any(entry.fully_supported is None for entry in label.sentence_support_information)
    if _profile(label) != "trace" and gaps:
        raise NeedsValidation


_Places = dict[str, int]
"""Document of each document sentence, or position of each other sentence, by its key."""
_NO_DOCUMENT = -1
"""Document of a sentence of the conversation, which may support a response."""
_FEW = 128
"""Maximum sentences, and documents, of a record whose keys are cached, so that the cache stays
within megabytes."""
_DOCUMENTS, _FIRST = 1024, 64
"""Documents, and sentences of each, whose keys are cached."""


class _Shape(NamedTuple):
    """Keys of the document sentences of records with equal document sizes.

    Attributes:
        keys: of all document sentences, in order.
        places: document of each key.
    """

    keys: list[str]
    places: _Places


def _shape_of(sizes: tuple[int, ...]) -> _Shape:
    keys: list[str] = []
    for number, size in enumerate(sizes):
        kept = _first_keys(number)[:size] if number < _DOCUMENTS else []
        keys += kept
        keys += (document_key(number, sentence) for sentence in range(len(kept), size))
    owners = chain.from_iterable(map(repeat, range(len(sizes)), sizes))
    return _Shape(keys, dict(zip(keys, owners, strict=True)))


_common_shape = lru_cache(maxsize=4096)(_shape_of)


@lru_cache(maxsize=_DOCUMENTS)
def _first_keys(document: int) -> list[str]:
    return [document_key(document, sentence) for sentence in range(_FIRST)]


def _in_order(sentences: Any, key: Callable[[int], str]) -> tuple[list[tuple[str, str]], _Places]:  # noqa: ANN401 - as above
    """Return keys and texts of sentences, and positions of the keys, which must be in order."""
    keys_of = _keys_of_few if len(sentences) <= _FEW else _keys_of
    known = keys_of(len(sentences), key)
    found = list(map(_PAIR, sentences))
    if [name for name, _ in found] != list(known):
        raise NeedsValidation
    return found, known


def _keys_of(size: int, key: Callable[[int], str]) -> _Places:
    return {key(sentence): sentence for sentence in range(size)}


_keys_of_few = lru_cache(maxsize=2 * _FEW + 2)(_keys_of)


def _marked(keys: list[str], mark: int, places: _Places, documents: bytearray) -> set[str]:
    """Return keys as a set, and mark the documents that hold one."""
    for document in set(map(places.__getitem__, keys)):
        documents[document] |= mark
    found = set(keys)
    if len(found) < len(keys):
        raise NeedsValidation
    return found


def _supports(label: Any, places: _Places) -> Iterator[tuple[str, set[int]]]:  # noqa: ANN401 - as above
    """Yield each judged sentence and the documents of its support."""
    for entry in label.sentence_support_information:
        named = {places[key] for key in entry.supporting_sentence_keys if key in places}
        yield entry.response_sentence_key, named - {_NO_DOCUMENT}


def _response_marks(
    label: Any,  # noqa: ANN401 - as above
    places: _Places,
    positions: _Places,
    cited: CitationCounts,
) -> bytes:
    marks = bytearray(len(positions))
    for entry in label.sentence_support_information:
        mark = SUPPORTED if entry.fully_supported else UNSUPPORTED
        support = entry.supporting_sentence_keys
        if support:
            mark |= _kind_of(support, places)
        marks[positions[entry.response_sentence_key]] |= mark
    for key in cited.complete:
        marks[positions[key]] |= WELL_CITED
    return bytes(marks.translate(_SETTLED))


def _kind_of(support: list[str], places: _Places) -> int:
    """Return the mark of support, which may name existing sentences and special strings."""
    if len(support) == 1 and support[0] in places:  # by far the most
        return BY_CONVERSATION if places[support[0]] == _NO_DOCUMENT else CITING
    _require_known(support, places)
    if support == [GENERAL_SUPPORT]:
        return GENERAL
    named = {places[key] == _NO_DOCUMENT for key in support if key in places}
    return CITING * (False in named) | BY_CONVERSATION * (True in named)


def _settled(mark: int) -> int:
    """Combine the marks of several verdicts on a sentence: one that is unsupported prevails."""
    positive = SUPPORTED | GENERAL | WELL_CITED | BY_CONVERSATION
    return mark & ~positive if mark & UNSUPPORTED else mark


_SETTLED = bytes(map(_settled, range(256)))


def _require_distinct(keys: Sequence[str]) -> None:
    if len(set(keys)) < len(keys):
        raise NeedsValidation


def _require_known(keys: Sequence[str], places: _Places) -> None:
    """Require distinct support of existing sentences and special strings."""
    _require_distinct(keys)
    if not all(key in places or key in _SPECIAL for key in keys):
        raise NeedsValidation


def _claims(
    label: Any,  # noqa: ANN401 - as above
    places: _Places,
    sentences: _Places,
    documents: bytearray,
) -> Iterable[int]:
    """Yield the marks of the response's claims, and mark the documents that contradict one."""
    silent = label.response_sentences_without_claims
    _require_distinct(silent)
    if not all(key in sentences for key in silent):
        raise NeedsValidation
    for claim in label.response_claims:
        _require_known(claim.supporting_sentence_keys, places)
        _require_distinct(claim.contradicting_sentence_keys)
        if claim.response_sentence_key not in sentences:
            raise NeedsValidation
        entailed = claim.verdict == _ENTAILMENT
        support = _documents(claim.supporting_sentence_keys if entailed else (), places)
        for place in _documents(claim.contradicting_sentence_keys, places, special=False):
            documents[place] |= CONTRADICTING
        compared = claim.reference_verdict is not msgspec.UNSET
        yield (
            ENTAILED * entailed
            | ON_TOPIC * claim.relevant_to_question
            | COMPARED * compared
            | COUNTERPART * (compared and claim.reference_verdict == _ENTAILMENT)
            | CONTRADICTED * (claim.verdict == _CONTRADICTION)
            | GROUNDED * bool(support)
            | IN_CHUNK * any(documents[place] & ENTAILING for place in support)
        )


def _reference_claims(
    example: Any,  # noqa: ANN401 - as above
    label: Any,  # noqa: ANN401 - as above
    places: _Places,
    documents: bytearray,
) -> bytes:
    """Return the marks of the reference answer's claims, and mark the documents that entail one."""
    _, sentences = _in_order(_or(example.reference, None) or (), reference_key)
    silent = label.reference_sentences_without_claims
    _require_distinct(silent)
    claims = label.reference_claims
    named = chain(silent, (claim.reference_sentence_key for claim in claims))
    if not all(key in sentences for key in named):
        raise NeedsValidation
    for claim in claims:
        _require_distinct(claim.supporting_sentence_keys)
        for place in _documents(claim.supporting_sentence_keys, places, special=False):
            documents[place] |= ENTAILING
    return bytes(
        ENTAILED * bool(claim.supporting_sentence_keys)
        | COMPARED
        | COUNTERPART * (claim.response_verdict == _ENTAILMENT)
        for claim in claims
    )


def _documents(keys: Iterable[str], places: _Places, *, special: bool = True) -> set[int]:
    """Return the documents that hold one of the sentences."""
    named = [key for key in keys if not (special and key in _SPECIAL)]
    if not all(key in places for key in named):
        raise NeedsValidation
    return {places[key] for key in named} - {_NO_DOCUMENT}
