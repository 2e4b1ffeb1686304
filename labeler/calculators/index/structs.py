"""msgspec decoders of stored labels, derived from their pydantic models.

They enforce the same fields and types as pydantic, several times as fast. A model with anything
that they cannot enforce, such as a constraint, raises an error on import.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import AllowInfNan, BaseModel
from pydantic.fields import FieldInfo

from labeler.labels.answers import ComparedClaim, ReferenceLabelingOutput, VerbatimSupport
from labeler.labels.record import LabelRecord, RetrievalBasis
from labeler.labels.signature import Signature
from labeler.sentences.example import KeyedExample


def _struct_of(model: type[BaseModel], **changed: Any) -> type[msgspec.Struct]:  # noqa: ANN401 - types
    """Return a model as a struct; fields with a default may be missing.

    Args:
        model: the model.
        changed: types that replace those of fields.
    """
    fields = {
        name: _field_type(field) if field.is_required() else _optional(_field_type(field))
        for name, field in model.model_fields.items()
        if name not in changed
    }
    return _struct(model.__name__, fields | changed)


def _struct(name: str, fields: dict[str, Any]) -> type[msgspec.Struct]:
    """Return a struct; fields whose type has ``UnsetType`` may be missing."""
    defined = [
        (field, kind, msgspec.UNSET if msgspec.UnsetType in get_args(kind) else msgspec.NODEFAULT)
        for field, kind in fields.items()
    ]
    return msgspec.defstruct(name, defined, forbid_unknown_fields=True, kw_only=True, gc=False)


def _field_type(field: FieldInfo) -> Any:  # noqa: ANN401 - a type
    """Return the type of a model's field, with structs for models.

    Raises:
        TypeError: it has a constraint that structs do not enforce.
    """
    if any(not isinstance(each, AllowInfNan) for each in field.metadata):
        raise TypeError(f"a constraint that is not known here: {field.metadata}")
    return _type_of(field.annotation)


def _type_of(annotation: Any) -> Any:  # noqa: ANN401 - types
    """Return a type with structs for models and lists, which decode faster, for tuples."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        # msgspec accepts finite floats only.
        if any(not isinstance(each, AllowInfNan) for each in arguments[1:]):
            raise TypeError(f"a constraint that is not known here: {annotation}")
        return _type_of(arguments[0])
    if isinstance(annotation, type):
        return _of_class(annotation)
    if origin is None or origin is Literal:
        return annotation
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return _list_of(_type_of(arguments[0]))
    inner = tuple(_type_of(each) for each in arguments)
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, inner)
    return origin[inner]


def _of_class(kind: type) -> type:
    if issubclass(kind, BaseModel):
        return _struct_of(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return _struct(kind.__name__, {name: _type_of(each) for name, each in hints.items()})
    return kind


def _optional(kind: Any) -> Any:  # noqa: ANN401 - types
    """Return the type of a field that may be missing."""
    return Union[kind, msgspec.UnsetType]  # noqa: UP007 - kind is a value


def _list_of(kind: Any) -> Any:  # noqa: ANN401 - types
    """Return the type of a list."""
    return types.GenericAlias(list, (kind,))


_COMPARED_CLAIM = _struct_of(
    ComparedClaim,
    reference_verdict=_optional(_field_type(ComparedClaim.model_fields["reference_verdict"])),
)
_PROFILE_FIELDS = {
    "response_claims": _optional(_list_of(_COMPARED_CLAIM)),
    **{
        name: _optional(_field_type(ReferenceLabelingOutput.model_fields[name]))
        for name in (
            "response_sentences_without_claims",
            "reference_claims",
            "reference_sentences_without_claims",
        )
    },
}
"""The fields that labels of some profiles lack."""
profile_fields = operator.attrgetter(*_PROFILE_FIELDS)
NO_PROFILE_FIELDS = (msgspec.UNSET,) * len(_PROFILE_FIELDS)
_LABEL = _struct_of(ReferenceLabelingOutput, **_PROFILE_FIELDS)
_VERBATIM = _struct_of(
    ReferenceLabelingOutput,
    **_PROFILE_FIELDS,
    sentence_support_information=_list_of(_struct_of(VerbatimSupport)),
)
SIGNATURE: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    _struct_of(Signature, sampling=_optional(msgspec.Raw))
)
_EXAMPLE = _struct_of(KeyedExample, metadata=_optional(msgspec.Raw))
RECORD: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    _struct_of(
        LabelRecord,
        kind=_field_type(LabelRecord.model_fields["kind"]),
        example=_EXAMPLE,
        label=_LABEL,
        verbatim=_optional(_optional(None) | _VERBATIM),
        # Raw, because most labels of a file have the same bytes here, which are parsed once.
        signature=msgspec.Raw,
        retrieval=_optional(_struct_of(RetrievalBasis, signature=msgspec.Raw) | None),
    )
)
OBJECT = msgspec.json.Decoder(dict[str, Any])
