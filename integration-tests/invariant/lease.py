"""The rules 1 to 9, 14, 15, 19 and 22 of docs/protocol.md as a transition system. It allows all that they allow, and more.

Time is real and the same for all. D(w) is the longest that the renew deadline of a write lasts on its writer's clock. L(w) is
the shortest that its lease lasts on any other clock. clocks.py shows why L(w) is no shorter than D(w).
"""

from z3 import And, Const, Function, If, IntVal, Not, Or

from system import Candidate, Map, State, System, Term, Time, Token, Truth, Version, Write

# A write never changes once it is sent.
term = Function("term", Write, Term)
sent_at = Function("sent_at", Write, Time)
old = Function("old", Write, Version)
token = Function("token", Write, Token)
takes = Function("takes", Write, Truth)
frees = Function("frees", Write, Truth)
D = Function("D", Write, Time)
L = Function("L", Write, Time)

# What a candidate decides when it begins to compete for a term.
owner = Function("owner", Term, Candidate)
base = Function("base", Term, Version)
first = Function("first", Term, Token)

# A lock without an object is shown as a free record of nobody.
nothing, nobody = Const("nothing", Write), Const("nobody", Term)


class Lease(State):
    now: Time
    # Versions are numbered in the order of landing.
    newest: Version
    shows: Map[Version, Write]
    sent: Map[Write, Truth]
    begun: Map[Term, Truth]
    ended: Map[Term, Truth]
    # A candidate's term, the version that it knows to be its own, and the moment from which its window counts.
    mine: Map[Candidate, Term]
    held: Map[Candidate, Version]
    counts_from: Map[Candidate, Time]
    # Rule 22: a candidate's D of today, and what it has left of the window of a write.
    deadline: Map[Candidate, Time]
    window: Map[Write, Time]
    # Rule 1: the version that a candidate has observed, or -1, and the moment from which the lease counts.
    seen: Map[Candidate, Version]
    since: Map[Candidate, Time]
    # Rule 15: the write that a candidate has heard of last.
    heard: Map[Candidate, Write]
    heard_at: Map[Candidate, Time]

    def landed(s, v):
        return And(0 <= v, v <= s.newest)

    def live(s, p):
        return And(s.begun[p], Not(s.ended[p]))

    def leads(s, c):
        return And(s.live(s.mine[c]), s.held[c] >= 0, s.now < s.counts_from[c] + s.window[s.shows[s.held[c]]])

    def send(s, w, p, **what):
        """A new write of term p. Whether it lands, and when, is open from now on."""
        s.require(w != nothing, Not(s.sent[w]), sent_at(w) == s.now, term(w) == p)
        s.require(takes(w) == what["takes"], frees(w) == what["frees"], old(w) == what["old"], token(w) == what["token"])
        s.require(D(w) == s.deadline[owner(p)], L(w) >= D(w))
        s.sent[w] = True
        s.window[w] = D(w)


def start(s):
    s.require(s.now == sent_at(nothing))
    s.newest = IntVal(0)
    s.shows.fill(nothing)
    s.sent.fill(False)
    s.begun.fill(False)
    s.ended.fill(False)
    s.mine.fill(nobody)
    s.seen.fill(-1)
    s.heard.fill(nothing)
    s.heard_at.fill(s.now)


# A run with every action.
EXAMPLE = """read compete take land learn hear renew land learn ask read read_with_age retime crash
    read compete end release land read compete take land learn"""


def usual(s, every, ratio):
    """Stories begin at 0 s, and with a D of 10 s."""
    return [s.now == 0, *(s.deadline[c] == 10 for c in every(Candidate)), *(L(w) == D(w) * ratio for w in every(Write))]


lease = System(
    state=Lease,
    start=start,
    usual=usual,
    always=[term(nothing) == nobody, frees(nothing), token(nothing) == -1, first(nobody) == -1, base(nobody) == -1],
    names={nothing: "no record", nobody: "no term"},
    leads=Candidate,
    example=EXAMPLE,
)


@lease.action()
def wait(s, t: Time):
    """Time passes."""
    s.require(t >= s.now)
    s.now = t


