"""The lines of the tables, and the comparison of two of them."""

from dataclasses import dataclass

from .contestants import CONTESTANTS
from .faults import FAULTS
from .figures import dollars_a_month, median_bounds, percentile, summary

# A peer is better by a median that is this much smaller, in seconds and by this share: less is the noise of a run.
NOTABLE = 0.05
SHARE = 0.9
# The worst of some trials varies more than their median.
WORST_SHARE = 0.8
FOLLOWERS = 2

# A contestant that stands for this library on each store.
OURS = {"file": "ours-file", "s3": "ours-s3", "kube": "ours-lease"}
TITLES = {each.key: each.title for each in CONTESTANTS}


@dataclass(frozen=True)
class Better:
    """A number of a row in which a peer is better: the fault and the number, the peer, and both in words."""

    row: str
    peer: str
    where: str
    number: str
    price: str = ""


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


def line(contestant, fault, measured):
    median, late, worst = summary(pauses(measured))
    overlap = max(numbers(measured, "overlap_ms"), default=0)
    cells = [contestant.title, len(measured), *map(seconds, (median, late, worst)), extra(fault, measured), wrong(measured),
             f"{overlap:.0f} ms" if overlap else "none"]
    return "| " + " | ".join(map(str, cells)) + " |"


def by_driver(contestant, measured):
    """A sentence for each kind of leader, where candidates of two kinds share a lock. None elsewhere."""
    names = sorted({driver.name for driver in contestant.drivers})
    if len(names) < 2:
        return None
    parts = []
    for name in names:
        led = [row for row in measured if row["from"] == name]
        taken = sum(row["to"] not in ("", name) for row in led)
        who = "this library" if name == "ours" else "client-go"
        parts.append(f"The leader was of {who} in {len(led)} trials: it wrote {wrong(led)} wrong entries, and the other kind took over in {taken}.")
    return f"{contestant.title}: " + " ".join(parts)


def extra(fault, measured):
    """The column that a table has besides: what was lost of the lease, or how often leadership changed."""
    if fault.key in ("kill", "clock"):
        beyond = [float(row["since_renewal_ms"]) - float(row["lease_ms"]) for row in measured if row["since_renewal_ms"] != ""]
        return seconds(percentile(beyond, 0.5) / 1000) if beyond else "–"
    return f"{replaced(measured)} of {len(measured)}"


def idle_line(contestant, idle):
    roles = {row["role"]: row for row in idle.of(contestant.key)}
    if roles.keys() != {"leader", "follower"}:
        return None
    leader, follower = roles["leader"], roles["follower"]
    cells = [contestant.title, f"{requests(leader):,.0f}" if contestant.store != "file" else "–",
             f"{requests(follower):,.0f}" if contestant.store != "file" else "–", price(contestant, leader, follower),
             f"{processor(follower):,.0f}", f"{memory(follower):.0f}"]
    return "| " + " | ".join(cells) + " |"


def an_hour(row, column):
    return float(row[column]) * 3600 / float(row["seconds"])


def requests(row):
    return sum(an_hour(row, column) for column in ("writes", "reads", "lists"))


def processor(row):
    return float(row["cpu_ms"]) * 60 / float(row["seconds"])


def memory(row):
    return float(row["rss_kib"]) / 1024


def price(contestant, leader, follower):
    if contestant.store != "s3":
        return "none" if contestant.store == "file" else "the cluster's"
    total = [an_hour(leader, column) + FOLLOWERS * an_hour(follower, column) for column in ("writes", "reads", "lists")]
    return f"${dollars_a_month(*total):.2f}"


def peers():
    """Each peer, with the contestant of this library on the same store."""
    return [(each, OURS[each.store]) for each in CONTESTANTS if not each.is_ours and len(set(each.drivers)) == 1]


def is_notably_less(theirs, own):
    """Whether a median is smaller, and not by chance."""
    one, other = percentile(theirs, 0.5), percentile(own, 0.5)
    return other - one > NOTABLE and one < SHARE * other and median_bounds(theirs)[1] < median_bounds(own)[0]


def better_after_faults(trials):
    for fault in FAULTS:
        title = fault.title[0].upper() + fault.title[1:]
        for peer, ours in peers():
            theirs, own = trials.of(peer.key, fault.key), trials.of(ours, fault.key)
            if not theirs or not own:
                continue

            def better(what, name, one, other, price=""):
                return Better(f"{fault.key}/{what}", peer.key, f"{title}, {peer.title} beside {TITLES[ours]}", f"{name} {one} beside {other}", price)

            if wrong_share(theirs) < wrong_share(own):
                yield better("wrong", "wrong entries", f"{wrong(theirs)} in {len(theirs)} trials", f"{wrong(own)} in {len(own)}")
            if fault.key == "lost" and replaced(theirs) / len(theirs) < replaced(own) / len(own) - NOTABLE:
                yield better("replaced", "leaders that lost the lease", f"{replaced(theirs)} of {len(theirs)}", f"{replaced(own)} of {len(own)}")
            price = f", with {wrong(theirs)} wrong entries" if wrong(theirs) > wrong(own) else ""
            theirs, own = pauses(theirs), pauses(own)
            if is_notably_less(theirs, own):
                yield better("pause", "median", seconds(percentile(theirs, 0.5)), seconds(percentile(own, 0.5)), price)
            if max(theirs) < WORST_SHARE * max(own) and max(own) - max(theirs) > 2 * NOTABLE:
                yield better("worst", "worst", seconds(max(theirs)), seconds(max(own)), price)


def better_at_rest(idle):
    measures = [
        ("requests/leader", "leader", requests, "requests of a leader in an hour", 1),
        ("requests/follower", "follower", requests, "requests of a follower in an hour", 1),
        ("processor", "follower", processor, "ms of the processor in a minute of a follower", 5),
        ("memory", "follower", memory, "MiB of memory of a follower", 1),
    ]
    for row, role, measure, words, notable in measures:
        for peer, ours in peers():
            theirs, own = ([each for each in idle.of(key) if each["role"] == role] for key in (peer.key, ours))
            if not theirs or not own:
                continue
            one, other = measure(theirs[0]), measure(own[0])
            if one < SHARE * other and other - one >= notable:
                yield Better(row, peer.key, f"At rest, {peer.title} beside {TITLES[ours]}", f"{one:,.0f} {words} beside {other:,.0f}")
