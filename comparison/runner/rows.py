"""The lines of the tables, and the comparison of two of them."""

from dataclasses import dataclass

from .contestants import CONTESTANTS
from .faults import FAULTS
from .figures import independent_by_chance, median_bounds, percentile, periodic_by_chance
from .idle import TICKS

# A peer is better by a median that is this much smaller, in seconds and by this share: less is the noise of a run.
NOTABLE = 0.05
SHARE = 0.9
# The worst of some trials varies more than their median.
WORST_SHARE = 0.8
FOLLOWERS = 2
# A time without a leader of so many leases is reported also where two leaders were seen.
LONG_WAIT = 2

# A contestant that stands for this library on each store.
OURS = {"file": "ours-file", "s3": "ours-s3", "kube": "ours-lease", "api": "ours-s3"}


@dataclass(frozen=True)
class Better:
    """A number in which a peer is better: the fault and the number, the peer, and the number in words."""

    row: str
    peer: str
    number: str


def numbers(measured, column):
    return [float(row[column]) for row in measured if row[column] != ""]


def pauses(measured):
    """The times without a working leader, in seconds."""
    return [value / 1000 for value in numbers(measured, "pause_ms")]


def wrong(measured):
    return sum(int(row["wrong"]) for row in measured)


def wrong_share(measured):
    return wrong(measured) / len(measured)


def replaced(measured):
    """The number of trials after which another candidate leads."""
    return sum(row["takeover_ms"] != "" for row in measured)


def seconds(value):
    return f"{value:.2f} s"


def with_two_leaders(measured):
    return [row for row in measured if int(row["wrong"])]


def with_one_leader(measured):
    return [row for row in measured if not int(row["wrong"])]


def overlaps(measured):
    """The longest time with two leaders of each trial that had any, in seconds."""
    return [value / 1000 for value in numbers(with_two_leaders(measured), "overlap_ms")]


def share(part, whole):
    return f"{len(part)}/{len(whole)}"


def cell(measured):
    """The time without a leader, median and worst, of the trials with one leader at a time; and the trials with two.

    An overlap shortens the time without a leader, so the two are never put together. A wait beyond two leases is another defect,
    and is reported too.
    """
    if not measured:
        return "–"
    two, parts = with_two_leaders(measured), []
    if clean := pauses(with_one_leader(measured)):
        parts.append(f"{percentile(clean, 0.5):.2f} ({max(clean):.2f})")
    if two:
        parts.append(f"two leaders {share(two, measured)}")
        waited, lease = percentile(pauses(two), 0.5), max(numbers(measured, "lease_ms")) / 1000
        if waited > LONG_WAIT * lease:
            parts.append(f"none {waited:.1f}")
    return ", ".join(parts)


def summary_line(contestant, trials, idle):
    """A contestant in one line, over all faults."""
    measured = trials.of(contestant.key)
    if not measured:
        return None
    roles = {row["role"]: row for row in idle.of(contestant.key)}
    is_counted = contestant.store != "file" and roles.keys() == {"leader", "follower"}
    asked = f"{requests(roles['leader']) + FOLLOWERS * requests(roles['follower']):,.0f}" if is_counted else "–"
    cells = [contestant.title, share(with_two_leaders(measured), measured), f"{wrong(measured):,}",
             *(cell(trials.of(contestant.key, fault)) for fault in ("kill", "stop")), asked]
    return "| " + " | ".join(cells) + " |"


