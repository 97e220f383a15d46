"""Runs the statements of docs/fencing/*.sql on real databases: the vectors for all languages, and leaders that race.

A database that cannot be installed here is skipped, and the test says so.
"""

import contextlib
import json
import re
import threading
import time
import unittest

from databases import BOUND, ROOT, Again, MySql, PostgreSql, Sqlite, until

FOLDER = ROOT / "docs/fencing"
VECTORS = json.loads((FOLDER / "vectors.json").read_text())


def statements(name):
    """The statements of a file by their names, with the names of their parameters."""
    text = (FOLDER / f"{name}.sql").read_text()
    found = re.findall(r"^-- name: (\w+)\((.*)\)\n((?:(?!--).*\n)+)", text, re.M)
    assert len(found) == text.count("-- name:"), name
    return {name: (parameters.split(", ") if parameters else [], body.strip().rstrip(";")) for name, parameters, body in found}


class Page(unittest.TestCase):
    def test_the_page_shows_the_statements_that_run_here(self):
        blocks = re.findall(r"^```sql\n(.*?)^```", (ROOT / "docs/fencing.md").read_text(), re.M | re.S)
        shown = [text for _, text in statements("postgresql").values()]
        self.assertEqual([block.strip().rstrip(";") for block in blocks], [text for text in shown if "TABLE job" not in text])


class Leader:
    """A leader with its own connection and token."""

    def __init__(self, test, token, begin=()):
        self.test, self.token, self.begin = test, token, begin
        self.session = test.session()

    def run(self, name, **values):
        parameters, text = self.test.statements[name]
        return self.session.run(text, *(values[each] for each in parameters))

    def opens(self):
        for statement in self.begin:
            self.session.run(statement)

    def enter(self):
        """Returns the largest token."""
        rows, _ = self.run("enter", resource="log", token=self.token)
        if "highest" in self.test.statements:
            rows, _ = self.run("highest", resource="log")
        return rows[0][0]

    def append(self):
        """Writes the next entry. Two that read the same entries write the same number."""
        number = self.session.run("SELECT coalesce(max(number), 0) + 1 FROM log")[0][0][0]
        self.session.run(f"INSERT INTO log VALUES ({number}, {self.token})")

    def end(self, how):
        self.session.run(how)

    def change(self):
        """One transaction. Returns the largest token, and has written nothing if that is another one."""
        while True:
            try:
                self.opens()
                highest = self.enter()
                if highest == self.token:
                    self.append()
                self.end("COMMIT" if highest == self.token else "ROLLBACK")
                return highest
            except Again:
                with contextlib.suppress(AssertionError):
                    self.end("ROLLBACK")
                time.sleep(0)  # SQLite's locks are not fair: the other thread shall run.


