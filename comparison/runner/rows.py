"""The lines of the tables, and the comparison of two of them."""

from dataclasses import dataclass

from .contestants import CONTESTANTS
from .faults import FAULTS
from .figures import dollars_a_month, percentile, summary

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
    """A row in which a peer is better."""

    row: str
    peer: str
    text: str


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


def is_notably_less(one, other):
    return other - one > NOTABLE and one < SHARE * other


def better_after_faults(trials):
    for fault in FAULTS:
        for peer, ours in peers():
            theirs, own = trials.of(peer.key, fault.key), trials.of(ours, fault.key)
            if not theirs or not own:
                continue
            median, own_median = percentile(pauses(theirs), 0.5), percentile(pauses(own), 0.5)
            title = fault.title[0].upper() + fault.title[1:]
            if wrong_share(theirs) < wrong_share(own):
                yield Better(f"{fault.key}/wrong", peer.key, f"{title}: {peer.title} wrote {wrong(theirs)} wrong entries in "
                             f"{len(theirs)} trials, and {TITLES[ours]} {wrong(own)} in {len(own)}.")
            if fault.key == "lost" and replaced(theirs) / len(theirs) < replaced(own) / len(own) - NOTABLE:
                yield Better("lost/replaced", peer.key, f"{title}: {peer.title} lost its lease in {replaced(theirs)} of {len(theirs)} trials, "
                             f"and {TITLES[ours]} in {replaced(own)} of {len(own)}.")
            worst, own_worst = max(pauses(theirs)), max(pauses(own))
            if worst < WORST_SHARE * own_worst and own_worst - worst > 2 * NOTABLE:
                yield Better(f"{fault.key}/worst", peer.key, f"{title}: the worst time without a working leader was "
                             f"{seconds(worst)} with {peer.title}, and {seconds(own_worst)} with {TITLES[ours]}.")
            if is_notably_less(median, own_median):
                price = f" {peer.title} wrote {wrong(theirs)} wrong entries." if wrong(theirs) > wrong(own) else ""
                yield Better(f"{fault.key}/pause", peer.key, f"{title}: {peer.title} was without a working leader for "
                             f"{seconds(median)}, and {TITLES[ours]} for {seconds(own_median)}, by the median.{price}")


def better_at_rest(idle):
    measures = [
        ("requests/leader", "leader", requests, "requests an hour as a leader", 1),
        ("requests/follower", "follower", requests, "requests an hour as a follower", 1),
        ("processor", "follower", processor, "ms of processor time a minute as a follower", 5),
        ("memory", "follower", memory, "MiB of memory as a follower", 1),
    ]
    for row, role, measure, words, notable in measures:
        for peer, ours in peers():
            theirs, own = ([each for each in idle.of(key) if each["role"] == role] for key in (peer.key, ours))
            if not theirs or not own:
                continue
            one, other = measure(theirs[0]), measure(own[0])
            if one < SHARE * other and other - one >= notable:
                yield Better(row, peer.key, f"At rest: {peer.title} needs {one:,.0f} {words}, and {TITLES[ours]} {other:,.0f}.")
