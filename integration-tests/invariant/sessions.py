"""The rules S1 to S6 of docs/protocol.md as a transition system, for one lock and any number of sessions.

Locks share nothing but sessions, so one lock stands for all. A *write* is one of a session's object. A *claim* is a write of the
lock, and its own term. Time, D and L are as in lease.py, and those of a session do not change.
"""

from itertools import combinations

from z3 import And, Const, Function, If, IntVal, Not, Or

from system import Candidate, Claim, Map, Session, State, System, Time, Token, Truth, Version, Write

owner = Function("owner", Session, Candidate)
D = Function("D", Session, Time)
L = Function("L", Session, Time)

session = Function("session", Write, Session)
sent_at = Function("sent_at", Write, Time)
old = Function("old", Write, Version)
ends = Function("ends", Write, Truth)

# The session that a claim names, the version of the lock that it replaces, its token, and whether it gives the lock back.
by = Function("by", Claim, Session)
base = Function("base", Claim, Version)
token = Function("token", Claim, Token)
frees = Function("frees", Claim, Truth)

# A session without an object, and a lock without one.
absent, nothing = Const("absent", Write), Const("nothing", Claim)


class Sessions(State):
    now: Time
    # Landings at all sessions' objects are counted together: `top` is the newest of an object, or 0.
    landings: Version
    top: Map[Session, Version]
    shows: Map[Version, Write]
    sent: Map[Write, Truth]
    opened: Map[Session, Truth]
    closed: Map[Session, Truth]
    # The landing that the owner knows to be its own last one, and the moment from which its window counts.
    held: Map[Session, Version]
    counts_from: Map[Session, Time]
    # S3: the landing that a process has observed, or -1, and the moment from which the lease counts.
    seen: Map[Candidate, Session, Version]
    since: Map[Candidate, Session, Time]
    # The lock.
    newest: Version
    names: Map[Version, Claim]
    claimed: Map[Claim, Truth]
    adopted: Map[Claim, Truth]
    dropped: Map[Claim, Truth]

    def ended(s, x):
        return And(s.top[x] > 0, ends(s.shows[s.top[x]]))

    def valid(s, x):
        return And(s.opened[x], Not(s.closed[x]), s.held[x] > 0, s.now < s.counts_from[x] + D(x))

    def leads(s, k):
        return And(s.adopted[k], Not(s.dropped[k]), s.valid(by(k)))

    def send(s, w, x, **what):
        """A new write of the object of session x."""
        s.require(w != absent, Not(s.sent[w]), sent_at(w) == s.now, session(w) == x)
        s.require(old(w) == what["old"], ends(w) == what["ends"])
        s.sent[w] = True

    def claim(s, k, x, **what):
        """A new write of the lock that names session x, or that gives the lock of session x back."""
        s.require(k != nothing, Not(s.claimed[k]), by(k) == x)
        s.require(base(k) == what["base"], token(k) == what["token"], frees(k) == what["frees"])
        s.claimed[k] = True


def start(s):
    s.require(s.now == sent_at(absent))
    s.landings, s.newest = IntVal(0), IntVal(0)
    s.top.fill(0)
    s.shows.fill(absent)
    s.sent.fill(False)
    s.opened.fill(False)
    s.seen.fill(-1)
    s.names.fill(nothing)
    s.claimed.fill(False)
    s.adopted.fill(False)
    s.dropped.fill(False)


# A run with every action.
EXAMPLE = """open land learn take claim_lands adopt renew land learn drop free claim_lands
    open land learn take claim_lands adopt close end_own land look end land bury
    open land learn take claim_lands adopt"""


def usual(s, every, ratio):
    """Stories begin at 0 s, D is 10 s, each session is one of another process, and each term one of another session."""
    timings = [And(D(x) == 10, L(x) == 10 * ratio) for x in every(Session)]
    owners = [Or(x == y, owner(x) != owner(y)) for x, y in combinations(every(Session), 2)]
    terms = [Or(j == k, frees(j), frees(k), by(j) != by(k)) for j, k in combinations(every(Claim), 2)]
    return [s.now == 0, *timings, *owners, *terms]


sessions = System(
    state=Sessions,
    start=start,
    usual=usual,
    always=[Not(ends(absent)), frees(nothing), token(nothing) == -1],
    names={absent: "no object", nothing: "no record"},
    leads=Claim,
    example=EXAMPLE,
)


