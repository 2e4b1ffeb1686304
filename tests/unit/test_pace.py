"""The pace of a run: slots, buckets, breaker, budget; hours of it in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import pytest

from labeler.errors import RunPaused
from labeler.judges.concurrency import Level
from labeler.judges.limits import Bucket, Limits, Quota, Size, retry_after
from labeler.judges.pace import BudgetSpent, Pace, Stopped
from support.virtual_time import in_virtual_time, now


def stated(**quotas: Quota | None) -> dict[str, str]:
    """The headers that name quotas by unit."""
    return {
        f"x-ratelimit-{name}-{unit}": str(value)
        for unit, quota in quotas.items()
        if quota is not None
        for name, value in asdict(quota).items()
    }


@dataclass
class Load:
    """Records that are asked of a server until it answers, as a judge does it.

    The server allows so many requests a second, answers after a while, and may be down for a time.
    A share of all requests, the noise, meets a rate limit that is not of our making.
    """

    concurrency: int = 64
    limits: Limits | None = None
    rate: float = 1e9
    burst: float = 1e9
    latency: float = 0.2
    jitter: float = 0.5
    headers: bool = False
    down: tuple[float, float] = (0.0, 0.0)
    noise: float = 0.0

    def __post_init__(self) -> None:
        self.notices, self.attempts, self.sent = list[str](), dict[int, int](), list[float]()
        self.pace = Pace(self.concurrency, self.limits, notice=self.notices.append, clock=now)
        self.bucket = Bucket(self.rate, self.burst, now)
        self.limited = self.most = self._out = 0

    def quota(self) -> Quota | None:
        """The quota as headers report it."""
        level = max(0.0, self.bucket.level)
        reset = (self.burst - level) / self.rate
        return Quota(self.burst, level, reset) if self.headers else None

    async def answer(self) -> tuple[int, Quota | None]:
        """A status and the headers."""
        self.sent.append(now())
        if self.bucket.wait(1) or random.random() < self.noise:  # noqa: S311 - a load
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
        share = random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - a load
        await asyncio.sleep(self.latency * share)
        self._out -= 1
        return 200, quota

    async def label(self, record: int) -> None:
        """Ask for one record."""
        async with self.pace.slot():
            held = 0
            while True:
                async with self.pace.request(record, Size(tokens=100)) as sent:
                    status, quota = await self.answer()
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

        await asyncio.gather(*(work() for _ in range(4 * self.concurrency)))


@in_virtual_time
async def loaded(count: int, **settings: Any) -> tuple[Load, float]:
    """A load that was carried out, and how long it took."""
    load = Load(**settings)
    await load.all(count)
    return load, now()


# Places


def test_a_server_is_used_to_the_full_and_not_flooded() -> None:
    """As far as the user allows, also after errors that came sooner than answers."""
    load, whole = loaded(2500)
    assert load.most == 64
    assert whole < 1.1 * 2500 * 0.2 / 64
    # Rate limits of others come at any load: fewer requests in flight would not avoid them.
    for noise, least in ((0.01, 0.9), (0.05, 0.75)):
        assert whole / loaded(2500, noise=noise)[1] >= least
    _, alone = loaded(2500, concurrency=256, latency=1.0)
    _, seconds = loaded(2500, concurrency=256, latency=1.0, noise=0.05)
    assert alone / seconds >= 0.75
    load, seconds = loaded(1500, rate=50, burst=50, noise=0.02)
    assert 1500 / (50 * seconds + 50) >= 0.8
    assert load.limited <= 0.1 * 1500


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
    """At least 90 % of it is used, with at most 2 % errors; the level is reported once a minute."""
    load, seconds = loaded(1500, rate=50, burst=burst, headers=headers, jitter=jitter)
    assert 1500 / (50 * seconds + burst) >= 0.9
    assert load.limited <= (1 if headers else 0.02 * 1500)  # one before the first headers
    assert len(load.attempts) == 1500
    reported = [text for text in load.notices if text.startswith("the server limits the rate")]
    assert (not headers) <= len(reported) <= 1 + seconds / 60
    assert all(" requests in flight" in one for one in reported)


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


def test_an_excess_is_forgotten_if_as_many_errors_are_usual_at_a_lower_level() -> None:
    """Otherwise errors of others that come together by chance slow the whole run."""
    now = 0.0
    level = Level(64, lambda: now)
    numbers = [level.sent() for _ in range(60)]
    assert sum(level.limited(number) for number in numbers[:13:4]) == 1
    for number in range(100):
        sent = level.sent()
        assert not (number % 10 == 0 and level.limited(sent))
    now = 100.0
    for _ in range(8):
        level.grow()
    assert level.limit == 16


def paced(limits: Limits | None = None, *, places: int = 4) -> tuple[Pace, list[str]]:
    """A pace in virtual time, and its notices."""
    notices = list[str]()
    return Pace(places, limits, notice=notices.append, clock=now), notices


async def ask(
    pace: Pace, outcome: str = "answered", record: int = 0, size: Size | None = None, **facts: Any
) -> float:
    """Send a request that ends so, after ``seconds``; return when it was sent."""
    async with pace.request(record, size or Size()) as sent:
        sent_at = now()
        await asyncio.sleep(facts.pop("seconds", 0))
        getattr(sent, outcome)(**({"charged": False} if outcome == "failed" else {}) | facts)
        return sent_at


async def hold_slot(
    pace: Pace, wait: Callable[[float], Awaitable[None]], seconds: float = 1
) -> float:
    """Wait so within a slot; return when that ended."""
    async with pace.slot():
        await wait(seconds)
        return now()


@pytest.mark.parametrize(
    ("refused", "places", "seconds", "held"),
    [(7, 64, 60, 0), (8, 64, 60, 60), (3, 1, 60, 0), (4, 1, 60, 60), (1, 1, 61, 61)],
)
@in_virtual_time
async def test_a_named_pause_concerns_one_record_while_others_get_answers(
    refused: int, places: int, seconds: float, held: float
) -> None:
    """Eight in a row hold all back, or as many as are in flight; four at least, or one long one."""
    pace, _ = paced(places=places)
    for record in range(refused):
        async with pace.request(record, Size()) as sent:
            sent.limited()
            pace.hold(seconds)
    assert await ask(pace, record=refused) == held


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


@in_virtual_time
async def test_a_pausing_job_frees_its_slot() -> None:
    """Another job works meanwhile; the returning job goes before jobs that have not begun."""
    pace, _ = paced(places=1)
    pace.labeled()
    working = (hold_slot(pace, asyncio.sleep) for _ in range(3))
    assert await asyncio.gather(hold_slot(pace, pace.sleep, 1.5), *working) == [2, 1, 2, 3]


@in_virtual_time
async def test_a_canceled_wait_takes_no_slot() -> None:
    """Whether it is cancelled while it waits, in the very moment of its turn, or in a pause."""
    pace, _ = paced(places=1)
    pace.labeled()
    jobs = [asyncio.ensure_future(hold_slot(pace, asyncio.sleep)) for _ in range(3)]
    first, second, third = jobs
    await asyncio.sleep(0.5)
    second.cancel()
    await first
    third.cancel()
    rests = asyncio.ensure_future(hold_slot(pace, pace.sleep, 100))
    await asyncio.sleep(1)
    rests.cancel()
    await asyncio.gather(second, third, rests, return_exceptions=True)
    await hold_slot(pace, asyncio.sleep)
    assert pace.in_use == 0


# Buckets


@in_virtual_time
async def test_a_request_larger_than_the_bucket_waits_for_a_full_one_and_pays_off_its_debt() -> (
    None
):
    """Its wait ends, and the next one waits for it."""
    pace, _ = paced(Limits(tokens_per_minute=600))
    for tokens, moment in ((100, 0), (6000, 10), (10, 551)):
        assert round(await ask(pace, size=Size(tokens=tokens), tokens=tokens)) == moment


def test_a_mirrored_bucket_is_never_ahead_of_the_servers() -> None:
    """The bucket adopts rate and level, but never raises its own level."""
    bucket = Bucket(10, 100, lambda: 0.0)
    bucket.take(60)
    bucket.follow(5, 50, 70)
    assert (bucket.level, bucket.wait(45)) == (40, 1)
    bucket.follow(5, 50, 3)
    assert bucket.level == 3


@pytest.mark.parametrize("reset", [0.12, 432])
def test_a_quota_tells_its_rate_whatever_its_window(reset: float) -> None:
    """A minute's and a day's limit look alike, but for how fast they come back."""
    assert Quota(500, 499, reset).rate == pytest.approx(1 / reset)
    assert Quota(60, 60, 0).rate is Quota(60, 70, 0).rate is None


# Pauses and outages


@pytest.mark.parametrize(
    ("pauses", "said"), [((10800, 60), "10800 s"), ((10**308,), "86400 s or longer")]
)
@in_virtual_time
async def test_a_named_pause_holds_everyone_back(pauses: tuple[int, ...], said: str) -> None:
    """Nothing is sent before its end, a day at most, and the notice names the time."""
    pace, notices = paced()
    for seconds in pauses:
        pace.pause(retry_after({"retry-after": str(seconds)}) or 0)
    assert await ask(pace) == pytest.approx(min(pauses[0], 86400))
    (notice,) = notices
    assert notice.startswith(f"the server asks to wait {said}: going on at 20")


@in_virtual_time
async def test_a_wait_that_the_headers_ask_for_is_reported_and_may_be_too_long() -> None:
    """A used-up daily quota is no silent hour of nothing."""
    for limits in (Limits(), Limits(longest_wait=120)):
        pace, notices = paced(limits)
        async with pace.request(1, Size()) as sent:
            sent.quotas(stated(requests=Quota(200, 0, 86400)))
            sent.answered()
        if limits.longest_wait is None:
            await ask(pace)
            assert notices[0].startswith("the server asks to wait 432 s: going on at 20")
    with pytest.raises(RunPaused, match="asks to wait 432 s"):
        await ask(pace)


@pytest.mark.parametrize(
    ("requests", "tokens", "refill"),
    [(Quota(60, 0, 30), None, 30), (Quota(60, 1, 30), Quota(9, 0, 70), 60), (None, None, 0)],
)
@in_virtual_time
async def test_a_limit_that_is_used_up_tells_when_it_is_whole_again(
    requests: Quota | None, tokens: Quota | None, refill: float
) -> None:
    """A minute at most: a day's limit comes back little by little."""
    async with paced()[0].request(1, Size()) as sent:
        sent.quotas(stated(requests=requests, tokens=tokens))
        assert sent.refill == refill


