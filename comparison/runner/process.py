"""Servers as child processes that end with this one."""

import ctypes
import signal
import socket
import subprocess
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1


def end_with_parent():
    """Runs in the child before the program does."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count, offset=0):
    """Ports that are free now, and are free again `offset` above."""
    while True:
        sockets = []
        try:
            first = socket.socket()
            first.bind(("127.0.0.1", 0))
            sockets.append(first)
            port = first.getsockname()[1]
            ports = list(range(port, port + count))
            if ports[-1] + offset > 65535:
                continue
            for each in ports[1:] + [each + offset for each in ports if offset]:
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", each))
            return ports
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()


class Server:
    """A running program, whose output is in a file of its directory."""

    def __init__(self, name, command, directory, environment=None):
        self.name, self.directory = name, Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.output = self.directory / f"{name}.log"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [str(each) for each in command],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=end_with_parent,
            )

    def wait_until(self, is_ready, limit=120):
        """Waits for the server. An error of the connection means that it is not ready yet."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}; its output is in {self.output}")
            try:
                if is_ready():
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"{self.name} did not answer within {limit} s; its output is in {self.output}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
