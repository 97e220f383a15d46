"""The program that elects."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
import weakref
from collections.abc import Sequence

from ._connection import Connection
from ._errors import SidecarEnded


def find_program() -> str:
    """The path of the program ``leaderelect``: the one of this package, or one on the PATH."""
    name = "leaderelect" + (sysconfig.get_config_var("EXE") or "")
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        path = os.path.join(sysconfig.get_path("scripts", scheme), name)
        if os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"there is no {name}: install a wheel of this package, or put the program on the PATH")
    return found

# Options of the environment for who may ask a server. The socket of this package is for this user alone, and speaks no TLS.
_OF_SERVERS = ("LEADERELECTION_HTTP_TOKEN", "LEADERELECT_TOKEN_FILE", "LEADERELECT_TLS_CERT", "LEADERELECT_TLS_KEY", "LEADERELECT_CLIENT_CA")

_LONGEST_PATH = 103
"""The longest path of a socket on every system, in bytes."""

_running: "weakref.WeakSet[Sidecar]" = weakref.WeakSet()


def _let_go() -> None:
    """A forked process keeps no sidecar of its parent alive."""
    for sidecar in list(_running):
        sidecar._process.stdin.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _new_folder() -> str:
    """Creates a folder that only this user may open, with a path that is short enough for a socket in it."""
    folder = tempfile.mkdtemp(prefix="leaderelect-")
    if len(os.fsencode(folder)) + len("/socket") > _LONGEST_PATH:
        os.rmdir(folder)
        return tempfile.mkdtemp(prefix="leaderelect-", dir="/tmp")
    return folder


class Sidecar:
    """A running ``leaderelect serve``, which ends with this process, however this process ends."""

    def __init__(self, url: str, options: Sequence[str], program: str | None, token: str | None) -> None:
        self._folder = _new_folder()
        self.address = f"unix:{self._folder}/socket"
        command = [program or find_program(), "serve", "--listen", self.address, "--exit-on-stdin-eof", *options]
        # The URL may contain a secret, and everybody can read a command line.
        environment = {**os.environ, "LEADERELECT_LOCK": url}
        for name in _OF_SERVERS:
            environment.pop(name, None)
        self._connection = Connection(self.address, token)
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
            _running.add(self)
            self._wait_until_it_serves()
        except BaseException:
            self.close()
            raise

    def _wait_until_it_serves(self) -> None:
        while True:
            self.check()
            try:
                self._connection.ask("GET", "/leader")
                return
            except PermissionError:
                raise
            except OSError:
                time.sleep(0.02)

    def check(self) -> None:
        """Raises SidecarEnded if the program has ended."""
        code = self._process.poll()
        if code is not None:
            raise SidecarEnded(f"leaderelect ended with {code}")

    def close(self) -> None:
        """Ends the program, which gives the lease back. Does nothing in a forked process."""
        if self._connection.is_of_parent:
            return
        process = getattr(self, "_process", None)
        if process is not None:
            process.stdin.close()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
