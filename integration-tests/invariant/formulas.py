"""The formulas of docs/invariant.md, as Z3 reads them."""

import ast
import operator

from z3 import And, FuncDeclRef, Implies, IntVal, Not, Or

from system import Candidate, Claim, Map, Named, Part, Quorum, Session, Term, Version, Write

SIGNS = str.maketrans({"=": "==", "≤": "<=", "≠": "!=", "∧": " and ", "∨": " or ", "¬": " not "})
COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le}
# A letter that is no name of a system stands for all elements of its sort.
LETTERS = {"c": Candidate, "d": Candidate, "p": Term, "r": Term, "w": Write, "u": Version, "v": Version}
LETTERS |= {"x": Session, "j": Claim, "k": Claim, "m": Part, "q": Quorum}


class Formula(Named):
    """A formula of a state, about all elements that its letters stand for."""

    def __init__(self, system, name, text, formula, rules=()):
        self.parts = [ast.parse(part.strip().translate(SIGNS).strip(), mode="eval").body for part in formula.split("→")]
        names = [node.id for part in self.parts for node in ast.walk(part) if isinstance(node, ast.Name)]
        super().__init__(name, text, rules, {each: LETTERS[each] for each in names if each in LETTERS})
        self.words = system.start.__globals__

    def body(self, s, *elements):
        meaning = Meaning(s, {**self.words, **dict(zip(self.sorts, elements))})
        *assumed, claim = map(meaning.of, self.parts)
        return Implies(And(assumed), claim) if assumed else claim


class Meaning:
    """The meaning of the parts of a formula in a state."""

    def __init__(self, state, words):
        self.state, self.words = state, words

    def of(self, node):
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return And(*map(self.of, parts))
            case ast.BoolOp(op=ast.Or(), values=parts):
                return Or(*map(self.of, parts))
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return Not(self.of(part))
            case ast.Compare():
                terms = [self.of(each) for each in (node.left, *node.comparators)]
                return And([COMPARED[type(sign)](*pair) for sign, *pair in zip(node.ops, terms, terms[1:])])
            case ast.BinOp(op=ast.Add()):
                return self.of(node.left) + self.of(node.right)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.applied(self.named(name), [self.of(each) for each in arguments])
            case ast.Name(id=name):
                return self.named(name)
            case ast.Constant(value=int(number)):
                return IntVal(number)
        raise SyntaxError(f"no formula: {ast.unparse(node)}")

    def named(self, name):
        return getattr(self.state, name) if hasattr(self.state, name) else self.words[name]

    def applied(self, function, arguments):
        """An attribute of a version is that of the element that the version shows."""
        if isinstance(function, Map):
            return function[tuple(map(self.shown, function.keys, arguments))]
        if isinstance(function, FuncDeclRef):
            return function(*(self.shown(function.domain(number), each) for number, each in enumerate(arguments)))
        return function(*arguments)

    def shown(self, sort, element):
        if element.sort() != Version or sort == Version:
            return element
        fields = (each for each in vars(self.state).values() if isinstance(each, Map))
        return next(each for each in fields if each.keys == [Version] and each.value == sort)[element]
