"""The pace of a run: slots, buckets, breaker, budget; hours of it in virtual time."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import pytest

from labeler.errors import RunPaused
from labeler.judges.concurrency import Level
from labeler.judges.limits import Bucket, Budget, Limits, Quota, Size, retry_after
from labeler.judges.pace import BudgetSpent, Pace, Stopped
from support.virtual_time import now, run

T = TypeVar("T")


def stated(**quotas: Quota | None) -> dict[str, str]:
    """The headers that name quotas by unit."""
    return {
        f"x-ratelimit-{name}-{unit}": str(value)
        for unit, quota in quotas.items()
        if quota is not None
        for name, value in asdict(quota).items()
    }


class Server:
    """Allows so many requests a second, answers after a while, and may be down for a time.

    A share of all requests, the noise, meets a rate limit that is not of our making.
    """

    def __init__(
        self,
        rate: float = 1e9,
        burst: float = 1e9,
        *,
        latency: float = 0.2,
        jitter: float = 0.5,
        headers: bool = False,
        down: tuple[float, float] = (0.0, 0.0),
        noise: float = 0.0,
    ) -> None:
        self._noise = noise
        self.headers, self.down, self._latency, self._jitter = headers, down, latency, jitter
        self.bucket = Bucket(rate, burst, now)
        self._rate, self._burst = rate, burst
        self.sent: list[float] = []
        self.limited = 0
        self.most = self._out = 0

    def quota(self) -> Quota | None:
        """The quota as headers report it."""
        if not self.headers:
            return None
        level = max(0.0, self.bucket.level)
        return Quota(self._burst, level, (self._burst - level) / self._rate)

    async def answer(self) -> tuple[int, Quota | None]:
        """A status and the headers."""
        self.sent.append(now())
        if self.bucket.wait(1) or random.random() < self._noise:  # noqa: S311 - a load
            self.limited += 1
            await asyncio.sleep(0.005)
            return 429, self.quota()
        self.bucket.take(1)
        quota = self.quota()
        if self.down[0] <= now() < self.down[1]:
            await asyncio.sleep(0.01)
            return 500, quota
        self._out += 1
        self.most = max(self.most, self._out)
        share = random.uniform(1 - self._jitter, 1 + self._jitter)  # noqa: S311 - a load
        await asyncio.sleep(self._latency * share)
        self._out -= 1
        return 200, quota


class Load:
    """Records that are asked of a server until it answers, as a judge does it."""

    def __init__(self, server: Server, concurrency: int = 64, limits: Limits | None = None) -> None:
        self.server, self.notices, self.attempts = server, list[str](), dict[int, int]()
        self.pace = Pace(concurrency, limits, notice=self.notices.append, clock=now)
        self._concurrency = concurrency

    async def label(self, record: int) -> None:
        """Ask for one record."""
        async with self.pace.slot():
            held = 0
            while True:
                async with self.pace.request(record, Size(tokens=100)) as sent:
                    status, quota = await self.server.answer()
                    sent.quotas(stated(requests=quota))
                    if status == 200:
                        sent.answered(tokens=100)
                        self.pace.labeled()
                        self.attempts[record] = held + 1
                        return
                    if status == 429:
                        sent.limited()
                    else:
                        sent.failed(charged=False)
                        held += not (sent.probe and self.pace.waits_out_outages())
                await self.pace.sleep(random.uniform(0, min(8, 2**held)))  # noqa: S311

    async def all(self, count: int) -> None:
        """Ask for many."""
        records = iter(range(count))

        async def work() -> None:
            for record in records:
                await self.label(record)

        await asyncio.gather(*(work() for _ in range(4 * self._concurrency)))


def served(work: Callable[[], Awaitable[T]]) -> T:
    """Run in virtual time, with chance seeded."""

    async def do() -> T:
        random.seed(7)
        return await work()

    return run(do())


def loaded(
    count: int, *, concurrency: int = 64, limits: Limits | None = None, **server: Any
) -> tuple[Load, float]:
    """A load that was carried out, and how long it took."""

    async def work() -> tuple[Load, float]:
        load = Load(Server(**server), concurrency, limits)
        await load.all(count)
        return load, now()

    return served(work)


# Places


def test_a_server_is_used_to_the_full_and_not_flooded() -> None:
    """As far as the user allows, also after errors that came sooner than answers."""
    load, seconds = loaded(2500)
    assert load.server.most == 64
    assert seconds < 1.1 * 2500 * 0.2 / 64
    _, alone = loaded(2500, concurrency=256, latency=1.0)
    _, seconds = loaded(2500, concurrency=256, latency=1.0, noise=0.05)
    assert alone / seconds >= 0.75
    load, seconds = loaded(1500, rate=50, burst=50, noise=0.02)
    assert 1500 / (50 * seconds + 50) >= 0.8
    assert load.server.limited <= 0.1 * 1500


@pytest.mark.parametrize("between", [0.005, 0.2, 8.0])
def test_places_grow_one_by_one(between: float) -> None:
    """Each clean answer adds one at most, also if all come at once; time doubles them at most."""
    now = 0.0
    level = Level(256, lambda: now)
    for _ in range(16):
        now += between / 16
        level.grow()
    for _ in range(16):
        level.grow()
    assert level.limit == pytest.approx(16 * min(2 ** (between / 0.25), 3), abs=1)


@pytest.mark.parametrize(("burst", "headers", "jitter"), [(10, True, 0.0), (50, False, 0.5)])
def test_an_unknown_rate_is_found(burst: int, headers: bool, jitter: float) -> None:
    """At least 90 % of the allowed rate is used, with at most 2 % rate limit errors."""
    load, seconds = loaded(1500, rate=50, burst=burst, headers=headers, jitter=jitter)
    assert 1500 / (50 * seconds + burst) >= 0.9
    assert load.server.limited <= 0.02 * 1500
    assert len(load.attempts) == 1500
    if headers:
        assert load.server.limited <= 1  # before the first headers


@pytest.mark.parametrize(("noise", "least"), [(0.01, 0.9), (0.05, 0.75)])
def test_rate_limits_of_others_hardly_slow_a_run(noise: float, least: float) -> None:
    """They come at any load, so fewer requests in flight would not avoid them."""
    _, seconds = loaded(2500, noise=noise)
    assert loaded(2500)[1] / seconds >= least


def test_an_excess_halves_a_level_again_and_does_not_become_usual() -> None:
    """Else a run whose level comes down step by step would accept ever more errors."""
    level = Level(10**9, lambda: 0.0)
    for _ in range(10):
        numbers = [level.sent() for _ in range(100)]
        assert sum(level.limited(number) for number in numbers[:24:4]) == 1
    level = Level(64, lambda: 0.0)
    levels = []
    for clean in (0, 0, 100):
        for _ in range(clean):
            level.sent()
        numbers = [level.sent() for _ in range(6)]
        assert sum(level.limited(number) for number in numbers) == 1
        levels.append(level.limit)
    assert levels == [8, 4, 3]


async def ask(pace: Pace, *requests: tuple[int, str]) -> None:
    """Send requests for records one by one; each is answered, limited or failed."""
    for record, outcome in requests:
        async with pace.request(record, Size()) as sent:
            if outcome == "failed":
                sent.failed(charged=False)
            else:
                getattr(sent, outcome)()


def test_a_named_pause_concerns_one_record_while_others_get_answers() -> None:
    """Eight requests refused in a row hold all back, or as many as are in flight, four at least.

    A wait that is longer than a record waits by itself needs no four.
    """

    async def work(refused: int, concurrency: int, seconds: float = 60) -> float:
        pace = Pace(concurrency, clock=now)
        for record in range(refused):
            async with pace.request(record, Size()) as sent:
                sent.limited()
                pace.hold(seconds)
        async with pace.request(refused, Size()):
            return now()

    assert served(lambda: work(7, 64)) == 0
    assert served(lambda: work(8, 64)) == 60
    assert [served(partial(work, refused, 1)) for refused in (3, 4)] == [0, 60]
    assert served(lambda: work(1, 1, 61)) == 61


def test_changes_of_the_level_are_reported_once_a_minute() -> None:
    """One line each."""
    load, seconds = loaded(2000, rate=20, burst=20)
    reported = [text for text in load.notices if text.startswith("the server limits the rate")]
    assert 1 <= len(reported) <= 1 + seconds / 60
    assert re.search(r"continuing with \d+ requests in flight", reported[0])


def test_rates_that_the_user_sets_are_kept_and_reported_once() -> None:
    """No second of a run goes beyond them by more than may go at once."""
    _, seconds = loaded(500, limits=Limits(requests_per_minute=1200))
    assert 500 / seconds <= 20 * 1.1
    assert 500 / (20 * seconds) >= 0.9
    # 100 tokens a request and 60,000 a minute allow ten requests a second after the first 600.
    _, seconds = loaded(1200, limits=Limits(tokens_per_minute=60_000))
    assert 58 <= seconds <= 64
    load, _ = loaded(12, limits=Limits(tokens_per_minute=600))
    (notice,) = load.notices
    assert notice.startswith("the run is at its own limit of requests or tokens a minute")
    assert loaded(12, limits=Limits(tokens_per_minute=60_000))[0].notices == []


def test_one_episode_costs_once() -> None:
    """Requests that were out together when the server complained are one complaint."""

    async def work() -> int:
        pace = Pace(64, clock=now)
        pace.labeled()
        for _ in range(20):
            async with pace.slot(), pace.request(1, Size()) as sent:
                await asyncio.sleep(0.1)
                sent.answered()

        async def limited() -> None:
            async with pace.slot(), pace.request(1, Size()) as sent:
                await asyncio.sleep(1)
                sent.limited()

        await asyncio.gather(*(limited() for _ in range(10)))
        return pace.level.limit

    assert served(work) == 18  # half of 16 and a slot for each answer, once


def test_a_pausing_job_frees_its_slot() -> None:
    """Another job works meanwhile; the returning job goes before jobs that have not begun."""

    async def work() -> list[str]:
        pace, done = Pace(1, clock=now), list[str]()
        pace.labeled()

        async def resting() -> None:
            async with pace.slot():
                await pace.sleep(1.5)
                done.append("rested")

        async def working(name: str) -> None:
            async with pace.slot():
                await asyncio.sleep(1)
                done.append(name)

        await asyncio.gather(resting(), *(working(name) for name in "abc"))
        return done

    assert served(work) == ["a", "b", "rested", "c"]


def test_a_canceled_wait_takes_no_slot() -> None:
    """Whether it is cancelled while it waits, in the very moment of its turn, or in a pause."""

    async def work() -> None:
        pace = Pace(1, clock=now)
        pace.labeled()

        async def job(seconds: float, wait: Callable[[float], Awaitable[None]]) -> None:
            async with pace.slot():
                await wait(seconds)

        first, second, third = (asyncio.ensure_future(job(1, asyncio.sleep)) for _ in range(3))
        await asyncio.sleep(0.5)
        second.cancel()
        await first
        third.cancel()
        rests = asyncio.ensure_future(job(100, pace.sleep))
        await asyncio.sleep(1)
        rests.cancel()
        await asyncio.gather(second, third, rests, return_exceptions=True)
        await job(1, asyncio.sleep)

    served(work)


# Buckets


def test_a_request_larger_than_the_bucket_waits_for_a_full_one_and_pays_off_its_debt() -> None:
    """Its wait ends, and the next one waits for it."""

    async def work() -> list[int]:
        pace = Pace(4, Limits(tokens_per_minute=600), clock=now)
        sent = []
        for tokens in (100, 6000, 10):
            async with pace.request(1, Size(tokens=tokens)) as request:
                sent.append(round(now()))
                request.answered(tokens=tokens)
        return sent

    assert served(work) == [0, 10, 551]


def test_a_mirrored_bucket_is_never_ahead_of_the_servers() -> None:
    """The bucket adopts rate and level, but never raises its own level."""
    time = 0.0
    bucket = Bucket(10, 100, lambda: time)
    bucket.take(60)
    bucket.follow(5, 50, 70)
    assert (bucket.level, bucket.wait(45)) == (40, 1)
    bucket.follow(5, 50, 3)
    assert bucket.level == 3


def test_a_quota_tells_its_rate_whatever_its_window() -> None:
    """A minute's and a day's limit look alike, but for how fast they come back."""
    assert Quota(500, 499, 0.12).rate == pytest.approx(1 / 0.12)
    assert Quota(200, 199, 432).rate == pytest.approx(1 / 432)
    assert Quota(60, 60, 0).rate is None
    assert Quota(60, 70, 0).rate is None


# Pauses and outages


def test_a_named_pause_holds_everyone_back() -> None:
    """Nothing is sent before the wait ends, and the notice names the time."""

    async def work() -> tuple[float, list[str]]:
        notices: list[str] = []
        pace = Pace(4, notice=notices.append, clock=now)
        pace.pause(3 * 3600)
        pace.pause(60)
        async with pace.request(1, Size()):
            return now(), notices

    moment, notices = served(work)
    assert moment == pytest.approx(10800)
    assert len(notices) == 1
    assert notices[0].startswith("the server asks to wait 10800 s: going on at 20")


def test_a_wait_that_was_cut_to_a_day_is_said_to_be_longer() -> None:
    """The run asks again after a day, whatever a broken clock says."""
    seconds = retry_after({"retry-after": "1e308"})
    assert seconds == 86400

    async def work() -> list[str]:
        notices: list[str] = []
        Pace(1, notice=notices.append, clock=now).pause(seconds)
        return notices

    assert served(work)[0].startswith("the server asks to wait 86400 s or longer: going on at 20")


def test_a_wait_that_the_headers_ask_for_is_reported_and_may_be_too_long() -> None:
    """A used-up daily quota is no silent hour of nothing."""

    async def work(limits: Limits) -> list[str]:
        notices: list[str] = []
        pace = Pace(4, limits, notice=notices.append, clock=now)
        async with pace.request(1, Size()) as sent:
            sent.quotas(stated(requests=Quota(200, 0, 86400)))
            sent.answered()
        async with pace.request(2, Size()):
            return notices

    (notice,) = served(lambda: work(Limits()))
    assert notice.startswith("the server asks to wait 432 s: going on at 20")
    with pytest.raises(RunPaused, match="asks to wait 432 s"):
        served(lambda: work(Limits(longest_wait=120)))


@pytest.mark.parametrize(
    ("requests", "tokens", "refill"),
    [(Quota(60, 0, 30), None, 30), (Quota(60, 1, 30), Quota(9, 0, 70), 60), (None, None, 0)],
)
def test_a_limit_that_is_used_up_tells_when_it_is_whole_again(
    requests: Quota | None, tokens: Quota | None, refill: float
) -> None:
    """A minute at most: a day's limit comes back little by little."""

    async def work() -> float:
        async with Pace(clock=now).request(1, Size()) as sent:
            sent.quotas(stated(requests=requests, tokens=tokens))
            return sent.refill

    assert served(work) == refill


