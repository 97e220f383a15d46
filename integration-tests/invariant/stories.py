"""Runs from the beginning, by the names of their actions. Z3 finds who acts and when, and a person reads what happens."""

import itertools
import re

import z3

from system import Candidate


class Run:
    """A run of a system. Time may pass before each of its actions."""

    def __init__(self, system, actions, ratio=1.5):
        self.system, self.states, self.steps = system, [system.state()], []
        system.start(self.states[0])
        by_name = {action.name: action for action in system.actions}
        for number, name in enumerate(f"wait {action}" for action in actions.split()):
            for action in map(by_name.get, name.split()):
                elements = dict(zip(action.sorts, action.elements(str(number))))
                self.states.append(self.states[-1].after(action, *elements.values()))
                self.steps.append((action, elements))
        # Whole seconds, and no longer waits than a lease.
        self.facts = [z3.And(z3.IsInt(b.now), b.now <= a.now + 15) for a, b in zip(self.states, self.states[1:])]
        self.elements = [each for _, elements in self.steps for each in elements.values()]
        self.facts += [*system.always, *(fact for state in self.states for fact in state.required)]
        self.facts += system.usual(self.states[0], lambda sort: [each for each in self.elements if each.sort() == sort], ratio)
        self.facts = [self.grounded(fact) for fact in self.facts]

    def grounded(self, fact):
        """A fact about all elements is one about each that the run names."""
        if z3.is_and(fact) or z3.is_or(fact):
            return (z3.And if z3.is_and(fact) else z3.Or)([self.grounded(each) for each in fact.children()])
        if not z3.is_quantifier(fact):
            return fact
        sorts = [fact.var_sort(number) for number in range(fact.num_vars())]
        known = [[each for each in (*self.system.names, *self.elements) if each.sort() == sort] for sort in sorts]
        return z3.And([self.grounded(z3.substitute_vars(fact.body(), *reversed(row))) for row in itertools.product(*known)])

    def ends(self, claim):
        """Whether the run exists and can end so. If it does, this is the run that is told."""
        solver = z3.Solver()
        solver.add(*self.facts, claim)
        answer = solver.check()
        if answer == z3.unknown:
            raise RuntimeError(f"Z3 does not know: {solver.reason_unknown()}")
        self.model, self.told = solver.model() if answer == z3.sat else None, {}
        return self.model is not None

    def breaks(self, goal):
        """Whether the run can end with what the goal excludes."""
        elements = goal.elements("!")
        self.elements += elements
        return self.ends(z3.Not(goal.body(self.states[-1], *elements)))

    def value(self, expression):
        return self.model.eval(expression, model_completion=True)

    def known(self, sort, state):
        """The elements of a sort that the run is about."""
        if sort == z3.IntSort():
            fields = [self.value(field) for field in vars(state).values() if z3.is_int(field)]
            return [z3.IntVal(number) for number in range(-1, max(field.as_long() for field in fields) + 1)]
        named = [self.value(each) for each in (*self.system.names, *self.elements) if each.sort() == sort]
        return [each for number, each in enumerate(named) if not any(map(each.eq, named[:number]))]

    def word(self, expression):
        """The name of an element in the story, or a number."""
        value = self.value(expression)
        if z3.is_arith(value):
            return f"{float(value.as_fraction() if z3.is_rational_value(value) else value.as_long()):g}"
        for element, name in self.system.names.items():
            if value.eq(self.value(element)):
                return name
        told = self.told.setdefault(str(value.sort()), [])
        if not any(map(value.eq, told)):
            told.append(value)
        number = next(number for number, each in enumerate(told) if value.eq(each))
        return "abcdef"[number] if value.sort() == Candidate else f"{str(value.sort()).lower()} {number + 1}"

    def leaders(self, state):
        return [self.word(each) for each in self.known(self.system.leads, state) if z3.is_true(self.value(state.leads(each)))]

    def story(self):
        """What happens, a line for each action, and who leads afterwards."""
        leading = []
        for (action, elements), state in zip(self.steps, self.states[1:]):
            if action.name != "wait":
                scope = {**action.body.__globals__, **elements, "s": state}
                text = re.sub(r"\{(.*?)\}", lambda field: self.word(eval(field[1], scope)), action.text.split("\n")[0])
                yield f"{self.word(state.now):>5} s  {text}"
            if (now := self.leaders(state)) != leading:
                leading = now
                yield f"{self.word(state.now):>5} s    {' and '.join(now) or 'nobody'} {'lead' if len(now) > 1 else 'leads'}"

    def breaches(self, invariant):
        """The conjuncts that are false for some elements, with the action after which they are, in the order of the run."""
        for (action, _), state in zip(self.steps, self.states[1:]):
            for conjunct in invariant if action.name != "wait" else []:
                for elements in itertools.product(*(self.known(sort, state) for sort in conjunct.sorts.values())):
                    if z3.is_false(self.value(conjunct.body(state, *elements))):
                        yield conjunct, action
