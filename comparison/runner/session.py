"""A run: which trials are missing, and the order in which they happen."""

import asyncio
import random
from dataclasses import dataclass

from .contestants import faketime
from .faults import SHIFTS, trial
from .fleet import Fleet
from .idle import measure
from .timings import DEFAULTS, SHORT

# What a trial may fail with. Everything else is a defect of the runner.
FAILURES = (RuntimeError, OSError, asyncio.TimeoutError)
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
    tasks = []
    for contestant in contestants:
        for shifts, timings, label in (((0, 0, 0), SHORT, ""), (SHIFTS, SHORT, "clock-"), ((0, 0, 0), DEFAULTS, "slow-")):
            faults = [fault for fault in plan.faults if (fault.has_shifted_clocks, fault.timings) == (any(shifts), timings)]
            queue = missing(table, contestant, faults, plan.trials)
            # A takeover takes a minute where a clock that is a minute ahead is believed.
            lanes = plan.lanes * (2 if any(shifts) else 1)
            for number in range(min(lanes, len(queue))):
                tasks.append(lane(place, contestant, f"{contestant.key}-{label}{number}", timings, shifts, queue, table))
    await asyncio.gather(*tasks)


async def lane(place, contestant, name, timings, shifts, queue, table):
    """Takes trials from the queue until it is empty."""
    # The fleets do not act in step.
    await asyncio.sleep(random.uniform(0, 3))
    fleet, failures = None, 0
    while queue:
        fault, number = queue.pop(0)
        try:
            if fleet is None:
                fleet = Fleet(place, contestant, f"{name}-{random.randrange(1 << 32):08x}", timings, shifts)
                await fleet.start()
            row = await asyncio.wait_for(trial(fleet, fault), 300)
        except FAILURES as error:
            print(f"{contestant.key}: {fault.key}: {error or 'no end within 300 s'}", flush=True)
            fleet, failures = await ended(fleet), failures + 1
            if failures == ATTEMPTS:
                print(f"{contestant.key}: given up after {ATTEMPTS} failures; the next run goes on", flush=True)
                return
            queue.insert(0, (fault, number))
            continue
        failures = 0
        table.add({"contestant": contestant.key, "fault": fault.key, "trial": number, "lease_ms": timings.lease, **row})
    await ended(fleet)


async def ended(fleet):
    if fleet:
        await fleet.stop()


async def run_idle(place, contestants, table, plan):
    """Measures all contestants at the same time, at the default timings."""
    await asyncio.gather(*(idle(place, each, table, plan.idle_seconds) for each in contestants
                           if len(set(each.drivers)) == 1 and not table.has(each.key, "follower")))


async def idle(place, contestant, table, seconds):
    await asyncio.sleep(random.uniform(0, 3))
    for attempt in range(ATTEMPTS):
        fleet = Fleet(place, contestant, f"{contestant.key}-idle-{attempt}", DEFAULTS, is_at_rest=True)
        try:
            await fleet.start()
            rows = await measure(fleet, seconds)
        except FAILURES as error:
            print(f"{contestant.key}: at rest: {error or 'no end in time'}", flush=True)
            continue
        finally:
            await fleet.stop()
        if rows:
            table.add(*({"contestant": contestant.key, **row} for row in rows))
            return
        print(f"{contestant.key}: the leader changed while nothing happened", flush=True)