def test_an_outage_is_waited_out_by_one_request_at_a_time() -> None:
    """Ten minutes of nothing: a few requests, no record given up, and it goes on by itself."""
    load, seconds = loaded(3000, down=(5.0, 605.0))
    during = [moment for moment in load.server.sent if 10 < moment < 605]
    assert len(load.attempts) == 3000
    assert len(during) <= 60
    assert max(load.attempts.values()) <= 6
    assert 605 < seconds < 680
    assert [notice.split(":")[0] for notice in load.notices] == [
        "the server does not answer",
        "the server answers again",
    ]


def test_records_that_fail_while_others_are_answered_are_no_outage() -> None:
    """Where they alone remain, their attempts run out, and the run ends within seconds."""

    async def work() -> tuple[list[str], float]:
        notices: list[str] = []
        pace = Pace(32, notice=notices.append, clock=now)

        async def label(record: int) -> None:
            async with pace.slot():
                for _ in range(6 if record % 10 == 0 else 1):
                    async with pace.request(record, Size()) as sent:
                        await asyncio.sleep(0.1)
                        if record % 10:
                            sent.answered()
                            pace.labeled()
                        else:
                            sent.failed(charged=False)
                    await pace.sleep(1)

        await asyncio.gather(*map(label, range(100)))
        return notices, now()

    notices, seconds = served(work)
    assert notices == []
    assert seconds < 20


