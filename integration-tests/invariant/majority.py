"""The rules M1 to M8 and M10 of docs/protocol.md as a transition system, for any number of parts and any quorums that meet.

A *write* is one record for several parts, and lands in each of them by itself or not at all. Each try to take the lock is a term
of its own. Time, D and L are as in lease.py, and those of a term do not change.
"""

from itertools import combinations

from z3 import And, Const, Distinct, ForAll, Function, If, Implies, IntVal, Not, Or

from system import Candidate, Map, Part, Quorum, State, System, Term, Time, Token, Truth, Version, Write

# A write never changes once it is sent. In a part that it does not write, it replaces version -1, which never is there.
term = Function("term", Write, Term)
sent_at = Function("sent_at", Write, Time)
old = Function("old", Write, Part, Version)
takes = Function("takes", Write, Truth)
frees = Function("frees", Write, Truth)

# What a candidate decides when it begins to compete for a term.
owner = Function("owner", Term, Candidate)
base = Function("base", Term, Part, Version)
token = Function("token", Term, Token)
D = Function("D", Term, Time)
L = Function("L", Term, Time)

# The parts of a quorum, and the one that two quorums have in common.
has = Function("has", Quorum, Part, Truth)
common = Function("common", Quorum, Quorum, Part)

nothing, nobody = Const("nothing", Write), Const("nobody", Term)
m, q, r = Const("m", Part), Const("q", Quorum), Const("r", Quorum)
earlier = Const("earlier", Term)
# The parts of stories.
THREE = [Const(f"part {number}", Part) for number in (1, 2, 3)]


class Majority(State):
    now: Time
    # Landings in all parts are counted together: `top` is the newest of a part, or 0.
    landings: Version
    top: Map[Part, Version]
    shows: Map[Version, Write]
    at: Map[Version, Part]
    # The landing of a write in a part, or 0.
    place: Map[Write, Part, Version]
    sent: Map[Write, Truth]
    begun: Map[Term, Truth]
    ended: Map[Term, Truth]
    # A candidate's term, the last write that it knows to have landed in a quorum, and that quorum.
    mine: Map[Candidate, Term]
    held: Map[Candidate, Write]
    held_in: Map[Candidate, Quorum]
    # M1: the version of a part that a candidate has observed, or -1, and the moment from which the lease counts.
    seen: Map[Candidate, Part, Version]
    since: Map[Candidate, Part, Time]
    # What nobody reads: the wins in their order, the write and the quorum of each, and the landings before it. `barred` is a
    # term that has won with a token no smaller than that of a term which has not.
    wins: Version
    won: Map[Term, Version]
    won_by: Map[Term, Write]
    won_in: Map[Term, Quorum]
    won_at: Map[Term, Version]
    barred: Map[Term, Term]

    def live(s, p):
        return And(s.begun[p], Not(s.ended[p]))

    def before(s, u, v):
        return And(0 < u, u < v, v <= s.landings, s.at[u] == s.at[v])

    def open(s, w):
        return s.now < sent_at(w) + D(term(w))

    def leads(s, c):
        return And(s.holds(c), s.open(s.held[c]))

    def holds(s, c):
        return And(s.live(s.mine[c]), s.held[c] != nothing)

    def of(s, v, m):
        """A version that has landed in a part, or none."""
        return And(0 <= v, v <= s.landings, Or(v == 0, s.at[v] == m))

    def landed(s, w, q):
        return ForAll(m, Implies(has(q, m), s.place[w, m] > 0), patterns=[has(q, m)])

    def send(s, w, p, **what):
        """A new write of term p. Whether and when it lands in each part is open from now on."""
        s.require(w != nothing, Not(s.sent[w]), sent_at(w) == s.now, term(w) == p)
        s.require(takes(w) == what["takes"], frees(w) == what["frees"], ForAll(m, what["old"], patterns=[old(w, m)]))
        s.sent[w] = True


def start(s):
    s.require(s.now == sent_at(nothing))
    s.landings, s.wins = IntVal(0), IntVal(0)
    s.top.fill(0)
    s.shows.fill(nothing)
    s.place.fill(0)
    s.sent.fill(False)
    s.begun.fill(False)
    s.ended.fill(False)
    s.mine.fill(nobody)
    s.held.fill(nothing)
    s.seen.fill(-1)
    s.won.fill(0)
    s.barred.fill(nobody)


# A run with every action.
EXAMPLE = """look look compete take land land win renew land land learn release land crash
    look look compete take land land win"""


def usual(s, every, ratio):
    """Stories begin at 0 s, with a D of 10 s, and with three parts, of which each two are a quorum.

    Only if quorums need not meet, each is one part.
    """
    timings = [And(D(p) == 10, L(p) == 10 * ratio) for p in every(Term)]
    quorums = every(Quorum)
    met = [common(q, r) for q in quorums for r in quorums]
    parts = [Distinct(THREE), *(Or([m == part for part in THREE]) for m in [*every(Part), *met])]
    alone, two = [
        And([Or([And([has(q, part) == ((part is one) == is_in) for part in THREE]) for one in THREE]) for q in quorums])
        for is_in in (True, False)
    ]
    apart = Or([has(q, part) != has(r, part) for q, r in combinations(quorums, 2) for part in THREE])
    return [s.now == 0, *timings, *parts, Or(two, And(alone, apart))]