def fault_lines(trials, faults):
    """The peers one by one, and this library as one: the bounds of the medians of its stores, and the worst of all."""
    ours = [each for each in CONTESTANTS if each.is_ours]
    lines = [["this library", *(cells_of([trials.of(each.key, fault) for each in ours]) for fault in faults)]]
    lines += [[each.title, *(cell(trials.of(each.key, fault)) for fault in faults)] for each in CONTESTANTS
              if is_alike(each) and not each.is_ours and any(trials.of(each.key, fault) for fault in faults)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def cells_of(several):
    """One cell for several contestants. Their trials with two leaders are never left out."""
    several = [measured for measured in several if measured]
    if not several or any(map(with_two_leaders, several)):
        return cell([row for measured in several for row in measured])
    medians = [percentile(pauses(measured), 0.5) for measured in several]
    return f"{min(medians):.2f}–{max(medians):.2f} ({max(max(pauses(measured)) for measured in several):.2f})"


def is_alike(contestant):
    """Whether all candidates are of one kind."""
    return len(set(contestant.drivers)) == 1


def verdict(trials):
    """The trials with two leaders of this library, and of the others."""
    sides = []
    for is_ours in (True, False):
        measured = [row for each in CONTESTANTS if each.is_ours == is_ours and is_alike(each) for row in trials.of(each.key)]
        sides.append(f"{len(with_two_leaders(measured)):,} of {len(measured):,}")
    return f"After all faults, two leaders were seen in {sides[0]} trials of this library, and in {sides[1]} of the others."


def by_driver(contestant, measured):
    """The wrong entries of each kind of leader, where candidates of two kinds share a lock. None elsewhere."""
    names = {driver.name for driver in contestant.drivers}
    if len(names) < 2 or not measured:
        return None
    ours = [row for row in measured if row["from"] == "ours"]
    theirs = [row for row in measured if row["from"] in names - {"ours"}]
    return (f"Sharing one Lease, client-go's leaders wrote {wrong(theirs):,} wrong entries in {len(theirs)} trials, "
            f"this library's {wrong(ours):,} in {len(ours)}.")


def lost_leases(trials):
    """The leaders that lost the lease with the answers to their writes."""
    measured = {each: trials.of(each.key, "lost") for each in CONTESTANTS}
    lost = [f"{each.title.removesuffix(', Lease')} ({replaced(found)} of {len(found)} trials)" for each, found in measured.items() if replaced(found)]
    return f"A leader lost the lease only with {'; '.join(lost)}." if lost else "No leader lost the lease."


def an_hour(row, column):
    return float(row[column]) * 3600 / float(row["seconds"])


def requests(row):
    return sum(an_hour(row, column) for column in ("writes", "reads", "lists"))


def processor(row):
    return float(row["cpu_ms"]) * 60 / float(row["seconds"])


def memory(row):
    return float(row["rss_kib"]) / 1024


def counted_requests(row):
    return sum(float(row[column]) for column in ("writes", "reads", "lists"))


def counted_ticks(row):
    """The processors' time as the system counts it."""
    return float(row["cpu_ms"]) * TICKS / 1000


def peers():
    """Each peer, with the contestant of this library on the same store."""
    return [(each, OURS[each.store]) for each in CONTESTANTS if not each.is_ours and is_alike(each)]


def is_notably_less(theirs, own):
    """Whether a median is smaller, and not by chance."""
    one, other = percentile(theirs, 0.5), percentile(own, 0.5)
    return other - one > NOTABLE and one < SHARE * other and median_bounds(theirs)[1] < median_bounds(own)[0]


def better_after_faults(trials):
    for fault in FAULTS:
        for peer, ours in peers():
            theirs, own = trials.of(peer.key, fault.key), trials.of(ours, fault.key)
            if not theirs or not own:
                continue

            def better(what, name, one, other):
                return Better(f"{fault.key}/{what}", peer.key, f"{name} {one} against {other}")

            if wrong_share(theirs) < wrong_share(own):
                yield better("wrong", "wrong entries", f"{wrong(theirs)} in {len(theirs)} trials", f"{wrong(own)} in {len(own)}")
            if fault.key == "lost" and replaced(theirs) / len(theirs) < replaced(own) / len(own) - NOTABLE:
                yield better("replaced", "leaders that lost the lease", f"{replaced(theirs)} of {len(theirs)}", f"{replaced(own)} of {len(own)}")
            # Two leaders shorten the time without one.
            if wrong_share(theirs) > wrong_share(own):
                continue
            theirs, own = pauses(theirs), pauses(own)
            if is_notably_less(theirs, own):
                yield better("pause", "median", seconds(percentile(theirs, 0.5)), seconds(percentile(own, 0.5)))
            if max(theirs) < WORST_SHARE * max(own) and max(own) - max(theirs) > 2 * NOTABLE:
                yield better("worst", "worst", seconds(max(theirs)), seconds(max(own)))


def by_chance(theirs, own, count, chance):
    """Whether what was counted of two candidates may differ by chance: every election is watched once."""
    candidates = FOLLOWERS if own["role"] == "follower" else 1
    # The row of the followers has their average.
    one, other = (count(row) * candidates for row in (theirs, own))
    return abs(one - other) <= chance(one, other, candidates)


def better_at_rest(idle):
    measures = [
        ("requests/leader", "leader", requests, "requests of a leader per hour", 1, (counted_requests, periodic_by_chance)),
        ("requests/follower", "follower", requests, "of a follower", 1, (counted_requests, periodic_by_chance)),
        ("processor", "follower", processor, "ms of CPU time per minute", 5, (counted_ticks, independent_by_chance)),
        ("memory", "follower", memory, "MiB", 1, None),
    ]
    for row, role, measure, words, notable, count in measures:
        for peer, ours in peers():
            theirs, own = ([each for each in idle.of(key) if each["role"] == role] for key in (peer.key, ours))
            if not theirs or not own or count and by_chance(theirs[0], own[0], *count):
                continue
            one, other = measure(theirs[0]), measure(own[0])
            if one < SHARE * other and other - one >= notable:
                yield Better(row, peer.key, f"{one:,.0f} {words} against {other:,.0f}")