def test_outages_are_waited_out_for_half_an_hour() -> None:
    """After a first answer, else it is a wrong address; a rest without a request is no outage."""

    async def work() -> list[bool]:
        patient, pace = list[bool](), Pace(4, clock=now)
        await ask(pace, *[(record, "failed") for record in range(20)])
        patient.append(pace.waits_out_outages())
        pace = Pace(4, clock=now)
        await ask(pace, (1, "answered"))
        for seconds in (0, 1799, 2):
            await asyncio.sleep(seconds)
            patient.append(pace.waits_out_outages())
        await ask(pace, (0, "answered"))
        await asyncio.sleep(7200)
        for record in (1, 2):
            await ask(pace, (record, "failed"))
            patient.append(pace.waits_out_outages())
            await asyncio.sleep(1801)
        return patient

    assert served(work) == [False, True, True, False, True, False]


def test_a_cancelled_probe_lets_another_one_go() -> None:
    """A server that never answered is not waited for."""

    async def work() -> bool:
        pace = Pace(4, clock=now)
        await ask(pace, (0, "answered"))
        record = 0
        while not pace.outage.is_on:
            await ask(pace, (record := record + 1, "failed"))

        async def cancelled() -> None:
            async with pace.request(1, Size()) as sent:
                assert sent.probe
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await cancelled()
        async with pace.request(2, Size()) as sent:
            return sent.probe

    assert served(work)


