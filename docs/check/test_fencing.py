"""Runs the statements of docs/fencing.md on PostgreSQL and SQLite, with two leaders in transactions of their own.

Needs PostgreSQL's server, such as Debian's package `postgresql`; without it, its tests are skipped and say so.
"""

import contextlib
import glob
import os
import pwd
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs/fencing.md").read_text()
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
# Generous: only a broken machine or a broken recipe gets here.
BOUND = 60


def programs():
    """The folder of PostgreSQL's programs; Debian has the server's outside of the path."""
    on_path = shutil.which("initdb")
    found = [os.path.dirname(os.path.realpath(on_path))] if on_path else sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return Path(found[-1]) if found else None


def statements(block, **values):
    """The statements of a block with its parameters, without comments."""
    text = re.sub(r"--.*", "", block)
    for number, value in values.items():
        text = text.replace(f"${number[1:]}", value)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


class Session:
    """A connection. Its application name is its name in pg_stat_activity."""

    def __init__(self, connect, name):
        self.name, self.output = name, []
        self.psql = subprocess.Popen([*connect, "-v", "ON_ERROR_STOP=1"], text=True, env={**os.environ, "PGAPPNAME": name},
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1)

    def send(self, statement):
        """Begins a statement, and waits for nothing."""
        self.psql.stdin.write(f"{statement};\n\\echo done\n")
        self.psql.stdin.flush()

    def answer(self):
        """The lines that answer the statement that was sent last."""
        lines = []
        for line in self.psql.stdout:
            if line == "done\n":
                return lines
            lines.append(line.strip())
        raise AssertionError(f"{self.name}: {lines}")

    def run(self, statement):
        self.send(statement)
        return self.answer()

    def close(self):
        # A session that still waits would not read the end of its input.
        self.psql.kill()
        self.psql.communicate()


@unittest.skipUnless(programs(), "skipped: PostgreSQL is not installed, so the statements of docs/fencing.md were not run")
class PostgreSql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory())
        # The server refuses to run as root.
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        switch = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = f"{folder}/data"
        subprocess.run([programs() / "initdb", "-D", data, "-U", "leader", "-A", "trust", "--no-sync"], check=True,
                       stdout=subprocess.DEVNULL, cwd=folder, **switch)
        server = subprocess.Popen([programs() / "postgres", "-D", data, "-k", folder, "-h", "", "-F"], cwd=folder,
                                  stderr=subprocess.DEVNULL, **switch)
        cls.stack.callback(server.wait, BOUND)
        cls.stack.callback(server.terminate)
        cls.connect = [programs() / "psql", "-X", "-A", "-t", "-h", folder, "-U", "leader", "-d", "postgres"]
        cls.until(lambda: subprocess.run([*cls.connect, "-c", "SELECT 1"], capture_output=True).returncode == 0)

    @staticmethod
    def until(condition):
        end = time.monotonic() + BOUND
        while not condition():
            assert time.monotonic() < end, "not in time"
            time.sleep(0.02)

    def session(self, name):
        session = Session(self.connect, name)
        self.addCleanup(session.close)
        return session

    def waits(self, observer, session):
        """Waits until a session waits for a lock."""
        waiting = f"SELECT wait_event_type FROM pg_stat_activity WHERE application_name = '{session.name}'"
        self.until(lambda: observer.run(waiting) == ["Lock"])

    def test_one_row_refuses_a_stale_token(self):
        table, update = BLOCKS[0].split("UPDATE jobs", 1)
        leader = self.session("leader")
        leader.run(table.rstrip().rstrip(";"))
        leader.run("INSERT INTO jobs VALUES ('a', 'new')")
        change = lambda token: leader.run(statements("UPDATE jobs" + update, p1=str(token), p2="'a'", p3="'done'")[0])
        self.assertEqual([change(7), change(7), change(8), change(7)], [["UPDATE 1"], ["UPDATE 1"], ["UPDATE 1"], ["UPDATE 0"]])

    def test_no_older_leader_passes_while_a_newer_one_raises_the_fence(self):
        table, _ = statements(BLOCKS[1], p1="7")
        raise_to = lambda token: statements(BLOCKS[1], p1=str(token))[1]
        begin, check, commit = statements(BLOCKS[2], p1="7")
        old, other, new, observer = map(self.session, ("old", "other", "new", "observer"))
        observer.run(table)
        self.assertEqual(observer.run(raise_to(7)), ["INSERT 0 1"])

        old.run(begin)
        self.assertEqual(old.run(check), ["7"])
        new.send(raise_to(8))
        self.waits(observer, new)
        other.run(begin)
        other.send(check)
        self.waits(observer, other)
        old.run(commit)
        self.assertEqual(new.answer(), ["INSERT 0 1"])
        self.assertEqual(other.answer(), [], "the check of a stale token finds no row")
        other.run("ROLLBACK")
        self.assertEqual(other.run(raise_to(7)), ["INSERT 0 0"])


class Sqlite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "data"

    def connection(self):
        """A connection that begins no transaction by itself, and fails at once where it would have to wait."""
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        self.addCleanup(connection.close)
        return connection

    def test_one_row_refuses_a_stale_token(self):
        table, update = statements(BLOCKS[0])
        leader = self.connection()
        leader.execute(table)
        leader.execute("INSERT INTO jobs VALUES ('a', 'new', 0)")
        change = lambda token: leader.execute(statements(update, p1=str(token), p2="'a'", p3="'done'")[0]).rowcount
        self.assertEqual([change(7), change(7), change(8), change(7)], [1, 1, 1, 0])

    def test_no_older_leader_passes_while_a_newer_one_raises_the_fence(self):
        table, _ = statements(BLOCKS[1])
        raise_to = lambda token: statements(BLOCKS[1], p1=str(token))[1]
        _, check, commit = statements(BLOCKS[2], p1="7")
        check = check.replace(" FOR UPDATE", "")
        old, new = self.connection(), self.connection()
        old.execute(table)
        self.assertEqual(old.execute(raise_to(7)).rowcount, 1)

        old.execute("BEGIN IMMEDIATE")
        self.assertEqual(old.execute(check).fetchall(), [(7,)])
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked"):
            new.execute(raise_to(8))
        old.execute(commit)
        self.assertEqual(new.execute(raise_to(8)).rowcount, 1)
        old.execute("BEGIN IMMEDIATE")
        self.assertEqual(old.execute(check).fetchall(), [], "the check of a stale token finds no row")
        old.execute("ROLLBACK")
        self.assertEqual(old.execute(raise_to(7)).rowcount, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
