"""Rows that do not fit the source are refused, and a mutation counts as caught only by what its row names."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

sys.dont_write_bytecode = True
import copies
import pages
import programs
import rows
import trials

SOURCE = """\
//! A lease { that is held.
struct Lease {
    until: u64, // 'a
}

impl Lease {
    fn is_over(&self, now: u64) -> bool {
        let text = "}";
        // Not yet.
        now
            >= self.until
    }

    const fn len(&self) -> u64 {
        self.until
    }

    fn both(&self, now: u64) -> bool {
        fn never() -> bool {
            false
        }
        self.is_over(now) || self.is_over(now)
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        0..self.until
    }

    fn work(&self) -> Option<impl Future<Output = u64>> {
        Some(async { self.until })
    }
}
"""


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "lease.rs").write_text(SOURCE)
        for module in (rows, copies):
            change = patch.object(module, "ROOT", self.root)
            change.start()
            self.addCleanup(change.stop)
        rows.Source.of.cache_clear()
        self.addCleanup(rows.Source.of.cache_clear)

    def row(self, function, old, new="", **values):
        edit = {"file": "lease.rs", "function": function, "old": old, "new": new}
        shown = {"name": "a-row", "promise": "a promise", "test": "crate::it::a_test"}
        return rows.Row({}, shown | edit | values, "a.toml:1")

    def test_a_text_is_found_however_it_is_broken_into_lines(self):
        [place] = self.row("is_over", "let text = \"}\"; now >= self.until").places()
        self.assertIn("// Not yet.", SOURCE[place.start : place.end])

    def test_a_text_that_is_no_longer_there_is_told_with_file_and_line(self):
        with self.assertRaisesRegex(rows.Mistake, r"a.toml:1: a-row: lease.rs:7: `is_over` does not have the old text"):
            self.row("is_over", "now > self.until").places()
        with self.assertRaisesRegex(rows.Mistake, "line 26 has it"):
            self.row("is_over", "0..self.until").places()

    def test_a_text_that_is_there_twice_is_refused(self):
        with self.assertRaisesRegex(rows.Mistake, "lease.rs:22, 22: `both` has the old text 2 times"):
            self.row("both", "self.is_over(now)").places()

    def test_a_function_must_be_the_innermost(self):
        with self.assertRaisesRegex(rows.Mistake, "lease.rs:20: the old text is in `never`, not in `both`"):
            self.row("both", "false").places()

    def test_a_part_of_a_name_is_no_text(self):
        with self.assertRaises(rows.Mistake):
            self.row("is_over", "no").places()

    def test_a_row_says_what_shows_it_or_why_nothing_does(self):
        with self.assertRaisesRegex(rows.Mistake, "nothing shows it"):
            self.row("len", "self.until", test=None)
        with self.assertRaisesRegex(rows.Mistake, "say why"):
            self.row("len", "self.until", test=None, model="any", question="exclusion")
        with self.assertRaisesRegex(rows.Mistake, "nothing is called `modle`"):
            self.row("len", "self.until", modle="any")

    def test_a_row_names_the_promise(self):
        for values in ({"simulation": True}, {"model": "a setup", "question": True}):
            with self.assertRaisesRegex(rows.Mistake, "name the promise"):
                self.row("len", "self.until", **values)
        for values in ({"model": "a setup"}, {"question": "exclusion"}):
            with self.assertRaisesRegex(rows.Mistake, "go together"):
                self.row("len", "self.until", **values)

    def test_a_seed_is_that_of_a_simulation(self):
        for values in ({"seed": 0}, {"conditions": ["trouble: Much"]}):
            with self.assertRaisesRegex(rows.Mistake, "are a simulation's"):
                self.row("len", "self.until", **values)

    def libraries(self):
        for library in (copies.LOWEST, copies.LIBRARY):
            (self.root / library).parent.mkdir(parents=True)
            (self.root / library).write_text("//! A library.\n")

    def test_what_no_second_body_can_say_is_refused(self):
        self.row("is_over", "self.until").places()
        for name, old in [("len", "self.until"), ("work", "self.until"), ("Lease", "until: u64")]:
            with self.assertRaisesRegex(rows.Mistake, "only the body of a function"):
                self.row(name, old).places()

    def test_a_function_has_a_body_for_each_of_its_mutations(self):
        self.libraries()
        first, second = self.row("is_over", ">=", ">", name="first"), self.row("is_over", "now >=", "1 >=", name="second")
        text = copies.of_all([first, second])["lease.rs"]
        self.assertEqual(text.count("fn is_over"), 1)
        for words in ("is_chosen(0) { // mutation: first", "now\n            > self.until", "is_chosen(1)", "1 >= self.until"):
            self.assertIn(words, text)
        self.assertIn("now\n            >= self.until", text)

    def test_a_function_inside_of_another_has_its_own_bodies(self):
        self.libraries()
        outer, inner = self.row("both", "self.is_over(now) ||", name="outer"), self.row("never", "false", "true", name="inner")
        text = copies.of_all([outer, inner])["lease.rs"]
        self.assertEqual(text.count("self.is_over(now) || self.is_over(now)\n    \n}}\n\n    fn all"), 1)
        self.assertEqual((text.count("{"), text.count("fn never")), (text.count("}"), 2))

    def test_bodies_that_return_any_iterator_have_one_type(self):
        self.libraries()
        text = copies.of_all([self.row("all", "0..", "1..")])["lease.rs"]
        self.assertEqual(text.count("mutation::boxed::<u64, _>("), 2)

    def test_a_mistake_is_that_of_the_mutation_whose_body_has_it(self):
        (self.root / "copy.rs").write_text("if a {// mutation: first\n} else if b {// mutation: second\n} else {// no mutation\n}")
        lines = [("copy.rs", 1), ("copy.rs", 2), ("copy.rs", 4), ("other.rs", 1)]
        self.assertEqual([copies.culprits(self.root, [line]) for line in lines], [{"first"}, {"second"}, set(), set()])

    def test_a_table_is_written_between_its_markers(self):
        page = "before\n<!-- mutations: lease -->\nold\n<!-- end of mutations -->\nafter\n"
        values = {"model": "a setup", "question": "exclusion", "not_simulated": "one lock", "test": None}
        text, missing, unknown = pages.written(page, {"lease": ({}, [self.row("len", "self.until", **values)]), "jobs": ({}, [])})
        self.assertIn("| `a-row` | a promise | `exclusion` | one lock |\n", text)
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n") and "old" not in text)
        self.assertEqual((missing, unknown), ({"jobs"}, set()))

    def test_the_number_of_mutations_is_written_between_its_markers(self):
        tables = {"jobs": ({}, [self.row("len", "self.until")] * 2), "lease": ({}, [self.row("both", "false")])}
        page = "before\n<!-- number of mutations -->\nold\n<!-- end of the number -->\nafter\n"
        text = pages.counted(page, tables)
        self.assertIn("\n3 mutations: jobs 2, lease 1.\n", text)
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n") and "old" not in text)
        self.assertIsNone(pages.counted("a page without markers\n", tables))

    def trial(self, **values):
        row = self.row("is_over", "self.until", **({"test": None, "not_modelled": "so", "not_simulated": "so"} | values))
        [trial] = trials.of(row)
        return trial

    def test_another_promise_than_that_of_the_row_is_not_what_catches_it(self):
        model = self.trial(model="a setup", question="exclusion")
        simulation = self.trial(simulation="Exclusion")
        for trial, status, words, is_right in [
            (model, 1, "a setup: Crash(1)\nviolated: exclusion\n", True),
            (model, 1, "a setup: Crash(1)\nviolated: tokens\n", False),
            (simulation, 1, "7 simulated hours in 1 s\nviolated: Exclusion seed: 3\n", True),
            (simulation, 1, "7 simulated hours in 1 s\nviolated: ExclusionOfOthers seed: 3\n", False),
        ]:
            verdict = trials.judge(trial, status, words, 0.5)
            self.assertEqual(verdict.is_right, is_right, words)
            self.assertEqual(f"NOT {trial.expected}" in str(verdict), not is_right, words)

    def test_what_ends_without_a_breach_has_caught_nothing(self):
        model = self.trial(model="a setup", question="exclusion")
        for status, words in [
            (0, "a setup: 7 states, 3 steps deep, 0.1 s\n"),
            # It has run out of time, or of memory.
            (-24, ""),
            (-9, "violated: exclusion\n"),
            # There is no such setup.
            (2, "no setup has that name\n"),
        ]:
            verdict = trials.judge(model, status, words, 0.5)
            self.assertFalse(verdict.is_right, words)
            self.assertIn("NOT CAUGHT", str(verdict))

    def test_a_test_catches_what_makes_it_fail_and_nothing_else(self):
        trial = self.trial(test="crate::it::lease::a_lease_ends")
        failed = "\nfailures:\n    {}\n\ntest result: FAILED. 0 passed; 1 failed\n"
        for words, is_right in [
            (failed.format("lease::a_lease_ends"), True),
            (failed.format("lease::a_lease_ends_at_once"), True),
            (failed.format("window::a_window_opens"), False),
            ("test result: ok. 1 passed; 0 failed\n", False),
            ("test result: ok. 0 passed; 0 failed\n", False),
        ]:
            self.assertEqual(trials.judge(trial, 101, words, 0.5).is_right, is_right, words)

    def test_a_seed_that_does_not_show_it_any_more_is_told(self):
        for seed, is_late in [(3, False), (4, True)]:
            trial = self.trial(simulation="Exclusion", seed=3, conditions=["trouble: Much"])
            verdict = trials.judge(trial, 1, f"violated: Exclusion seed: {seed}\n", 0.5)
            self.assertTrue(verdict.is_right)
            self.assertEqual(verdict.is_late, is_late)
        command = trial.command({"proofs": programs.Program("proofs", ".")})
        self.assertEqual(command[-3:], ["--first-seed", "3", "--condition=trouble: Much"])

    def test_the_longest_trials_of_the_last_run_are_first(self):
        first, second = self.trial(simulation="Exclusion"), self.trial(model="a setup", question="exclusion")
        memory = trials.Memory(self.root / "seconds.json")
        self.assertEqual(memory.longest_first([second, first]), [first, second])
        memory.keep([trials.Verdict(first, 0.2, "Exclusion"), trials.Verdict(second, 3.0, "exclusion")])
        memory = trials.Memory(self.root / "seconds.json")
        self.assertEqual(memory.longest_first([first, second]), [second, first])

    def test_each_package_is_built_once_for_all_that_need_it(self):
        shown = [self.trial(model="a setup", question="exclusion"), self.trial(test="crate::lib::lease::ends")]
        wanted = programs.wanted_by([*shown, *shown, self.trial(simulation="Exclusion")])
        self.assertEqual(wanted, [("crate", "--lib"), (programs.PROTOCOL, "--test", "interleavings")])


if __name__ == "__main__":
    unittest.main()
