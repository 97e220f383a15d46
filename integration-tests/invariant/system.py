"""Transition systems: the fields of a state, the actions that change them, and the formulas that are to hold."""

import inspect

from z3 import ArraySort, BoolSort, Const, DeclareSort, ForAll, IntSort, Lambda, RealSort, Store

SORTS = ("Candidate", "Term", "Write", "Session", "Claim", "Part", "Quorum")
Candidate, Term, Write, Session, Claim, Part, Quorum = map(DeclareSort, SORTS)
Version, Token, Time, Truth = IntSort(), IntSort(), RealSort(), BoolSort()


class Map:
    """A field with one value for each element of a sort, or for each pair of elements."""

    def __class_getitem__(cls, sorts):
        return sorts

    def __init__(self, array, keys, value):
        self.array, self.keys, self.value = array, keys, value

    def __getitem__(self, key):
        return self.array[key]

    def __setitem__(self, key, value):
        self.array = Store(self.array, *(key if isinstance(key, tuple) else (key,)), value)

    def fill(self, value):
        self.change(lambda *_: value)

    def change(self, function):
        """Gives every element its value anew."""
        keys = [Const(f"key{number}", sort) for number, sort in enumerate(self.keys)]
        self.array = Lambda(keys, self.value.cast(function(*keys)))

    def copy(self):
        return Map(self.array, self.keys, self.value)


class State:
    """The fields at one moment. An action reads and assigns them like the variables of a program, and says what it requires.

    After an action, the fields are expressions of what they were before it.
    """

    def __init__(self, name="s"):
        for field, sort in type(self).__annotations__.items():
            *keys, value = sort if isinstance(sort, tuple) else (sort,)
            fresh = Const(f"{name}.{field}", ArraySort(*keys, value) if keys else value)
            setattr(self, field, Map(fresh, keys, value) if keys else fresh)
        self.required = []

    def after(self, action, *arguments):
        """The state after an action, which alone counts what the action has required."""
        after = object.__new__(type(self))
        for field, value in vars(self).items():
            setattr(after, field, value.copy() if isinstance(value, Map) else value)
        after.required = []
        action.body(after, *arguments)
        return after

    def require(self, *facts):
        self.required += facts


class Named:
    """An action or a formula: a function `body` of the state and of elements, which have names and sorts."""

    def __init__(self, name, text, rules, sorts):
        self.name, self.text, self.rules, self.sorts = name, text, rules, sorts

    def elements(self, suffix=""):
        return [Const(name + suffix, sort) for name, sort in self.sorts.items()]

    def of(self, state):
        """The formula, for all elements."""
        elements = self.elements()
        claim = self.body(state, *elements)
        return ForAll(elements, claim) if elements else claim


class Action(Named):
    def __init__(self, rules, body):
        sorts = {name: each.annotation for name, each in inspect.signature(body).parameters.items() if name != "s"}
        super().__init__(body.__name__, body.__doc__, rules, sorts)
        self.body = body


class System:
    """A transition system with its invariant, and with what the invariant is to imply."""

    def __init__(self, *, state, start, always, usual, names, leads, example):
        # `start` requires what holds at the start, and `always` are facts that no action can change.
        self.state, self.start, self.always = state, start, always
        # For stories: the usual timings, the names of constants, the sort of what leads, and a run with every action.
        self.usual, self.names, self.leads, self.example = usual, names, leads, example
        # docs/invariant.md has the formulas.
        self.actions, self.invariant, self.goals = [], [], []

    def action(self, *rules):
        return lambda body: self.actions.append(Action(rules, body)) or body