def test_an_outage_is_waited_out_by_one_request_at_a_time() -> None:
    """Ten minutes of nothing: a few requests, no record given up, and it goes on by itself."""
    load, seconds = loaded(3000, down=(5.0, 605.0))
    during = [moment for moment in load.sent if 10 < moment < 605]
    assert len(load.attempts) == 3000
    assert len(during) <= 60
    assert max(load.attempts.values()) <= 6
    assert 605 < seconds < 680
    gone, back = load.notices
    assert gone.startswith("the server does not answer")
    assert back.startswith("the server answers again")


@in_virtual_time
async def test_records_that_fail_while_others_are_answered_are_no_outage() -> None:
    """Where they alone remain, their attempts run out, and the run ends within seconds."""
    pace, notices = paced(places=32)

    async def label(record: int) -> None:
        async with pace.slot():
            for _ in range(1 if record % 10 else 6):
                await asyncio.sleep(0.1)
                await ask(pace, "answered" if record % 10 else "failed", record)
                if record % 10:
                    pace.labeled()
                await pace.sleep(1)

    await asyncio.gather(*map(label, range(100)))
    assert notices == []
    assert now() < 20


@in_virtual_time
async def test_outages_are_waited_out_for_half_an_hour() -> None:
    """After a first answer, else it is a wrong address; a rest without a request is no outage."""
    pace, _ = paced()
    for record in range(20):
        await ask(pace, "failed", record)
    assert not pace.waits_out_outages()
    pace, _ = paced()
    await ask(pace)
    for seconds, patient in ((0, True), (1799, True), (2, False)):
        await asyncio.sleep(seconds)
        assert pace.waits_out_outages() is patient
    await ask(pace)
    await asyncio.sleep(7200)
    for record, patient in ((1, True), (2, False)):
        await ask(pace, "failed", record)
        assert pace.waits_out_outages() is patient
        await asyncio.sleep(1801)