@pytest.mark.parametrize("waits", ["pause", "gate", "slot"])
def test_stopping_ends_every_wait(waits: str) -> None:
    """A job that waits for the server, for other requests or for a slot stops at once."""

    async def work() -> float:
        pace = Pace(1, clock=now)
        pace.pause(3600)

        async def ask() -> None:
            async with pace.slot():
                if waits == "pause":
                    await pace.sleep(3600)
                async with pace.request(1, Size()):
                    raise AssertionError

        jobs = [asyncio.ensure_future(ask()) for _ in range(1 if waits != "slot" else 3)]
        await asyncio.sleep(1)
        pace.stop()
        ends = await asyncio.gather(*jobs, return_exceptions=True)
        assert {type(end) for end in ends} == {Stopped}
        return now()

    assert served(work) == 1


# Money


def paying(
    budget: str, *requests: tuple[str, str | None]
) -> Coroutine[Any, Any, tuple[Decimal, int]]:
    """Send requests of a worst and an actual cost, one by one, until one is refused."""

    async def work() -> tuple[Decimal, int]:
        pace = Pace(1, Limits(budget=Decimal(budget)), clock=now)
        for number, (worst, actual) in enumerate(requests):
            try:
                async with pace.request(number, Size(worst_cost=Decimal(worst))) as sent:
                    sent.answered(cost=None if actual is None else Decimal(actual))
            except BudgetSpent:
                return pace.budget.spent, number
        return pace.budget.spent, len(requests)

    return work()


