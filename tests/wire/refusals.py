"""How the provider says no: one form for every endpoint."""

from __future__ import annotations

from wire.calls import Json


class Refused(Exception):
    """A request that an endpoint does not carry out: status, code, message, parameter at fault."""

    def __init__(self, status: int, code: str | None, message: str, param: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(code, message, param=param or None)


def error_body(
    code: str | None, message: str, *, param: str | None = None, kind: str = "stub_error"
) -> Json:
    """An error in the provider's form."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
