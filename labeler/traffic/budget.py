"""A lid on what a run may cost, in US dollars."""

from __future__ import annotations

from decimal import Decimal


class Budget:
    """Reserves the worst case before each request, so that it is never overspent.

    Args:
        cap: dollars that may be spent.
    """

    def __init__(self, cap: Decimal) -> None:
        self.cap = cap
        self.spent = Decimal(0)
        self.reserved = Decimal(0)
        self.closed = False
        """Whether a request was refused. Smaller ones that would still fit are refused as well: a
        run that labels only short records from there on would no longer be a fair sample."""

    def reserve(self, worst: Decimal) -> bool:
        """Set the worst case of a request aside; whether it fitted."""
        if self.closed or self.spent + self.reserved + worst > self.cap:
            return False
        self.reserved += worst
        return True

    def settle(self, reserved: Decimal, actual: Decimal) -> None:
        """Note what a request did cost, and free what was set aside for it."""
        self.reserved -= reserved
        self.spent += actual
