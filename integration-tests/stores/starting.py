"""A running server of others, with the proxy before it."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# A server has six ports. The last two are its proxy's.
PORTS = 8
PROXY = 6
GRPC_OFFSET = 10_000


@contextlib.contextmanager
def started(server, at):
    """Starts `server`, makes its bucket or container, and gives the port for clients."""
    first = free_ports(PORTS, GRPC_OFFSET)
    gateways = [first + distance for distance in server.gateways]
    # The path is short, because the paths of sockets have to be.
    data = pathlib.Path(tempfile.mkdtemp(prefix="stores-"))
    log = data.with_suffix(".log")
    words = {"port": first, "data": data}
    environment = {**os.environ, **{name: value.format(**words) for name, value in server.environment.items()}}
    processes = []

    def start(port, command):
        with log.open("a") as output:
            # Some servers start processes of their own, which end with the group.
            processes.append(subprocess.Popen(
                [str(part) for part in command], cwd=data, env=environment, stdout=output, stderr=output,
                start_new_session=True,
            ))
        wait_until_answering(processes, port, log)

    try:
        for gateway, command in zip(gateways, server.commands(at, first, data), strict=True):
            start(gateway, command)
        if server.make:
            server.make(gateways[0], server.keys)
        if server.proxy:
            for port, command in server.proxy.commands(first + PROXY, gateways, data):
                start(port, command)
        yield first + PROXY if server.proxy else first
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)


def free_ports(count, gap):
    """The first of some neighbouring ports that are free, as are those that are `gap` higher."""
    # Concurrent runs of this script begin at other ports.
    for first in range(12_000 + os.getpid() % 1_000 * count, 21_000, count):
        try:
            for port in [first + n + far for n in range(count) for far in (0, gap)]:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    sys.exit("no free ports")


def wait_until_answering(processes, port, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and all(process.poll() is None for process in processes):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing answers on port {port}:\n{log.read_text(errors='replace')[-2000:]}")
