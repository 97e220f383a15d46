"""The cost of an election in which nothing happens: requests, processor time and memory."""

import asyncio
import os

TICKS = os.sysconf("SC_CLK_TCK")


def processor_ms(pid):
    """The processor time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        sizes = [int(line.split()[1]) for line in file if line.startswith("VmRSS:")]
    if not sizes:
        raise RuntimeError(f"the process {pid} has ended by itself")
    return sizes[0]


def look(candidate):
    counts = candidate.proxy.counts if candidate.proxy else {}
    numbers = {name: counts.get(key, 0) for name, key in (("writes", "write"), ("reads", "read"), ("lists", "list"))}
    return numbers | {"cpu_ms": processor_ms(candidate.process.pid)}


async def measure(fleet, seconds):
    """The rows of the leader and of a follower, the average of all followers. None if the leader changed meanwhile."""
    leader = await fleet.settled(60)
    # The first reads after the start are not part of the steady state.
    await asyncio.sleep(fleet.timings.retry / 1000)
    before = {slot: look(candidate) for slot, candidate in fleet.candidates.items()}
    await asyncio.sleep(seconds)
    after = {slot: look(candidate) for slot, candidate in fleet.candidates.items()}
    if leader is None or fleet.leader() is not leader:
        return None
    spent = {slot: {name: after[slot][name] - before[slot][name] for name in before[slot]} for slot in before}
    followers = [slot for slot in spent if slot != leader.slot]
    rows = []
    for role, slots in (("leader", [leader.slot]), ("follower", followers)):
        row = {"role": role, "seconds": seconds}
        row |= {name: round(sum(spent[slot][name] for slot in slots) / len(slots), 2) for name in spent[slots[0]]}
        row["rss_kib"] = round(sum(resident_kib(fleet.candidates[slot].process.pid) for slot in slots) / len(slots))
        rows.append(row)
    return rows
