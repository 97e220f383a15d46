"""Tests of the judgement, the numbers, the state of a run, and the proxy. They need nothing but Python.

    python3 -m unittest discover -s comparison -p 'test_*.py'
"""

import asyncio
import shutil
import tempfile
import unittest
from pathlib import Path

from runner import entries, figures, report, results, rows, words
from runner.contestants import CONTESTANTS
from runner.faults import BY_KEY, FAULTS, HAPPEN
from runner.proxy import Proxy
from runner.session import missing, not_possible

DOCS = Path(__file__).resolve().parents[2] / "docs"


def log(*lines):
    return [entries.Entry(at, identity, "-", event) for at, identity, event in lines]


class Overlap(unittest.TestCase):
    def wrong(self, *lines):
        return [(each.entry.at, each.since) for each in entries.wrong_entries(log(*lines))]

    def test_a_leader_that_is_followed_writes_nothing_more(self):
        self.assertEqual(self.wrong((1, "a", "start"), (2, "a", "work"), (3, "b", "start"), (4, "b", "work")), [])

    def test_an_entry_after_the_next_leader_has_begun_is_wrong(self):
        found = self.wrong((1, "a", "start"), (3, "b", "start"), (4, "a", "work"), (5, "b", "work"), (6, "a", "work"))
        self.assertEqual(found, [(4, 3), (6, 3)])

    def test_the_order_is_that_of_the_writes_and_not_of_the_clock(self):
        self.assertEqual(self.wrong((1, "a", "start"), (3, "b", "start"), (2, "a", "work")), [(2, 3)])
        self.assertEqual(self.wrong((1, "a", "start"), (4, "a", "work"), (3, "b", "start")), [])

    def test_a_leader_that_begins_again_is_right(self):
        found = self.wrong((1, "a", "start"), (2, "b", "start"), (3, "a", "start"), (4, "a", "work"), (5, "b", "work"))
        self.assertEqual(found, [(5, 3)])

    def test_the_first_of_several_later_terms_ends_the_right(self):
        self.assertEqual(self.wrong((1, "a", "start"), (2, "b", "start"), (3, "c", "start"), (4, "a", "work")), [(4, 2)])

    def test_the_end_and_the_readiness_of_a_candidate_are_no_work(self):
        self.assertEqual(self.wrong((1, "a", "start"), (2, "b", "start"), (3, "a", "stop"), (4, "a", "ready")), [])


