"""What is wrong is noticed: a formula that does not hold, an action that never happens, a rule without a place."""

import copy
import unittest
from unittest.mock import patch

from z3 import And, Implies, Not, Or, Solver, sat, unsat

import clocks
import main
import kernel
import page
import proof
from broken import Mutation
from formulas import Formula
from lease import lease, owner, term, token


def changed(**fields):
    system = copy.copy(lease)
    vars(system).update(fields)
    return system


def formula(text):
    return Formula(lease, "claim", "", text)


class Noticed(unittest.TestCase):
    def test_a_formula_is_read_as_it_is_written(self):
        claim = formula("0 ≤ u < v ∧ ¬live(term(w)) → token(u) + 1 ≠ token(w) ∨ seen(owner(term(v))) = v")
        s = lease.state()
        u, v, w = claim.elements()
        seen = s.seen[owner(term(s.shows[v]))]
        by_hand = Implies(And(0 <= u, u < v, Not(s.live(term(w)))), Or(token(s.shows[u]) + 1 != token(w), seen == v))
        solver = Solver()
        solver.add(claim.body(s, u, v, w) != by_hand)
        self.assertEqual(solver.check(), unsat)
        with self.assertRaises(KeyError):
            formula("held(c) = newer").of(s)

    def test_a_conjunct_that_an_action_breaks(self):
        count, failed = proof.failures(changed(invariant=[formula("newest = 0")], goals=[]))
        self.assertEqual(count, 1 + len(lease.actions))
        self.assertEqual(failed, ["claim after land: sat", "claim after ask: sat"])

    def test_a_goal_that_does_not_follow(self):
        without = [each for each in lease.invariant if each.name != "replaced"]
        with patch("proof.LIMIT", 1_000_000):
            _, failed = proof.failures(changed(invariant=without, actions=[]))
        self.assertEqual([each.split()[0] for each in failed], ["exclusion", "leading"])

    def test_an_action_that_never_happens(self):
        self.assertEqual(len(main.unreachable(changed(example="read compete take land learn"))), len(lease.actions) - 6)
        self.assertEqual(len(main.unreachable(changed(example="renew"))), len(lease.actions))

    def test_clocks_that_differ_by_more(self):
        self.assertEqual(clocks.refutation(And(0 < clocks.slowest, 0 < clocks.deadline)), sat)

    def test_a_mutation_that_breaks_nothing(self):
        harmless = Mutation(lease, "1", "nothing", "land", "old(w) ==", "old(w) >=", "read compete take land")
        self.assertEqual(list(harmless.mistakes()), ["nothing: the run does not break exclusion"])
        with self.assertRaisesRegex(ValueError, "land must have this text once: s.newest"):
            Mutation(lease, "1", "nothing", "land", "s.newest", "0", "read").system()

    def test_a_rule_without_a_place(self):
        protocol = "1. **Observe.** Looks.\n25. **`new`** is a rule.\n- **S7. Delete.** It.\n- **Bold.** It.\n"
        self.assertEqual(list(page.rules(protocol)), ["1", "25", "S7"])
        found = set(page.mistakes([lease], main.BROKEN, main.PAGE, main.PROTOCOL + "\n25. **New.** A rule.\n"))
        self.assertIn("rule 25 has no place: a system, or the last list of docs/invariant.md", found)

    def test_a_rule_without_a_file(self):
        found = set(page.mistakes([lease], main.BROKEN, main.PAGE, main.PROTOCOL.replace("\n- 22: `", "\n- `").replace("\n- 19, 22: `", "\n- 19: `")))
        self.assertIn("docs/protocol.md: rule 22 has no file", found)

    def test_an_action_without_a_function(self):
        self.assertEqual(list(page.functions(lease, "lease", main.PAGE)), [])
        renamed = main.PAGE.replace("`tick`", "`tock`").replace("- `learn`: ", "- `lern`: ")
        found = {"the action learn names no function", "there is no action lern", "the kernel has no function tock"}
        self.assertEqual(set(page.functions(lease, "lease", renamed)), {f"docs/invariant.md: {each}" for each in found})

    def test_a_function_that_does_not_name_its_rule(self):
        found = list(page.mistakes([lease], main.BROKEN, main.PAGE, main.PROTOCOL.replace("(`may_release`)", "(`release`)")))
        self.assertIn("docs/protocol.md: the comments of the kernel do not say: - 9: `lease.rs` (`release`)", found)
        self.assertIn("docs/protocol.md: the list of the kernel's functions needs this line: - 9: `lease.rs` (`may_release`)", found)
        self.assertEqual(list(kernel.spread("8, 9 and M1 to M3")), ["8", "9", "M1", "M2", "M3"])

    def test_a_formula_that_no_rule_keeps(self):
        found = set(page.mistakes([changed(invariant=[formula("newest = 0")])], main.BROKEN, main.PAGE, main.PROTOCOL))
        self.assertIn("claim: no rule keeps it", found)

    def test_each_item_of_a_list_is_read(self):
        text = "<!-- a: goals -->\n\n- `one` (1, S2): **A** sentence.\\\n  `newest = 0`\n- `two`: It goes on\n  here.\\\n  `0 ≤ newest`\n\n"
        read = [("one", ["1", "S2"], "**A** sentence.", "newest = 0"), ("two", [], "It goes on here.", "0 ≤ newest")]
        self.assertEqual(list(page.formulas(text, "a: goals")), read)
        with self.assertRaisesRegex(ValueError, "no formula with a name, words and a text: `one`"):
            list(page.formulas(text.replace("`newest = 0`", ""), "a: goals"))
        listed = sum(len(each.goals) + len(each.invariant) for each in main.SYSTEMS.values())
        self.assertEqual(main.PAGE.count("\\\n  `"), listed)


if __name__ == "__main__":
    unittest.main()