@in_virtual_time
async def test_a_cancelled_probe_lets_another_one_go() -> None:
    """Else the outage would never end."""
    pace, _ = paced()
    await ask(pace)
    record = 0
    while not pace.outage.is_on:
        await ask(pace, "failed", record := record + 1)
    with suppress(asyncio.CancelledError):
        async with pace.request(1, Size()) as sent:
            assert sent.probe
            raise asyncio.CancelledError
    async with pace.request(2, Size()) as sent:
        assert sent.probe


@pytest.mark.parametrize("waits", ["pause", "gate", "slot"])
@in_virtual_time
async def test_stopping_ends_every_wait(waits: str) -> None:
    """A job that waits for the server, for other requests or for a slot stops at once."""
    pace, _ = paced(places=1)
    pace.pause(3600)

    async def job() -> None:
        async with pace.slot():
            if waits == "pause":
                await pace.sleep(3600)
            await ask(pace)

    jobs = [asyncio.ensure_future(job()) for _ in range(1 if waits != "slot" else 3)]
    await asyncio.sleep(1)
    pace.stop()
    ends = await asyncio.gather(*jobs, return_exceptions=True)
    assert ({type(end) for end in ends}, now()) == ({Stopped}, 1)


# Money


@pytest.mark.parametrize(
    ("worst", "actual", "spent"), [("0.5", "0.2", "0.6"), ("0.3", None, "0.9")]
)
@in_virtual_time
async def test_the_worst_case_must_fit(worst: str, actual: str | None, spent: str) -> None:
    """Three cheap answers fit, though not their worst cases; an unknown cost is the worst.

    After the first refusal smaller ones are refused too: else the rest would be a sample.
    """
    pace, _ = paced(Limits(budget=Decimal(1)))
    size = Size(worst_cost=Decimal(worst))
    for _ in range(3):
        await ask(pace, size=size, cost=actual and Decimal(actual))
    for refused in (size, Size(worst_cost=Decimal("0.01"))):
        with pytest.raises(BudgetSpent):
            await ask(pace, size=refused)
    assert pace.budget.spent == Decimal(spent)


