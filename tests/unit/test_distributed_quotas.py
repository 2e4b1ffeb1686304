"""One budget and one rate for several workers: never overspent, whoever dies."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from labeler.integrations.ray.quotas import (
    LEASE_SECONDS,
    LOST_AFTER,
    QuotaServer,
    SharedBucket,
    SharedBudget,
    Spending,
    WorkerQuotas,
)
from labeler.judges.traffic.limits import Limits, Size
from labeler.judges.traffic.traffic import BudgetSpent, Traffic

CENT = Decimal("0.01")


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def ledger(budget: str = "1", workers: int = 2, clock: Clock | None = None) -> QuotaServer:
    """A ledger of a budget."""
    return QuotaServer(Limits(budget=Decimal(budget)), workers, clock or Clock())


def test_workers_never_reserve_more_than_the_budget_together() -> None:
    """Each takes what it can get."""
    book = ledger("1")
    budgets = [SharedBudget(Decimal(1), book) for _ in range(3)]
    reserved = sum(budget.reserve(3 * CENT) for budget in budgets for _ in range(100))
    assert reserved * 3 * CENT <= 1
    assert reserved == 33


def test_what_answers_cost_less_than_feared_can_be_spent_by_others() -> None:
    """Money comes back when a worker is done with its part."""
    book = ledger("0.10")
    first, second = (SharedBudget(Decimal("0.10"), book) for _ in range(2))
    assert first.reserve(10 * CENT)
    assert not second.reserve(5 * CENT)
    first.settle(10 * CENT, CENT)
    first.release()
    assert second.reserve(9 * CENT)


def test_who_finds_the_money_in_other_hands_looks_again() -> None:
    """It may come back, so the budget is not at its end."""
    book = ledger("0.10")
    first, second = (SharedBudget(Decimal("0.10"), book) for _ in range(2))
    first.reserve(10 * CENT)
    assert not second.reserve(CENT)
    assert second.retry_after < 1
    assert not second.closed


def test_two_that_hold_what_the_other_needs_do_not_wait_for_ever() -> None:
    """Who asks gives back what it has left."""
    book = QuotaServer(Limits(budget=Decimal(1)), 1, Clock())
    first, second = (SharedBudget(Decimal(1), book) for _ in range(2))
    for budget in (first, second):  # each holds a lease of which nothing is in flight
        assert budget.reserve(CENT)
        budget.settle(CENT, Decimal(0))
    assert not first.reserve(Decimal(1))
    assert second.reserve(Decimal(1))


def test_a_budget_that_nobody_can_free_is_closed_for_all() -> None:
    """From then on smaller requests are refused as well, as on one machine."""
    book = ledger("0.10")
    first, second = (SharedBudget(Decimal("0.10"), book) for _ in range(2))
    assert not first.reserve(11 * CENT)
    assert first.closed
    assert not second.reserve(CENT)
    assert second.closed


def test_what_a_dead_worker_held_stays_spent() -> None:
    """Its requests may have been charged."""
    clock = Clock()
    book = ledger("0.10", clock=clock)
    SharedBudget(Decimal("0.10"), book).reserve(6 * CENT)
    clock.now = 10 * LEASE_SECONDS
    other = SharedBudget(Decimal("0.10"), book)
    assert not other.reserve(5 * CENT)
    assert other.closed
    assert book.final() == Spending(Decimal(0), 6 * CENT)


def test_nobody_waits_for_a_worker_whose_lease_has_ended() -> None:
    """Until then it may live."""
    clock = Clock()
    book = ledger("0.10", clock=clock)
    SharedBudget(Decimal("0.10"), book).reserve(10 * CENT)
    other = SharedBudget(Decimal("0.10"), book)
    assert book.lease("x", Spending(), CENT).pending
    clock.now = LEASE_SECONDS + 1
    assert not other.reserve(CENT)
    assert other.closed


def test_a_late_answer_of_a_worker_thought_dead_is_counted_once() -> None:
    """What it held was never given to others."""
    clock = Clock()
    book = ledger("0.10", clock=clock)
    late = SharedBudget(Decimal("0.10"), book)
    late.reserve(6 * CENT)
    clock.now = LEASE_SECONDS + 1
    late.settle(6 * CENT, 2 * CENT)
    late.release()
    assert book.final() == Spending(2 * CENT)
    assert SharedBudget(Decimal("0.10"), book).reserve(8 * CENT)


def test_the_traffic_of_a_run_keeps_to_its_share() -> None:
    """A request that does not fit ends with the words that one machine has for it."""
    book = ledger("0.02", workers=1)
    given = Limits(budget=2 * CENT)
    limits = replace(given, shared=WorkerQuotas(given, 1, book))

    async def ask() -> None:
        traffic = Traffic(limits=limits)
        async with traffic.request("r1", Size(worst_cost=2 * CENT)) as sent:
            sent.answered(cost=CENT)
        async with traffic.request("r2", Size(worst_cost=2 * CENT)):
            pass

    with pytest.raises(BudgetSpent, match=r"the budget of \$0.02 does not cover"):
        asyncio.run(ask())


def test_traffic_waits_for_money_that_another_worker_gives_back() -> None:
    """Nothing of its own is in flight, and yet it goes on."""
    book = ledger("0.02", workers=1)
    other = SharedBudget(2 * CENT, book)
    other.reserve(2 * CENT)
    given = Limits(budget=2 * CENT)
    limits = replace(given, shared=WorkerQuotas(given, 1, book))

    async def ask() -> Decimal:
        traffic = Traffic(limits=limits)
        traffic.budget.retry_after = 0.0

        async def give_back() -> None:
            other.settle(2 * CENT, Decimal(0))
            other.release()

        giving = asyncio.get_running_loop().create_task(give_back())
        async with traffic.request("r1", Size(worst_cost=2 * CENT)) as sent:
            sent.answered(cost=CENT)
        await giving
        return traffic.budget.known

    assert asyncio.run(ask()) == CENT


def test_workers_share_one_rate() -> None:
    """Sixty a minute are one a second, however many ask; each waits its turn."""
    clock = Clock()
    book = QuotaServer(Limits(requests_per_minute=60), 3, clock)
    buckets = [SharedBucket("requests", 1 / 3, book, clock) for _ in range(3)]
    waits = [bucket.wait(1.0) for bucket in buckets]
    assert waits == pytest.approx([0.0, 1.0, 2.0])
    assert [bucket.wait(1.0) for bucket in buckets] == pytest.approx(waits)


def test_tokens_that_were_not_used_are_given_back() -> None:
    """What was reserved was more than the answer took."""
    clock = Clock()
    book = QuotaServer(Limits(tokens_per_minute=600), 2, clock)
    bucket = SharedBucket("tokens", 1.0, book, clock)
    assert bucket.wait(600) == 0
    bucket.take(600)
    bucket.take(-500)
    bucket.release()
    assert book.grant("tokens", 500) == 0


def test_without_limits_nothing_is_asked_of_the_ledger() -> None:
    """Money is merely added up."""
    shares = WorkerQuotas(Limits(), 2, QuotaServer(Limits(), 2))
    limits = replace(Limits(), shared=shares)
    assert shares.budget().reserve(Decimal(1000))
    assert limits.shared is not None
    assert limits.shared.buckets() == {}


def test_a_part_that_ends_worker_after_worker_is_given_up() -> None:
    """It would be tried for ever."""
    book = ledger()
    assert [book.begin("p") for _ in range(LOST_AFTER)] == [""] * LOST_AFTER
    assert book.begin("p") == "lost"
    assert book.begin("q") == ""
