"""The program that elects."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
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


class Sidecar:
    """A running ``leaderelect serve``, which ends with this process, however this process ends."""

    def __init__(self, url: str, options: Sequence[str], program: str | None) -> None:
        self._folder = tempfile.mkdtemp(prefix="leaderelect-")
        self.address = f"unix:{self._folder}/socket"
        command = [program or find_program(), "serve", "--listen", self.address, "--end-with-stdin", *options]
        # The URL may contain a secret, and everybody can read a command line.
        environment = {**os.environ, "LEADERELECT_LOCK": url}
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
            self._wait_until_it_serves()
        except BaseException:
            self.close()
            raise

    def _wait_until_it_serves(self) -> None:
        connection = Connection(self.address, None)
        while True:
            self.check()
            try:
                connection.ask("GET", "/leader")
                return
            except OSError:
                time.sleep(0.02)

    def check(self) -> None:
        """Raises SidecarEnded if the program has ended."""
        code = self._process.poll()
        if code is not None:
            raise SidecarEnded(f"leaderelect ended with {code}")

    def close(self) -> None:
        """Ends the program, which gives the lease back."""
        process = getattr(self, "_process", None)
        if process is not None:
            process.stdin.close()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
