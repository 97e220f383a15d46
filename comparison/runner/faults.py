"""The faults, and a trial of each."""

import asyncio
import random
import signal
import time
from dataclasses import dataclass

from .entries import NANOS, changes, longest_pause, wrong_entries
from .fleet import MILLI
from .timings import DEFAULTS, SHORT, Timings

# The longest time that a trial waits for the next leader, in seconds beyond the lease.
PATIENCE = 12
# The wall clocks of a fleet's candidates, in seconds, where they are wrong.
SHIFTS = (0, 60, -60)
# A leader whose clock is ahead is waited for this much longer by those who trust its clock.
PATIENCE_WITH_CLOCKS = PATIENCE + 60
# The time for which a trial goes on after the next leader has begun, in seconds: the time for wrong entries of the last one.
AFTER = 1.0


@dataclass(frozen=True)
class Fault:
    """A kind of trial."""

    key: str
    # Whether a network is between the candidates and their store.
    needs_network: bool = False
    has_shifted_clocks: bool = False
    timings: Timings = SHORT

    def trials(self, wanted):
        """The number of trials, of those that a run makes of a fault. Trials at long timings are fewer."""
        return wanted if self.timings == SHORT else -(-wanted // 6)


FAULTS = [
    Fault("kill"),
    Fault("stop"),
    Fault("freeze"),
    Fault("cut", needs_network=True),
    Fault("cut-slow", needs_network=True, timings=DEFAULTS),
    Fault("lost", needs_network=True),
    Fault("clock", has_shifted_clocks=True),
]
BY_KEY = {fault.key: fault for fault in FAULTS}


async def trial(fleet, fault):
    """Lets a fault happen to the leader. Returns the columns of the row."""
    # Some fleets with wrong clocks never settle.
    limit = 8 if fault.has_shifted_clocks else 30
    leader = await fleet.settled(limit)
    if leader is None:
        raise RuntimeError(f"{fleet.contestant.key}: nobody leads before the fault {fault.key}; see {fleet.folder}")
    started = time.monotonic_ns()
    if fault.has_shifted_clocks:
        await asyncio.sleep(fleet.timings.lease / 1000)
    await asyncio.sleep(random.uniform(0, fleet.timings.retry / 1000))
    leader = fleet.leader() or leader
    if leader.process.poll() is not None:
        raise RuntimeError(f"{fleet.contestant.key}: the leader {leader.identity} has ended by itself; see {fleet.folder}")
    at = time.monotonic_ns()
    # For a store without a proxy. The time of a file is later that of the next leader's write.
    renewed = fleet.last_renewal(leader)
    begun = await HAPPEN[fault.key](fleet, leader, at)
    if leader.proxy and leader.renewed:
        renewed = leader.renewed
    until = time.monotonic_ns()
    # A leader of the past that goes on does so because of this fault.
    await fleet.replace_the_dead()
    await fleet.settled(limit)
    entries = fleet.log.read()
    wrong = [each for each in wrong_entries(entries) if each.entry.at >= started]
    row = {
        "takeover_ms": begun and millis(begun.at - at),
        "since_renewal_ms": begun and renewed and millis(begun.at - renewed),
        "pause_ms": millis(longest_pause(entries, at, until)),
        "wrong": len(wrong),
        "overlap_ms": millis(max((each.entry.at - each.since for each in wrong), default=0)),
        "changes": changes(entries, at, until),
        "from": kind(fleet, leader.identity),
        "to": begun and kind(fleet, begun.identity),
    }
    fleet.log.forget(until - 5 * NANOS)
    return row


async def kill(fleet, leader, at):
    leader.signal(signal.SIGKILL)
    return await replaced(fleet, leader, at, PATIENCE)


async def clock(fleet, leader, at):
    leader.signal(signal.SIGKILL)
    return await replaced(fleet, leader, at, PATIENCE_WITH_CLOCKS)


async def stop(fleet, leader, at):
    leader.signal(signal.SIGTERM)
    return await replaced(fleet, leader, at, PATIENCE)


async def replaced(fleet, leader, at, patience):
    begun = await next_leader(fleet, leader, at, patience)
    # A renewal that was on its way has arrived by now, and the next process in this place has not written yet.
    leader.renewed = fleet.last_renewal(leader)
    await asyncio.sleep(AFTER / 2)
    # A candidate that does not end by itself is no part of the next trial.
    leader.signal(signal.SIGKILL)
    await fleet.replace(leader)
    return begun


async def freeze(fleet, leader, at):
    leader.signal(signal.SIGSTOP)
    begun = await next_leader(fleet, leader, at, PATIENCE)
    await at_least(fleet, at)
    leader.signal(signal.SIGCONT)
    await asyncio.sleep(AFTER)
    return begun


async def cut(fleet, leader, at):
    leader.proxy.go_silent()
    begun = await next_leader(fleet, leader, at, PATIENCE)
    await at_least(fleet, at)
    await asyncio.sleep(AFTER)
    leader.proxy.heal()
    await asyncio.sleep(AFTER)
    return begun


async def lost(fleet, leader, at):
    """The answers are lost for three quarters of the renew deadline, so that a leader can still keep its lease."""
    leader.proxy.loses_answers = True
    await asyncio.sleep(0.75 * fleet.timings.renew / 1000)
    leader.proxy.heal()
    await at_least(fleet, at)
    await asyncio.sleep(AFTER)
    return await next_leader(fleet, leader, at, 0)


HAPPEN = {"kill": kill, "stop": stop, "freeze": freeze, "cut": cut, "cut-slow": cut, "lost": lost, "clock": clock}


async def next_leader(fleet, leader, at, patience):
    return await fleet.next_after(leader, at, patience and fleet.timings.lease / 1000 + patience)


async def at_least(fleet, at):
    """Waits until the lease that was held at that moment is over for certain."""
    over = at + (fleet.timings.lease + fleet.timings.retry) * MILLI
    await asyncio.sleep(max(0, over - time.monotonic_ns()) / NANOS)


def kind(fleet, identity):
    """The driver of a candidate, by its slot: `node-SLOT-NUMBER`."""
    return fleet.contestant.drivers[int(identity.split("-")[1])].name


def millis(nanos):
    return round(nanos / MILLI, 1)
