"""Types that msgspec reads, made of the models and values that say what labels are.

They hold what they read to the same fields and types as pydantic does, several times as fast. What
they do not know how to hold it to, a constraint say, is an error where they are made.
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


def struct_of(model: type[BaseModel], **changed: Any) -> type[msgspec.Struct]:  # noqa: ANN401 - types
    """The fields of a model as a struct; those with a default may be missing.

    Args:
        model: the model.
        changed: types of fields that are others here.
    """
    fields: list[tuple[str, Any, Any]] = []
    for name, field in model.model_fields.items():
        needed = field.is_required() or name in changed
        kind = changed.pop(name, None) or field_type(field)
        if needed and msgspec.UnsetType not in get_args(kind):
            fields.append((name, kind, msgspec.NODEFAULT))
        else:
            fields.append((name, Union[kind, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007 - kind is a value
    return _struct(model.__name__, fields, **changed)


def _struct_of_dataclass(kind: type) -> type[msgspec.Struct]:
    """The fields of a dataclass as a struct; none may be missing."""
    fields = [
        (name, _type_of(each), msgspec.NODEFAULT)
        for name, each in get_type_hints(kind, include_extras=True).items()
    ]
    return _struct(kind.__name__, fields)


def _struct(name: str, fields: list[tuple[str, Any, Any]], **more: Any) -> type[msgspec.Struct]:  # noqa: ANN401 - types
    return msgspec.defstruct(
        name, fields, forbid_unknown_fields=True, kw_only=True, gc=False, **more
    )


def field_type(field: FieldInfo) -> Any:  # noqa: ANN401 - a type
    """The type of a model's field, with structs in the places of models.

    Raises:
        TypeError: it has a constraint that structs are not held to.
    """
    if any(not isinstance(each, AllowInfNan) for each in field.metadata):
        raise TypeError(f"a constraint that is not known here: {field.metadata}")
    return _type_of(field.annotation)


def _type_of(annotation: Any) -> Any:  # noqa: ANN401 - types
    """The same type with structs in the places of models, and lists in those of tuples.

    Lists are made faster, and no one sees them.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        # A float of JSON is finite here whatever is asked for.
        if any(not isinstance(each, AllowInfNan) for each in arguments[1:]):
            raise TypeError(f"a constraint that is not known here: {annotation}")
        return _type_of(arguments[0])
    if isinstance(annotation, type):
        return _of_class(annotation)
    if origin is None or origin is Literal:
        return annotation
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return several(_type_of(arguments[0]))
    inner = tuple(_type_of(each) for each in arguments)
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, inner)
    return origin[inner]


def _of_class(kind: type) -> type:
    if issubclass(kind, BaseModel):
        return struct_of(kind)
    return _struct_of_dataclass(kind) if dataclasses.is_dataclass(kind) else kind


def either(kind: Any) -> Any:  # noqa: ANN401 - types
    """The type, for a field that labels of other profiles lack."""
    return Union[kind, msgspec.UnsetType]  # noqa: UP007 - kind is a value


def several(kind: Any) -> Any:  # noqa: ANN401 - types
    """The type of a list of it."""
    return types.GenericAlias(list, (kind,))