@pytest.mark.parametrize(
    ("worst", "actual", "spent"), [("0.5", "0.2", "0.6"), ("0.3", None, "0.9")]
)
def test_the_worst_case_must_fit(worst: str, actual: str | None, spent: str) -> None:
    """Three cheap answers fit, though not their worst cases; an unknown cost is the worst."""
    assert run(paying("1", *[(worst, actual)] * 9)) == (Decimal(spent), 3)


def test_after_the_first_refusal_smaller_ones_are_refused_too() -> None:
    """Else the rest of the run would be a sample of short records."""
    budget = Budget(Decimal(1))
    assert budget.reserve(Decimal("0.6"))
    budget.closed = True
    assert not budget.reserve(Decimal("0.1"))


def test_requests_in_flight_may_still_free_enough() -> None:
    """A request that does not fit waits, and is rejected only when nothing can change."""

    async def work() -> list[float]:
        pace = Pace(4, Limits(budget=Decimal(1)), clock=now)
        sent_at = []

        async def ask(record: int) -> None:
            async with pace.request(record, Size(worst_cost=Decimal("0.6"))) as sent:
                sent_at.append(now())
                await asyncio.sleep(1)
                sent.answered(cost=Decimal("0.2"))

        ends = await asyncio.gather(*(ask(record) for record in range(4)), return_exceptions=True)
        assert [type(end) for end in ends] == [type(None)] * 3 + [BudgetSpent]
        return sent_at

    assert served(work) == [0, 1, 2]


