"""Which models the provider has, what each refuses, and how it lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wire.calls import Call, Json
from wire.refusals import Refused

MODEL = "stub-1-2026-11-01"


@dataclass(frozen=True)
class ModelCard:
    """One model, by the name in requests, and the ISO date on which it goes away, if announced."""

    name: str
    shutdown_date: str | None = None

    def as_json(self) -> Json:
        """As the models endpoint says it."""
        return {"id": self.name, "object": "model", "created": 1, "owned_by": "stub",
                "shutdown_date": self.shutdown_date}  # fmt: skip


class Models:
    """The models that exist; ``None`` for any name, all served as :data:`MODEL`."""

    def __init__(self, cards: Iterable[ModelCard] | None = None) -> None:
        self._cards = None if cards is None else {card.name: card for card in cards}

    def card(self, name: str) -> ModelCard:
        """The model of that name.

        Raises:
            Refused: there is none.
        """
        if self._cards is None:
            return ModelCard(name)
        if name not in self._cards:
            message = f"The model '{name}' does not exist or you do not have access to it."
            raise Refused(404, "model_not_found", message, param="model")
        return self._cards[name]

    def served(self, call: Call) -> str:
        """The name that an answer to a call states."""
        return MODEL if self._cards is None else self.card(str(call.body.get("model"))).name

    def retrieve(self, call: Call) -> Json:
        """Answer ``GET /v1/models/{id}``."""
        return self.card(call.item).as_json()