@in_virtual_time
async def test_requests_in_flight_may_still_free_enough() -> None:
    """A request that does not fit waits, and is rejected only when nothing can change."""
    pace, _ = paced(Limits(budget=Decimal(1)))
    size, cost = Size(worst_cost=Decimal("0.6")), Decimal("0.2")
    asked = (ask(pace, record=n, size=size, seconds=1, cost=cost) for n in range(4))
    *sent_at, refused = await asyncio.gather(*asked, return_exceptions=True)
    assert (sent_at, type(refused)) == ([0, 1, 2], BudgetSpent)


@in_virtual_time
async def test_prices_that_never_end_do_not_keep_a_run_waiting() -> None:
    """A reservation left by rounding does not count as a request in flight, to any server."""
    pace, _ = paced(Limits(budget=Decimal(1)), places=1)
    other, third = pace.for_server(), Decimal(1) / 3
    async with pace.request(1, Size(worst_cost=third / 70)) as sent:
        await ask(other, size=Size(worst_cost=third), cost=third / 7)
        sent.answered(cost=third / 7)
    assert pace.budget.reserved
    with pytest.raises(BudgetSpent):
        await ask(pace, size=Size(worst_cost=Decimal(2)))
    assert 0 < pace.budget.spent < 1


@in_virtual_time
async def test_what_may_have_been_charged_is_counted_apart() -> None:
    """It counts against the cap, separately from known costs."""
    pace, _ = paced()
    half = Size(worst_cost=Decimal("0.5"))
    for cost in (Decimal("0.1"), None):
        await ask(pace, size=half, cost=cost)
    for charged in (True, False):
        await ask(pace, "failed", size=half, charged=charged)
    assert (pace.budget.known, pace.budget.doubtful) == (Decimal("0.1"), Decimal("1.0"))


@in_virtual_time
async def test_whatever_is_charged_within_the_worst_case_never_overspends() -> None:
    """Many at once, with costs drawn up to the worst."""
    pace, _ = paced(Limits(budget=Decimal("3.7")), places=64)
    drawn = [(random.random(), Decimal(random.randint(0, 100)) / 1000) for _ in range(200)]  # noqa: S311 - a load
    size = Size(worst_cost=Decimal("0.1"))
    asked = (ask(pace, size=size, seconds=seconds, cost=cost) for seconds, cost in drawn)
    await asyncio.gather(*asked, return_exceptions=True)
    assert pace.budget.reserved == 0
    assert Decimal("3.6") < pace.budget.spent <= Decimal("3.7")
