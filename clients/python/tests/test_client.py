"""The installed client, with real processes: they are killed, frozen and interrupted."""

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

import leaderelect
from leaderelect import AlreadyDone, Candidate, LeadershipLost, SidecarEnded, leadership
from leaderelect._connection import Connection

# No test waits for the end of such a lease, and no busy machine loses it.
LONG = {"lease": 300.0, "options": ["--retry", "200ms"]}
PATIENCE = 60.0


def eventually(holds):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        # A sidecar may answer too late on a busy machine.
        with contextlib.suppress(OSError):
            if found := holds():
                return found
        time.sleep(0.02)
    raise AssertionError("in vain")


@contextlib.contextmanager
def answering(content):
    """A server that gives one answer, and its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        thread.join()


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.url = f"file://{self.folder}/locks/lock"

    def program(self, body):
        """Another process with the client. Its lines of output come one by one."""
        text = f"import sys, time\nfrom leaderelect import *\nURL, LONG = {self.url!r}, {LONG!r}\n{textwrap.dedent(body)}"
        process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_the_package_is_typed_and_brings_its_program_along(self):
        package = Path(leaderelect.__file__).parent
        self.assertTrue((package / "py.typed").exists())
        program = subprocess.run([Path(sys.executable).parent / "leaderelect", "--version"], capture_output=True, text=True, check=True)
        self.assertTrue(program.stdout.startswith("leaderelect 0."), program.stdout)

    def test_the_end_of_the_block_releases_the_lease(self):
        with leadership(self.url, identity="first", **LONG) as first:
            self.assertTrue(first.valid and not first.stopping)
            first.check()
        with self.assertRaises(LeadershipLost):
            first.check()
        with leadership(self.url, identity="second", **LONG) as second:
            self.assertGreater(second.token, first.token)

    def test_a_process_that_is_killed_gives_the_lease_back(self):
        other = self.program("""
            with leadership(URL, **LONG) as term:
                print(term.token)
                time.sleep(1000)
        """)
        token = int(other.stdout.readline())
        other.kill()
        with leadership(self.url, **LONG) as term:
            self.assertGreater(term.token, token)

    def test_a_process_that_is_frozen_loses_the_term_and_sees_it(self):
        other = self.program("""
            with leadership(URL, lease=3.0) as term:
                print(term.token)
                while term.valid:
                    time.sleep(0.05)
                print("lost")
        """)
        token = int(other.stdout.readline())
        other.send_signal(signal.SIGSTOP)
        with leadership(self.url, **LONG) as term:
            self.assertGreater(term.token, token)
            other.send_signal(signal.SIGCONT)
            self.assertEqual(other.stdout.readline(), "lost\n")
            self.assertTrue(term.valid)

    def test_a_sidecar_that_is_killed_takes_the_term_along(self):
        with Candidate(self.url, lease=3.0) as candidate:
            for term in candidate:
                with term:
                    os.kill(candidate._sidecar._process.pid, signal.SIGKILL)
                    self.assertTrue(term.wait_lost(PATIENCE))
                break
            with self.assertRaises(SidecarEnded):
                next(iter(candidate))

    def test_a_block_that_raises_lets_another_process_try(self):
        other = self.program("""
            with Candidate(URL, identity="other", **LONG) as candidate:
                print("competes")
                for term in candidate:
                    with term:
                        print(term.token)
                        time.sleep(1000)
        """)
        with self.assertRaises(ZeroDivisionError), Candidate(self.url, identity="this", options=["--retry", "200ms"]) as candidate:
            with next(iter(candidate)) as term:
                self.assertEqual(other.stdout.readline(), "competes\n")
                eventually(lambda: candidate.leader()["leading"])
                1 / 0
        self.assertGreater(int(other.stdout.readline()), term.token)

    def test_terms_follow_each_other(self):
        tokens = []
        with Candidate(self.url, lease=1.5) as candidate:
            for term in candidate:
                with term:
                    tokens.append(term.token)
                if len(tokens) == 2:
                    break
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_a_job_is_done_once(self):
        with leadership(self.url, once_for="job", **LONG):
            pass
        with self.assertRaises(AlreadyDone), leadership(self.url, once_for="job", **LONG):
            self.fail("the job was done before")

    def test_a_sidecar_of_someone_else_is_asked_over_http(self):
        program = Path(sys.executable).parent / "leaderelect"
        command = [program, "serve", "--listen", "127.0.0.1:0", self.url, "--retry", "200ms"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as sidecar:
            try:
                address = next(line.split()[-1] for line in sidecar.stderr if " serving http" in line)
                candidate = Candidate(address=address.rstrip("/"))
                with next(iter(candidate)) as term:
                    self.assertTrue(term.valid)
                    sidecar.send_signal(signal.SIGTERM)
                    eventually(lambda: term.stopping)
                    self.assertTrue(term.valid)
            finally:
                sidecar.terminate()

    def test_a_forked_worker_neither_keeps_the_sidecar_alive_nor_leads(self):
        other = self.program("""
            import os
            with Candidate(URL, identity="other", **LONG) as candidate:
                for term in candidate:
                    with term:
                        worker = os.fork()
                        if worker == 0:
                            try:
                                next(iter(candidate))
                            except RuntimeError as error:
                                os.write(1, f"worker: {term.valid} {term.wait_lost(60.0)} {error}\\n".encode())
                            term.end("stopped")
                            candidate.close()
                            time.sleep(1000)
                        os.write(1, b"parent\\n")
                        sys.stdin.readline()
                        term.check()
                    break
            print(worker)
        """)
        self.assertRegex("".join(sorted([other.stdout.readline(), other.stdout.readline()])), "^parent\nworker: False True .* was forked")
        # The worker has ended the block on its side by now, or does soon, and lives on.
        other.stdin.write("go on\n")
        other.stdin.flush()
        worker = int(other.stdout.readline())
        self.addCleanup(os.kill, worker, signal.SIGKILL)
        with leadership(self.url, **LONG) as term:
            self.assertTrue(term.valid)

    def test_options_of_servers_in_the_environment_are_not_for_the_own_sidecar(self):
        (self.folder / "token").write_text("a-token-for-other-machines")
        names = {"LEADERELECTION_HTTP_TOKEN": "another-token-of-theirs", "LEADERELECT_TOKEN_FILE": f"{self.folder}/token"}
        with unittest.mock.patch.dict(os.environ, names), leadership(self.url, **LONG) as term:
            self.assertTrue(term.valid)
        demanding = [*LONG["options"], "--token-file", f"{self.folder}/token"]
        with self.assertRaisesRegex(PermissionError, "token="):
            Candidate(self.url, options=demanding)
        with leadership(self.url, options=demanding, token="a-token-for-other-machines") as term:
            self.assertTrue(term.valid)

    def test_a_long_folder_for_temporary_files_has_no_socket(self):
        folder = self.folder / ("x" * 100)
        folder.mkdir()
        with unittest.mock.patch.object(tempfile, "tempdir", str(folder)), leadership(self.url, **LONG) as term:
            self.assertTrue(term.valid)
        self.assertEqual(list(folder.iterdir()), [])

    def test_an_answer_that_no_sidecar_gives_is_none(self):
        good = {"leading": True, "draining": False, "fencingToken": 1, "leftSeconds": 1.5}
        for content, is_good in [
            (json.dumps(good), True),
            (json.dumps(good).replace("1.5", "1e999"), False),
            (json.dumps(good).replace("1.5", "NaN"), False),
            (json.dumps({**good, "leftSeconds": 1e6}), False),
            (json.dumps({**good, "fencingToken": "1"}), False),
            (json.dumps({**good, "name": "x" * 100_000}), False),
            ("[" * 60_000, False),
            ("{}", False),
            ("[]", False),
        ]:
            with self.subTest(content[:80]), answering(content.encode()) as address:
                connection = Connection(address, None)
                if is_good:
                    self.assertEqual(connection.ask("GET", "/leader"), (200, good))
                else:
                    with self.assertRaisesRegex(OSError, "no answer of leaderelect serve"):
                        connection.ask("GET", "/leader")

    def test_a_url_that_names_no_lock_is_an_error(self):
        with self.assertRaises(SidecarEnded):
            Candidate("nonsense")
        with self.assertRaises(ValueError):
            Candidate()


if __name__ == "__main__":
    unittest.main()