class Questions(unittest.TestCase):
    LINES = ((10, "a", "start"), (30, "a", "work"), (70, "b", "start"), (80, "b", "work"))

    def test_a_pause_begins_with_the_last_entry_before_the_fault(self):
        self.assertEqual(entries.longest_pause(log(*self.LINES), 40, 85), 40)

    def test_a_pause_that_goes_on_lasts_until_the_end(self):
        self.assertEqual(entries.longest_pause(log(*self.LINES), 40, 200), 120)

    def test_the_next_leader_is_another_one_and_begins_later(self):
        self.assertEqual(entries.next_leader(log(*self.LINES), "a", 5).at, 70)
        self.assertIsNone(entries.next_leader(log(*self.LINES), "a", 75))
        self.assertIsNone(entries.next_leader(log(*self.LINES), "b", 20))

    def test_terms_are_counted_within_bounds(self):
        self.assertEqual(entries.changes(log(*self.LINES), 20, 100), 1)

    def test_half_a_line_is_read_when_its_rest_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log"
            read = entries.Log(path)
            with open(path, "a") as file:
                file.write("1 a 7 start\n2 a 7 wo")
                file.flush()
                self.assertEqual([each.event for each in read.read()], ["start"])
                file.write("rk\n3 a\n")
                file.flush()
                self.assertEqual([each.event for each in read.read()], ["start", "work"])
            read.close()

    def test_what_is_forgotten_does_not_change_the_judgement(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log"
            read = entries.Log(path)
            path.write_text("1 a 7 start\n2 a 7 work\n3 b 8 start\n4 b 8 work\n9 a 7 work\n")
            before = entries.wrong_entries(read.read())
            self.assertEqual(len(before), 1)
            read.forget(8)
            self.assertEqual(len(read.entries), 3)
            self.assertEqual(entries.wrong_entries(read.entries), before)
            read.close()


class Figures(unittest.TestCase):
    def test_percentiles_are_values_that_were_measured(self):
        values = [float(each) for each in range(1, 101)]
        self.assertEqual([figures.percentile(values, share) for share in (0.5, 0.99)], [50, 99])
        self.assertEqual(figures.percentile([3, 1, 2], 0.5), 2)
        self.assertEqual(figures.percentile([5], 0.5), 5)

    def test_the_bounds_of_a_median_are_wide_where_values_are_few(self):
        self.assertEqual(figures.median_bounds([3, 1, 2]), (1, 3))
        self.assertEqual(figures.median_bounds(range(1, 31)), (10, 21))


class State(unittest.TestCase):
    ROW = {"contestant": "kubert", "fault": "kill", "trial": 0, "lease_ms": 3000, "pause_ms": 1.5, "wrong": 0}

    def test_a_row_that_is_done_is_not_done_again(self):
        with tempfile.TemporaryDirectory() as folder:
            contestant = next(each for each in CONTESTANTS if each.key == "kubert")
            faults = [BY_KEY["kill"], BY_KEY["stop"]]
            results.Table(folder, "trials", results.TRIALS).add(self.ROW)
            again = results.Table(folder, "trials", results.TRIALS)
            found = [(fault.key, number) for fault, number in missing(again, contestant, faults, 2)]
            self.assertEqual(found, [("stop", 0), ("stop", 1), ("kill", 1)])

    def test_half_a_row_is_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            table = results.Table(folder, "trials", results.TRIALS)
            table.add(self.ROW)
            table.add({**self.ROW, "trial": 1})
            table.path.write_text(table.path.read_text()[:-4])
            again = results.Table(folder, "trials", results.TRIALS)
            self.assertTrue(again.has("kubert", "kill", 0))
            self.assertFalse(again.has("kubert", "kill", 1))
            again.add({**self.ROW, "trial": 1})
            self.assertEqual(len(results.Table(folder, "trials", results.TRIALS).rows), 2)

    def test_rows_of_another_version_are_not_mixed_in(self):
        with tempfile.TemporaryDirectory() as folder:
            results.Table(folder, "trials", results.TRIALS).add(self.ROW)
            with self.assertRaisesRegex(RuntimeError, "measure anew"):
                results.Table(folder, "trials", [*results.TRIALS, "more"])


    def test_rows_of_other_programs_are_not_mixed_in(self):
        with tempfile.TemporaryDirectory() as folder:
            results.Facts(folder).set_conditions({"programs": "a", "latency_ms": 20})
            results.Facts(folder).set_conditions({"programs": "a", "latency_ms": 20})
            with self.assertRaisesRegex(RuntimeError, "another programs; remove it to measure anew"):
                results.Facts(folder).set_conditions({"programs": "b", "latency_ms": 20})

    def test_long_timings_have_fewer_trials(self):
        with tempfile.TemporaryDirectory() as folder:
            table = results.Table(folder, "trials", results.TRIALS)
            found = missing(table, next(each for each in CONTESTANTS if each.key == "ours-s3"), [BY_KEY["cut-slow"]], 30)
        self.assertEqual([number for _, number in found], [0, 1, 2, 3, 4])


    def test_a_part_of_a_comparison_is_told_from_a_whole_one(self):
        # The published one was whole.
        with tempfile.TemporaryDirectory() as folder:
            for name in ("trials.csv", "idle.csv"):
                shutil.copy(DOCS / "comparison" / name, folder)
            trials, idle = results.Table(folder, "trials", results.TRIALS), results.Table(folder, "idle", results.IDLE)
            self.assertEqual(report.absent(trials, idle), [])
            trials.rows.remove(trials.of("kubert", "kill")[0])
            idle.rows = [row for row in idle.rows if row["contestant"] != "fabric8"]
            self.assertEqual(report.absent(trials, idle), ["1 trials of kubert", "fabric8 at rest"])


class Rows(unittest.TestCase):
    def at_rest(self, **columns):
        with tempfile.TemporaryDirectory() as folder:
            table = results.Table(folder, "idle", results.IDLE)
            for contestant, role, values in columns.values():
                table.add({"contestant": contestant, "role": role, "seconds": 120, "rss_kib": 1024, "writes": 0, "reads": 0,
                           "lists": 0, "cpu_ms": 0, **values})
            return [each.row for each in rows.better_at_rest(table)]

    def test_a_difference_at_rest_that_may_be_chance_is_not_named(self):
        def leaders(one, other):
            return self.at_rest(one=("kubert", "leader", {"writes": one}), other=("ours-lease", "leader", {"writes": other}))

        self.assertEqual(leaders(58, 60), [])
        self.assertEqual(leaders(8, 10), [], "one at either end of the time")
        self.assertEqual(leaders(48, 60), ["requests/leader"])

        def followers(one, other):
            return self.at_rest(one=("kubert", "follower", {"cpu_ms": one}), other=("ours-lease", "follower", {"cpu_ms": other}))

        self.assertEqual(followers(10, 30), [], "two ticks and six")
        self.assertEqual(followers(10, 60), ["processor"])

    def table(self, folder, **pauses):
        table = results.Table(folder, "trials", results.TRIALS)
        for contestant, (values, wrong) in pauses.items():
            for number, value in enumerate(values):
                table.add({**State.ROW, "contestant": contestant.replace("_", "-"), "trial": number, "pause_ms": value, "wrong": wrong})
        return table

    def test_a_peer_that_is_better_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            table = self.table(folder, ours_lease=([3000], 1), client_go_lease=([2000], 0), fabric8=([2900], 1), client_go_s3=([1], 0))
            found = [(each.row, each.peer) for each in rows.better_after_faults(table)]
        # 2.9 s is no better than 3 s, and a contestant on another store is not compared.
        self.assertEqual(found, [(f"kill/{what}", "client-go-lease") for what in ("wrong", "pause", "worst")])

    def test_wrong_entries_are_compared_by_trial(self):
        with tempfile.TemporaryDirectory() as folder:
            table = self.table(folder, ours_lease=([2000] * 3, 1), client_go_lease=([2000], 1), kubert=([2000], 2), fabric8=([2000] * 4, 0))
            found = [each.peer for each in rows.better_after_faults(table)]
        self.assertEqual(found, ["fabric8"])

    def test_a_peer_that_keeps_its_lease_more_often_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            table = results.Table(folder, "trials", results.TRIALS)
            for contestant, takeover in (("ours-lease", 5), ("client-go-lease", None), ("fabric8", 5)):
                table.add({**State.ROW, "fault": "lost", "contestant": contestant, "takeover_ms": takeover})
            found = [(each.row, each.peer) for each in rows.better_after_faults(table)]
        self.assertEqual(found, [("lost/replaced", "client-go-lease")])

    def test_the_words_of_a_row_hold_for_its_like(self):
        found = {row: bool(words.mechanism(rows.Better(row, "client-go-s3", ""))) for row in ("kill/worst", "cut-slow/worst", "lost/wrong")}
        self.assertEqual(found, {"kill/worst": True, "cut-slow/worst": True, "lost/wrong": False})

    def test_two_leaders_are_no_better_time(self):
        with tempfile.TemporaryDirectory() as folder:
            table = self.table(folder, ours_lease=([3000], 0), kubert=([2000], 3), fabric8=([2000], 0))
            found = {each.peer for each in rows.better_after_faults(table)}
        self.assertEqual(found, {"fabric8"})

    def test_every_fault_has_its_words_and_happens(self):
        for fault in FAULTS:
            self.assertIn(fault.key, words.FAULTS)
            self.assertIn(fault.key, HAPPEN)
        self.assertEqual(len(list(words.versions())), 3)

    def test_a_file_has_no_network(self):
        file = next(each for each in CONTESTANTS if each.store == "file")
        self.assertIsNone(not_possible(file, BY_KEY["kill"]))
        self.assertIn("network", not_possible(file, BY_KEY["cut"]))


class Network(unittest.TestCase):
    """The proxy in front of a server that remembers what it was told."""

    def setUp(self):
        self.told, self.heads = [], []

    async def answer(self, reader, writer):
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")):
                length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
                self.heads.append(head)
                self.told.append(head.split(b" ")[0].decode() + " " + (await reader.readexactly(length)).decode())
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        writer.close()

    def through(self, test, **options):
        async def run():
            server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
            proxy = await Proxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", 0, **options).start()
            try:
                await test(proxy)
            finally:
                await proxy.stop()
                server.close()

        asyncio.run(asyncio.wait_for(run(), 30))

    async def ask(self, proxy, *messages):
        """The answers on one connection. The last one is empty if the connection ended."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))
        answers = []
        for message in messages:
            writer.write(message)
            try:
                answers.append(await reader.readuntil(b"0\r\n\r\n"))
            except (asyncio.IncompleteReadError, ConnectionError):
                answers.append(b"")
        writer.transport.abort()
        return answers

    GET = b"GET /bucket/key HTTP/1.1\r\nHost: x\r\n\r\n"
    PUT = b"PUT /bucket/key HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
    LIST = b"GET /bucket?list-type=2 HTTP/1.1\r\nHost: x\r\n\r\n"

    def test_requests_are_carried_and_counted(self):
        async def test(proxy):
            answers = await self.ask(proxy, self.GET, self.PUT, self.LIST)
            self.assertTrue(all(b"\r\n2\r\nok\r\n" in answer for answer in answers), answers)
            self.assertEqual(self.told, ["GET ", "PUT body", "GET "])
            self.assertEqual(dict(proxy.counts), {"read": 1, "write": 1, "list": 1})
            self.assertIsNotNone(proxy.last_write)

        self.through(test)

    def test_a_lost_answer_follows_a_write_that_was_applied(self):
        async def test(proxy):
            proxy.loses_answers = True
            self.assertEqual(await self.ask(proxy, self.PUT), [b""])
            self.assertIn(b"ok", (await self.ask(proxy, self.GET))[0])
            self.assertEqual(self.told, ["PUT body", "GET "])
            proxy.heal()
            self.assertIn(b"ok", (await self.ask(proxy, self.PUT))[0])

        self.through(test)

    def test_the_token_is_that_of_the_proxy(self):
        async def test(proxy):
            await self.ask(proxy, self.GET.replace(b"Host: x", b"Host: x\r\nauthorization: other"))
            self.assertEqual(self.heads[0].count(b"\r\nAuthorization: Bearer secret\r\n"), 1)
            self.assertNotIn(b"other", self.heads[0])

        self.through(test, token="secret")

    def test_silence_reaches_neither_side_and_ends_with_the_connection(self):
        async def test(proxy):
            proxy.go_silent()
            asking = asyncio.ensure_future(self.ask(proxy, self.PUT))
            while not proxy.waiting:
                await asyncio.sleep(0)
            proxy.heal()
            self.assertEqual(await asking, [b""])
            self.assertEqual(self.told, [])

        self.through(test)


if __name__ == "__main__":
    unittest.main()