def meet(q, r):
    return And(has(q, common(q, r)), has(r, common(q, r)))


majority = System(
    state=Majority,
    start=start,
    usual=usual,
    always=[
        term(nothing) == nobody,
        frees(nothing),
        token(nobody) == -1,
        ForAll([q, r], meet(q, r)),
    ],
    names={nothing: "no record", nobody: "no term", **{part: str(part) for part in THREE}},
    leads=Candidate,
    example=EXAMPLE,
)


@majority.action()
def wait(s, t: Time):
    """Time passes."""
    s.require(t >= s.now)
    s.now = t


@majority.action("M1")
def look(s, c: Candidate, m: Part, v: Version, asked: Time):
    """{c} reads {s.shows[v]} in {m}."""
    s.require(s.of(v, m), asked <= s.now)
    s.since[c, m] = If(s.seen[c, m] == v, s.since[c, m], s.now)
    s.seen[c, m] = v


@majority.action("M1", "M2", "M4", "M5", "M7")
def compete(s, c: Candidate, p: Term, before: Term):
    """{c} competes for {p} with the token {token(p)}."""
    last = s.shows[base(p, m)]
    # The record of an earlier life is taken at once. A term of this process cannot be live here.
    free = Or(frees(last), owner(term(last)) == c)
    expired = s.now >= s.since[c, m] + L(term(last))
    taken = And(base(p, m) == s.seen[c, m], Or(free, expired), token(p) > token(term(last)))
    s.require(Not(s.live(s.mine[c])), ForAll(m, Or(base(p, m) == -1, taken), patterns=[base(p, m)]))
    s.require(p != nobody, Not(s.begun[p]), owner(p) == c, 0 <= D(p), D(p) <= L(p))
    # A candidate may not have read of the last terms.
    none = ForAll(earlier, Implies(s.won[earlier] > 0, token(earlier) < token(p)))
    s.require(Or(And(before == nobody, none), And(s.won[before] > 0, token(before) >= token(p))))
    s.begun[p] = True
    s.barred[p] = before
    s.mine[c] = p
    s.held[c] = nothing


@majority.action("M2")
def take(s, c: Candidate, w: Write):
    """{c} sends {w}, which takes parts for {term(w)}."""
    p = s.mine[c]
    s.require(s.live(p), s.won[p] == 0)
    s.send(w, p, takes=True, frees=False, old=old(w, m) == base(p, m))


@majority.action("M2", "M10")
def land(s, w: Write, m: Part):
    """{w} lands in {m}."""
    s.require(s.sent[w], old(w, m) == s.top[m])
    s.landings += 1
    s.shows[s.landings] = w
    s.at[s.landings] = m
    s.place[w, m] = s.landings
    s.top[m] = s.landings


@majority.action("M3", "M8")
def win(s, c: Candidate, w: Write, q: Quorum):
    """{c} learns that {w} has landed in a quorum."""
    p = s.mine[c]
    # What two quorums have in common, if a term bars this one.
    s.require(has(q, common(q, s.won_in[s.barred[p]])))
    s.require(s.sent[w], takes(w), term(w) == p, s.live(p), s.won[p] == 0, s.landed(w, q), s.open(w))
    s.wins += 1
    s.won[p] = s.wins
    s.won_by[p] = w
    s.won_in[p] = q
    s.won_at[p] = s.landings
    barred = s.barred.copy()
    s.barred.change(lambda r: If(And(s.begun[r], barred[r] == nobody, r != p, token(r) <= token(p)), p, barred[r]))
    s.held[c] = w
    s.held_in[c] = q


@majority.action("M3", "M10")
def learn(s, c: Candidate, w: Write, q: Quorum):
    """{c} learns that {w} has landed in a quorum."""
    p = s.mine[c]
    s.require(s.sent[w], Not(takes(w)), Not(frees(w)), term(w) == p, s.live(p), s.landed(w, q))
    s.held[c] = w
    s.held_in[c] = q


@majority.action("M10")
def renew(s, c: Candidate, w: Write):
    """{c} sends {w}, which renews its parts, and takes back those that it has lost."""
    p, v = s.mine[c], old(w, m)
    s.require(s.live(p), s.won[p] > 0)
    s.send(w, p, takes=False, frees=False, old=Or(v == -1, And(s.of(v, m), token(term(s.shows[v])) <= token(p))))


@majority.action("M6", "M7")
def release(s, c: Candidate, p: Term, w: Write):
    """{c} sends {w}, which frees the parts of {p}."""
    v = old(w, m)
    s.require(s.begun[p], owner(p) == c)
    s.ended[p] = True
    s.send(w, p, takes=False, frees=True, old=Or(v == -1, And(s.of(v, m), term(s.shows[v]) == p)))


@majority.action("M7")
def crash(s, c: Candidate):
    """{c} crashes, and starts again. Its writes may land yet."""
    s.ended[s.mine[c]] = True
    s.seen.change(lambda d, m: If(d == c, -1, s.seen[d, m]))