@sessions.action()
def wait(s, t: Time):
    """Time passes."""
    s.require(t >= s.now)
    s.now = t


@sessions.action("S1")
def open(s, x: Session, w: Write):
    """{owner(x)} opens {x} with {w}, the only write that creates its object."""
    s.require(Not(s.opened[x]), L(x) >= D(x), D(x) >= 0)
    s.send(w, x, old=0, ends=False)
    s.opened[x] = True
    s.closed[x] = False
    s.held[x] = 0


@sessions.action("S1")
def learn(s, x: Session, v: Version):
    """{owner(x)} learns that {s.shows[v]} of {x} has landed."""
    w = s.shows[v]
    s.require(s.opened[x], 0 < v, v <= s.landings, session(w) == x, Not(ends(w)))
    s.held[x] = v
    s.counts_from[x] = sent_at(w)


@sessions.action("S1")
def renew(s, x: Session, w: Write):
    """{owner(x)} sends {w}, which renews {x}."""
    s.require(s.opened[x], Not(s.closed[x]), s.held[x] > 0)
    s.send(w, x, old=s.held[x], ends=False)


@sessions.action("S4", "S6")
def land(s, w: Write):
    """{w} lands at the object of {session(w)}."""
    x = session(w)
    s.require(s.sent[w], old(w) == s.top[x])
    s.landings += 1
    s.shows[s.landings] = w
    s.top[x] = s.landings


@sessions.action("S3")
def look(s, c: Candidate, x: Session, v: Version, asked: Time):
    """{c} reads {s.shows[v]} in the object of {x}."""
    s.require(owner(x) != c, 0 < v, v <= s.landings, session(s.shows[v]) == x, asked <= s.now)
    s.since[c, x] = If(s.seen[c, x] == v, s.since[c, x], s.now)
    s.seen[c, x] = v


@sessions.action("S4")
def end(s, c: Candidate, x: Session, w: Write):
    """{c} finds {x} expired, and sends {w}, which ends it."""
    v = s.seen[c, x]
    s.require(v > 0, Not(ends(s.shows[v])), s.now >= s.since[c, x] + L(x))
    s.send(w, x, old=v, ends=True)


@sessions.action("S4")
def bury(s, x: Session, w: Write):
    """Somebody finds no object of {x}, and sends {w}, which creates an ended one."""
    s.send(w, x, old=0, ends=True)


@sessions.action("S6")
def close(s, x: Session):
    """{owner(x)} ends all work of {x}."""
    s.closed[x] = True


@sessions.action("S6")
def end_own(s, x: Session, v: Version, w: Write):
    """{owner(x)} sends {w}, which ends {x}."""
    s.require(s.opened[x], s.closed[x], 0 < v, v <= s.landings, session(s.shows[v]) == x, Not(ends(s.shows[v])))
    s.send(w, x, old=v, ends=True)


@sessions.action("S2", "S5")
def take(s, x: Session, v: Version, k: Claim):
    """{owner(x)} sends {k} for {x}, which takes the lock on version {v} with the token {token(k)}."""
    last = s.names[v]
    s.require(s.opened[x], Not(s.closed[x]), 0 <= v, v <= s.newest, Or(frees(last), s.ended(by(last))))
    s.require(token(k) > token(last))
    s.claim(k, x, base=v, token=token(k), frees=False)


@sessions.action("S5", "S6")
def claim_lands(s, k: Claim):
    """{k} lands as version {s.newest} of the lock."""
    s.require(s.claimed[k], base(k) == s.newest)
    s.newest += 1
    s.names[s.newest] = k


@sessions.action("S2")
def adopt(s, k: Claim, v: Version):
    """{owner(by(k))} learns that {k} has landed."""
    s.require(s.claimed[k], Not(frees(k)), 0 < v, v <= s.newest, s.names[v] == k, s.valid(by(k)))
    s.adopted[k] = True


@sessions.action("S6")
def drop(s, k: Claim):
    """{owner(by(k))} ends the work of {k}."""
    s.dropped[k] = True


@sessions.action("S6")
def free(s, v: Version, k: Claim):
    """{owner(by(k))} sends {k}, which gives the lock back, on version {v}."""
    last = s.names[v]
    s.require(0 < v, v <= s.newest, s.claimed[last], s.dropped[last])
    s.claim(k, by(last), base=v, token=token(last), frees=True)
