"""A run: which trials are missing, and the order in which they happen."""

import asyncio
import random
from dataclasses import dataclass, field

from .contestants import faketime
from .faults import SHIFTS, trial
from .fleet import Fleet
from .idle import measure
from .timings import DEFAULTS, SHORT, Timings

# What a trial may fail with. Everything else is a defect of the runner.
FAILURES = (RuntimeError, OSError, asyncio.TimeoutError)
# The time after the last start before the first trial, in seconds.
CALM = 5
# The trials of each fault in a whole comparison.
TRIALS = 30
# The failures in a row after which an election is given up for this run.
ATTEMPTS = 3


@dataclass
class Plan:
    """The settings of a run."""

    trials: int
    lanes: int
    idle_seconds: int
    faults: list


def not_possible(contestant, fault):
    """The reason for which a contestant has no trials of a fault; None if it has."""
    if fault.needs_network and contestant.store == "file":
        return "no network is between a file and its readers"
    if fault.has_shifted_clocks and contestant.languages - {"go"} and not faketime():
        return "libfaketime is not installed: apt-get install faketime"
    return None


def missing(table, contestant, faults, trials):
    """The trials that no row has yet. The faults take turns, in an order that is the same for all contestants.

    Every round begins with another fault. Otherwise, with two candidates, a fault would always happen to the same one.
    """
    order = [(faults[(number + place) % len(faults)], number) for number in range(trials) for place in range(len(faults))]
    return [(fault, number) for fault, number in order if number < fault.trials(trials)
            and not not_possible(contestant, fault) and not table.has(contestant.key, fault.key, number)]


async def run_trials(place, contestants, table, plan):
    """All contestants at the same time: each has fleets of its own, and their processes mostly sleep."""
    lanes = []
    for contestant in contestants:
        for shifts, timings, label in (((0, 0, 0), SHORT, ""), (SHIFTS, SHORT, "clock-"), ((0, 0, 0), DEFAULTS, "slow-")):
            faults = [fault for fault in plan.faults if (fault.has_shifted_clocks, fault.timings) == (any(shifts), timings)]
            queue = missing(table, contestant, faults, plan.trials)
            # A takeover takes a minute where a clock that is a minute ahead is believed.
            count = plan.lanes * (3 if any(shifts) else 1)
            lanes += [Lane(place, contestant, f"{contestant.key}-{label}{number}", timings, shifts, queue, table)
                      for number in range(min(count, len(queue)))]
    await all_begin(lanes)
    await asyncio.gather(*(lane.run() for lane in lanes))
    return [history for lane in lanes for history in lane.histories]


async def all_begin(elections):
    """Starts all programs before anything is measured: starts keep the processors busy, those of Java most of all."""
    gate = asyncio.Semaphore(2)

    async def begin(election):
        async with gate:
            try:
                await election.begin()
            except FAILURES as error:
                print(f"{election.contestant.key}: no begin: {error}", flush=True)

    await asyncio.gather(*map(begin, elections))
    await asyncio.sleep(CALM)


@dataclass
class Lane:
    """Elections of one contestant, one after the other, each for many trials."""

    place: object
    contestant: object
    name: str
    timings: Timings
    shifts: tuple
    queue: list
    table: object
    fleet: Fleet | None = None
    histories: list = field(default_factory=list)

    async def begin(self):
        self.fleet = Fleet(self.place, self.contestant, f"{self.name}-{random.randrange(1 << 32):08x}", self.timings, self.shifts)
        if self.contestant.store != "file":
            self.histories.append(self.fleet.history)
        await self.fleet.start()

    async def end(self):
        if self.fleet:
            await self.fleet.stop()
        self.fleet = None

    async def run(self):
        """Takes trials from the queue until it is empty."""
        # The fleets do not act in step.
        await asyncio.sleep(random.uniform(0, 3))
        failures = 0
        while self.queue:
            fault, number = self.queue.pop(0)
            try:
                if self.fleet is None:
                    await self.begin()
                row = await asyncio.wait_for(trial(self.fleet, fault), 300)
            except FAILURES as error:
                print(f"{self.contestant.key}: {fault.key}: {error or 'no end within 300 s'}", flush=True)
                await self.end()
                failures += 1
                if failures == ATTEMPTS:
                    print(f"{self.contestant.key}: given up after {ATTEMPTS} failures; the next run goes on", flush=True)
                    return
                self.queue.insert(0, (fault, number))
                continue
            failures = 0
            self.table.add({"contestant": self.contestant.key, "fault": fault.key, "trial": number, "lease_ms": self.timings.lease, **row})
        await self.end()


async def run_idle(place, contestants, table, plan):
    """Measures all contestants at the same time, at the default timings."""
    for attempt in range(ATTEMPTS):
        elections = [Idle(place, each, attempt) for each in contestants
                     if len(set(each.drivers)) == 1 and not table.has(each.key, "follower")]
        if not elections:
            return
        try:
            await all_begin(elections)
            await asyncio.gather(*(each.measure(table, plan.idle_seconds) for each in elections))
        finally:
            for each in elections:
                await each.fleet.stop()


class Idle:
    """An election in which nothing happens."""

    def __init__(self, place, contestant, attempt):
        self.contestant = contestant
        self.fleet = Fleet(place, contestant, f"{contestant.key}-idle-{attempt}", DEFAULTS, is_at_rest=True)

    async def begin(self):
        await self.fleet.start()

    async def measure(self, table, seconds):
        try:
            rows = await measure(self.fleet, seconds)
        except FAILURES as error:
            print(f"{self.contestant.key}: at rest: {error}", flush=True)
            return
        if rows:
            table.add(*({"contestant": self.contestant.key, **row} for row in rows))
        else:
            print(f"{self.contestant.key}: the leader changed while nothing happened", flush=True)