@lease.action("1", "14", "15")
def read(s, c: Candidate, v: Version, asked: Time):
    """{c} reads version {v}, which shows {s.shows[v]}."""
    # A read is a linearizable one, but the proof holds for any version that ever landed.
    s.require(s.landed(v), asked <= s.now)
    shown = s.shows[v]
    known = And(s.seen[c] >= 0, s.shows[s.seen[c]] == shown)
    s.since[c] = If(known, s.since[c], If(s.heard[c] == shown, s.heard_at[c], s.now))
    s.seen[c] = v


@lease.action("15")
def hear(s, c: Candidate, w: Write):
    """{c} hears of {w}."""
    # Nobody can name a write before it is sent, because its id is drawn then.
    s.require(s.sent[w])
    s.heard[c] = w
    s.heard_at[c] = s.now


@lease.action("19")
def read_with_age(s, c: Candidate, v: Version, moment: Time):
    """{c} reads version {v}, which shows {s.shows[v]}, and whose age dates it to {moment} s."""
    s.require(s.landed(v), moment <= s.now, moment >= sent_at(s.shows[v]))
    s.since[c] = moment
    s.seen[c] = v


@lease.action("2", "3", "8")
def compete(s, c: Candidate, p: Term):
    """{c} finds version {base(p)} free or expired, and competes for {p} with the token {first(p)}."""
    last = s.shows[s.seen[c]]
    # With `reclaim_own_identity`, the own record is taken at once. A term of this process cannot be live here.
    free = Or(frees(last), owner(term(last)) == c)
    expired = s.now >= s.since[c] + L(last)
    s.require(Not(s.live(s.mine[c])), s.seen[c] >= 0, Or(free, expired))
    s.require(p != nobody, Not(s.begun[p]), owner(p) == c, base(p) == s.seen[c], first(p) > token(last))
    s.begun[p] = True
    s.mine[c] = p
    s.held[c] = -1


@lease.action("3", "6")
def take(s, c: Candidate, w: Write):
    """{c} sends {w}, which takes the lease for {term(w)}, on version {old(w)}."""
    p = s.mine[c]
    s.require(s.live(p), s.held[c] < 0)
    # However often it is tried again.
    s.send(w, p, takes=True, frees=False, old=base(p), token=first(p))


@lease.action("3", "5", "9")
def land(s, w: Write):
    """{w} lands, and version {s.newest} shows it with the token {token(w)}."""
    # It may be delivered late and more than once, but its version is there only once.
    s.require(s.sent[w], old(w) == s.newest)
    s.newest += 1
    s.shows[s.newest] = w


@lease.action("4", "6")
def learn(s, c: Candidate, v: Version):
    """{c} learns that {s.shows[v]} has landed as version {v}."""
    w = s.shows[v]
    s.require(s.landed(v), term(w) == s.mine[c], s.live(s.mine[c]))
    s.held[c] = v
    s.counts_from[c] = sent_at(w)


@lease.action("5")
def renew(s, c: Candidate, w: Write):
    """{c} sends {w}, which renews the lease, on version {old(w)}."""
    p, v = s.mine[c], s.held[c]
    s.require(s.live(p), v >= 0)
    s.send(w, p, takes=False, frees=False, old=v, token=token(s.shows[v]))


@lease.action("22")
def retime(s, c: Candidate, d: Time):
    """{c} gets a renew deadline of {d} s."""
    s.require(d >= 0)
    s.deadline[c] = d
    p, window = s.mine[c], s.window.copy()
    s.window.change(lambda w: If(And(term(w) == p, window[w] > d), d, window[w]))


@lease.action("8")
def end(s, c: Candidate):
    """{c} ends its term."""
    s.ended[s.mine[c]] = True


@lease.action("9")
def release(s, c: Candidate, v: Version, w: Write):
    """{c} sends {w}, which frees the lease, on version {old(w)}."""
    p = s.mine[c]
    s.require(p != nobody, Not(s.live(p)), s.landed(v), term(s.shows[v]) == p)
    s.send(w, p, takes=False, frees=True, old=v, token=token(s.shows[v]))


@lease.action("14")
def ask(s, v: Version):
    """Somebody asks the leader to hand over: version {s.newest} shows {s.shows[v]} again."""
    s.require(v == s.newest)
    s.newest += 1
    s.shows[s.newest] = s.shows[v]


@lease.action("6")
def crash(s, c: Candidate):
    """{c} crashes, and starts again. Its writes may land yet."""
    s.ended[s.mine[c]] = True
    s.seen[c] = -1