def test_prices_that_never_end_do_not_keep_a_run_waiting() -> None:
    """A reservation left by rounding does not count as a request in flight, to any server."""

    async def work() -> Decimal:
        pace = Pace(1, Limits(budget=Decimal(1)), clock=now)
        other, third = pace.for_server(), Decimal(1) / 3
        async with pace.request(1, Size(worst_cost=third / 70)) as sent:
            async with other.request(2, Size(worst_cost=third)) as second:
                second.answered(cost=third / 7)
            sent.answered(cost=third / 7)
        assert pace.budget.reserved
        with pytest.raises(BudgetSpent):
            async with pace.request(3, Size(worst_cost=Decimal(2))):
                raise AssertionError
        return pace.budget.spent

    assert 0 < served(work) < 1


def test_what_may_have_been_charged_is_counted_apart() -> None:
    """It counts against the cap, separately from known costs."""

    async def work() -> Budget:
        pace = Pace(1, clock=now)
        for cost in (Decimal("0.1"), None):
            async with pace.request(1, Size(worst_cost=Decimal("0.5"))) as sent:
                sent.answered(cost=cost)
        async with pace.request(1, Size(worst_cost=Decimal("0.5"))) as sent:
            sent.failed(charged=True)
        async with pace.request(1, Size(worst_cost=Decimal("0.5"))) as sent:
            sent.failed(charged=False)
        return pace.budget

    budget = served(work)
    assert (budget.known, budget.doubtful) == (Decimal("0.1"), Decimal("1.0"))


def test_whatever_is_charged_within_the_worst_case_never_overspends() -> None:
    """Many at once, with costs drawn up to the worst."""

    async def work() -> Decimal:
        pace = Pace(64, Limits(budget=Decimal("3.7")), clock=now)

        async def ask(record: int) -> None:
            async with pace.request(record, Size(worst_cost=Decimal("0.1"))) as sent:
                await asyncio.sleep(random.random())  # noqa: S311 - a load
                sent.answered(cost=Decimal(random.randint(0, 100)) / 1000)  # noqa: S311

        await asyncio.gather(*(ask(record) for record in range(200)), return_exceptions=True)
        assert pace.budget.reserved == 0
        return pace.budget.spent

    assert Decimal("3.6") < served(work) <= Decimal("3.7")
