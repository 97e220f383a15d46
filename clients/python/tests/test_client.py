"""The installed client, with real processes: they are killed, frozen and interrupted."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import leaderelect
from leaderelect import AlreadyDone, Candidate, LeadershipLost, SidecarEnded, leadership

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


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.url = f"file://{self.folder}/locks/lock"

    def program(self, body):
        """Another process with the client. Its lines of output come one by one."""
        text = f"import sys, time\nfrom leaderelect import *\nURL, LONG = {self.url!r}, {LONG!r}\n{textwrap.dedent(body)}"
        process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(process.stdout.close)
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

    def test_a_url_that_names_no_lock_is_an_error(self):
        with self.assertRaises(SidecarEnded):
            Candidate("nonsense")
        with self.assertRaises(ValueError):
            Candidate()


if __name__ == "__main__":
    unittest.main()
