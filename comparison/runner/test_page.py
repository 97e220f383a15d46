"""Tests of the page: its tables, its picture, and that it is made of the raw numbers and nothing else."""

import re
import shutil
import tempfile
import unittest
from pathlib import Path

from runner import report, results, rows, words
from runner.contestants import CONTESTANTS
from runner.faults import FAULTS
from runner.plot import SQUARE, Line, plot

DOCS = Path(__file__).resolve().parents[2] / "docs"
PUBLISHED = DOCS / "comparison"


def trial(pause, overlap=0, lease=3000, **columns):
    """A row of a trial, in milliseconds."""
    row = {"pause_ms": pause, "overlap_ms": overlap, "wrong": int(overlap > 0), "lease_ms": lease, "takeover_ms": "", **columns}
    return {name: str(value) for name, value in row.items()}


def tables(folder):
    return results.Table(folder, "trials", results.TRIALS), results.Table(folder, "idle", results.IDLE), results.Facts(folder)


class Cells(unittest.TestCase):
    def test_a_time_is_the_median_and_the_worst(self):
        self.assertEqual(rows.cell([trial(1000), trial(3000), trial(2000)]), "2.00 (3.00)")
        self.assertEqual(rows.cell([]), "–")

    def test_an_overlap_never_counts_as_a_short_time(self):
        self.assertEqual(rows.cell([trial(20, overlap=900), trial(1000)]), "1.00 (1.00), two leaders 1/2")
        self.assertEqual(rows.cell([trial(20, overlap=900)] * 3), "two leaders 3/3")

    def test_a_long_wait_is_reported_beside_an_overlap(self):
        self.assertEqual(rows.cell([trial(63_000, overlap=300)]), "two leaders 1/1, none 63.0")

    def test_several_stores_do_not_hide_two_leaders(self):
        self.assertEqual(rows.cells_of([[trial(1000), trial(1500)], [], [trial(2000)]]), "1.00–2.00 (2.00)")
        self.assertEqual(rows.cells_of([[trial(1000)], [trial(20, overlap=900)]]), "1.00 (1.00), two leaders 1/2")
        self.assertEqual(rows.cells_of([[], []]), "–")

    def test_the_kinds_on_one_lock_answer_for_themselves(self):
        mixed = next(each for each in CONTESTANTS if each.key == "mixed-lease")
        ours, theirs = {"wrong": "0", "from": "ours"}, {"wrong": "3", "from": "client-go-lease"}
        said = rows.by_driver(mixed, [ours, theirs, ours])
        self.assertEqual(said, "Sharing one Lease, client-go's leaders wrote 3 wrong entries in 1 trials, this library's 0 in 2.")
        self.assertIsNone(rows.by_driver(CONTESTANTS[0], [ours]))

    def test_leaders_that_lost_the_lease_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            table, *_ = tables(folder)
            self.assertEqual(rows.lost_leases(table), "No leader lost the lease.")
            for number, takeover in enumerate(("", 5)):
                table.add(trial(20, contestant="kubert", fault="lost", trial=number, takeover_ms=takeover))
            self.assertEqual(rows.lost_leases(table), "A leader lost the lease only with kubert (1 of 2 trials).")

    def test_the_first_table_counts_all_faults(self):
        kubert = next(each for each in CONTESTANTS if each.key == "kubert")
        with tempfile.TemporaryDirectory() as folder:
            trials, idle, _ = tables(folder)
            for number, (fault, overlap) in enumerate((("kill", 0), ("stop", 0), ("clock", 300), ("cut", 0))):
                trials.add(trial(1000 * (number + 1), overlap, contestant="kubert", fault=fault, trial=number))
            for role, reads in (("leader", 60), ("follower", 30)):
                idle.add({"contestant": "kubert", "role": role, "seconds": 120, "writes": 0, "reads": reads, "lists": 0})
            self.assertEqual(rows.summary_line(kubert, trials, idle), "| kubert, Lease | 1/4 | 1 | 1.00 (1.00) | 2.00 (2.00) | 3,600 |")
            self.assertIsNone(rows.summary_line(CONTESTANTS[0], trials, idle))

    def test_the_verdict_has_both_sides_and_nothing_that_they_share(self):
        with tempfile.TemporaryDirectory() as folder:
            trials, *_ = tables(folder)
            for contestant, overlap in (("ours-s3", 0), ("kubert", 5), ("fabric8", 0), ("mixed-lease", 5)):
                trials.add(trial(1000, overlap, contestant=contestant, fault="kill", trial=0))
            self.assertEqual(rows.verdict(trials), "After all faults, two leaders were seen in 0 of 1 trials of this library, and in 1 of 2 of the others.")