class Fences:
    """What holds on each database."""

    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.database = cls.open(stack)
        cls.statements = statements(cls.database.name)

    def session(self, *options):
        session = self.database.session(*options)
        self.addCleanup(session.close)
        return session

    def setUp(self):
        self.observer = self.session()
        for table in ("fence", "job", "log"):
            self.observer.run(f"DROP TABLE IF EXISTS {table}")
        for _, text in (self.statements["create"], self.statements["create_row"]):
            self.observer.run(text)
        self.observer.run("CREATE TABLE log (number integer PRIMARY KEY, token bigint NOT NULL)")

    def tokens(self):
        return [token for (token,) in self.observer.run("SELECT token FROM log ORDER BY number")[0]]

    def blocked(self, session, text, *values):
        """Runs a statement that has to wait. Returns the function that waits for its answer."""
        answer = session.send(text, *values)
        until(lambda: answer.done() or self.database.waits(self.observer, session))
        self.assertFalse(answer.done(), "it waits for the transaction before")
        return lambda: answer.result(BOUND)

    def test_vectors_in_transactions(self):
        leader = Leader(self, 0, ["BEGIN"])
        for vector in VECTORS["sequences"]:
            self.observer.run("DELETE FROM fence")
            for step in vector["steps"]:
                leader.token = step["token"]
                before = len(self.tokens())
                with self.subTest(vector["name"], **step):
                    self.assertEqual(leader.change(), step["highest"])
                    self.assertEqual(len(self.tokens()) - before, step["passes"])

    def test_vectors_in_a_row(self):
        leader = Leader(self, 0)
        for number, vector in enumerate(VECTORS["sequences"]):
            row = f"job {number}"
            self.observer.run(f"INSERT INTO job (id, state) VALUES ('{row}', 'new')")
            for step in vector["steps"]:
                with self.subTest(vector["name"], **step):
                    # The state is the same each time: a row that is found counts.
                    _, found = leader.run("write_row", state="done", token=step["token"], id=row)
                    self.assertEqual(found, step["passes"])
                    highest = self.observer.run(f"SELECT fencing_token FROM job WHERE id = '{row}'")[0]
                    self.assertEqual(highest, [[step["highest"]]])

    def test_a_larger_token_waits_for_the_transaction_of_a_smaller_one(self):
        for level, begin in self.database.begins.items():
            with self.subTest(level):
                self.observer.run("DELETE FROM fence")
                self.observer.run("DELETE FROM log")
                old, new = (Leader(self, token, begin) for token in (5, 6))
                self.assertEqual(old.change(), 5)
                old.opens()
                self.assertEqual(old.enter(), 5)
                new.opens()
                parameters, text = self.statements["enter"]
                entered = self.blocked(new.session, text, *({"resource": "log", "token": 6}[each] for each in parameters))
                old.append()
                old.end("COMMIT")
                try:
                    entered()
                    self.assertEqual(new.enter(), 6)
                    new.append()
                    new.end("COMMIT")
                except Again:
                    new.end("ROLLBACK")
                    self.assertEqual(new.change(), 6)
                self.assertEqual(old.change(), 6, "the token is stale")
                self.assertEqual(self.tokens(), [5, 5, 6])

    def test_a_transaction_that_is_rolled_back_has_raised_nothing(self):
        for level, begin in self.database.begins.items():
            with self.subTest(level):
                self.observer.run("DELETE FROM fence")
                old, new = (Leader(self, token, begin) for token in (5, 6))
                new.opens()
                self.assertEqual(new.enter(), 6)
                new.end("ROLLBACK")
                self.assertEqual(old.change(), 5)

    def test_of_two_leaders_that_race_the_older_one_is_shut_out(self):
        for level, begin in self.database.begins.items():
            with self.subTest(level):
                self.observer.run("DELETE FROM fence")
                self.observer.run("DELETE FROM log")
                old, new = (Leader(self, token, begin) for token in (5, 6))
                works, failures = threading.Event(), []

                def race():
                    try:
                        while old.change() == 5:
                            works.set()
                    except Exception as failure:  # The other thread reports it.
                        failures.append(failure)
                    works.set()

                thread = threading.Thread(target=race, daemon=True)
                thread.start()
                self.assertTrue(works.wait(BOUND))
                self.assertEqual([new.change() for _ in range(20)], [6] * 20)
                thread.join(BOUND)
                self.assertEqual((thread.is_alive(), failures), (False, []))
                tokens = self.tokens()
                self.assertEqual(tokens, sorted(tokens), "no entry of the older leader follows one of the newer")
                self.assertEqual((tokens[0], tokens.count(6)), (5, 20))

    def test_a_check_outside_of_the_transaction_is_no_fence(self):
        old, new = (Leader(self, token, ["BEGIN"]) for token in (5, 6))
        self.assertEqual(old.change(), 5)
        self.assertEqual(old.session.run("SELECT token FROM fence WHERE resource = 'log'")[0], [[5]])
        self.assertEqual(new.change(), 6)
        old.append()
        self.assertEqual(self.tokens(), [5, 6, 5], "this is what the fence prevents")


class TestPostgreSql(Fences, unittest.TestCase):
    open = PostgreSql


class TestMySql(Fences, unittest.TestCase):
    open = MySql

    def test_without_the_option_of_the_page_the_same_again_is_no_row(self):
        parameters, text = self.statements["write_row"]
        self.observer.run("INSERT INTO job (id, state) VALUES ('a', 'new')")
        values = [{"state": "done", "token": 5, "id": "a"}[each] for each in parameters]
        for option, counts in ((False, [1, 0]), (True, [1, 1])):
            self.observer.run("UPDATE job SET state = 'new'")
            session = self.session(option)
            self.assertEqual([session.run(text, *values)[1] for _ in counts], counts)


class OnSqlite(Fences):
    def blocked(self, session, text, *values):
        # Who waits in SQLite asks again and again.
        with self.assertRaises(Again):
            session.run(text, *values)
        return lambda: session.run(text, *values)


class TestSqlite(OnSqlite, unittest.TestCase):
    open = staticmethod(lambda stack: Sqlite(stack, "delete"))


class TestSqliteWithALogAhead(OnSqlite, unittest.TestCase):
    open = staticmethod(lambda stack: Sqlite(stack, "wal"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
