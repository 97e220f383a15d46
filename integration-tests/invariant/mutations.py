"""The systems with one rule broken. Such a system has a run that ends with what the rule prevents."""

import inspect
import re
from types import ModuleType

from stories import Run


class Mutation:
    """The text `old` of a function becomes `new`. Then the run can break the goal, and without that it cannot."""

    def __init__(self, system, rule, broken, function, old, new, run, breaks="exclusion", ratio=1.5):
        self.whole, self.rule, self.broken = system, rule, broken
        self.function, self.old, self.new = function, old, new
        self.run, self.breaks, self.ratio = run, breaks, ratio

    def system(self):
        """The system of the changed text."""
        text = inspect.getsource(inspect.getmodule(self.whole.state))
        function = re.search(rf"^( *)def {self.function}\(.*?(?=^\S|^\1def |\Z)", text, re.M | re.S)
        if function[0].count(self.old) != 1:
            raise ValueError(f"{self.function} must have this text once: {self.old}")
        module = ModuleType(self.whole.state.__module__)
        exec(text[: function.start()] + function[0].replace(self.old, self.new) + text[function.end() :], vars(module))
        return getattr(module, module.__name__)

    def mistakes(self):
        """Everything that is not as expected. Tells the story."""
        goal = next(goal for goal in self.whole.goals if goal.name == self.breaks)
        if Run(self.whole, self.run, self.ratio).breaks(goal):
            yield f"{self.broken}: the same run breaks {goal.name} without that"
        run = Run(self.system(), self.run, self.ratio)
        if not run.breaks(goal):
            yield f"{self.broken}: the run does not break {goal.name}"
            return
        print(f"\nRule {self.rule} broken: {self.broken}.", *run.story(), sep="\n")
        for conjunct, action in run.breaches(self.whole.invariant):
            words = conjunct.text.replace("**", "")
            print(f"         `{conjunct.name}` was the first to be false, after `{action.name}`: {words}")
            return