class Picture(unittest.TestCase):
    def test_every_trial_has_one_mark(self):
        picture = plot("Title & more", "note", [Line("ours", True, [], [3, 3.1], [0.2]), Line("theirs", False, [0.9], [], [])])
        self.assertEqual(picture.count("<circle"), 3)
        self.assertEqual(picture.count('class="ours stop"'), 1)
        self.assertEqual(picture.count('<rect class="two-leaders"'), 1)
        self.assertIn("Title &amp; more", picture)
        self.assertIn("prefers-color-scheme:dark", picture)

    def test_two_leaders_are_never_on_the_side_of_the_times_without_one(self):
        picture = plot("title", "note", [Line("", True, [0.01, 3], [0.01, 3], [0.02])])

        def places(pattern):
            return [float(found) for found in re.findall(pattern, picture)]

        zero = places(r'class="axis" d="M([\d.]+)')[0]
        squares = places(r'<rect class="two-leaders" x="([\d.]+)"')
        self.assertTrue(len(squares) == 2 and all(place + SQUARE <= zero for place in squares), (squares, zero))
        self.assertTrue(all(place > zero for place in places(r' cx="([\d.]+)"')))

    def test_a_trial_with_two_leaders_has_no_dot(self):
        with tempfile.TemporaryDirectory() as folder:
            trials, *_ = tables(folder)
            trials.add(trial(20, 900, contestant="kubert", fault="kill", trial=0), trial(3000, contestant="kubert", fault="kill", trial=1))
            trials.add(trial(20, 900, contestant="kubert", fault="freeze", trial=0))
            # The default timings have another scale.
            trials.add(trial(20, 900, 15_000, contestant="kubert", fault="cut-slow", trial=0))
            picture = report.picture(trials)
        self.assertEqual((picture.count("<circle"), picture.count('<rect class="two-leaders"')), (1, 2))


class Page(unittest.TestCase):
    def test_the_page_is_made_of_the_published_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            report.write(Path(folder), *tables(PUBLISHED))
            for name in ("comparison.md", f"comparison/{report.PICTURE}"):
                self.assertEqual((Path(folder) / name).read_text(), (DOCS / name).read_text(), f"{name}: run comparison/run --page-only")

    def test_all_numbers_of_peers_and_all_two_leaders_are_explained(self):
        trials, idle, _ = tables(PUBLISHED)
        found = [*rows.better_after_faults(trials), *rows.better_at_rest(idle)]
        self.assertEqual([row for row in found if not words.mechanism(row)], [])
        two = [(fault.key, each.key) for fault in FAULTS for each in CONTESTANTS
               if rows.with_two_leaders(trials.of(each.key, fault.key)) and not words.overlap(fault.key, each.key)]
        self.assertEqual(two, [])

    def test_older_figures_are_named_until_they_are_measured_anew(self):
        trials, idle, facts = tables(PUBLISHED)
        self.assertIn("Older figures: kubert, kube-leader-election and fabric8", report.older(facts))
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(report.older(results.Facts(folder)), "")

    def test_a_reason_of_this_machine_is_not_given_for_trials_that_are_there(self):
        trials, _, facts = tables(PUBLISHED)
        before, report.not_possible = report.not_possible, lambda contestant, fault: "libfaketime is not installed"
        self.addCleanup(setattr, report, "not_possible", before)
        self.assertNotIn("libfaketime", report.skipped(trials, facts))
        trials.rows = [row for row in trials.rows if (row["contestant"], row["fault"]) != ("kubert", "clock")]
        self.assertIn("- Skipped: kubert, Lease, wrong clocks, because libfaketime is not installed.", report.skipped(trials, facts))

    def test_a_published_page_can_be_written_from_its_own_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            copied = Path(folder) / "comparison"
            shutil.copytree(PUBLISHED, copied)
            report.write(Path(folder), *tables(copied))
            self.assertEqual((copied / "trials.csv").read_text(), (PUBLISHED / "trials.csv").read_text())


if __name__ == "__main__":
    unittest.main()
