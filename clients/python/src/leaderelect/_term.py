"""A term of leadership."""

import threading
import time
from types import TracebackType

from ._connection import Connection
from ._errors import LeadershipLost


def now() -> float:
    """The time in seconds on a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Term:
    """A term of leadership, until the end of its ``with`` block, which gives the lease back.

    The work is done if the block ends by itself, and has failed if the block raises. A thread tells the sidecar that the
    work goes on. A process that is stopped or stuck for longer than the lease loses the term.
    """

    token: int
    """The fencing token. Pass it to every resource, and let resources refuse smaller ones."""

    def __init__(self, connection: Connection, token: int, ping_period: float) -> None:
        self.token = token
        self._connection = connection
        self._ping_period = ping_period
        self._valid_until = 0.0
        self._lost = threading.Event()
        self._over = threading.Event()
        self._stopping = threading.Event()
        self._pinger = threading.Thread(target=self._ping_on, name="leaderelect", daemon=True)

    @property
    def remaining(self) -> float:
        """The time in seconds for which this process surely leads; 0.0 if it does not."""
        return 0.0 if self._connection.is_of_parent or self._lost.is_set() else max(0.0, self._valid_until - now())

    @property
    def valid(self) -> bool:
        """This process leads. Once false, it stays false."""
        return self.remaining > 0.0

    @property
    def stopping(self) -> bool:
        """The sidecar got a signal to end, or the term is lost: the work should end soon."""
        return self._stopping.is_set() or not self.valid

    def check(self) -> None:
        """Raises LeadershipLost if this process does not lead any more."""
        if not self.valid:
            raise LeadershipLost(f"the term with token {self.token} is over")

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Waits until the term is lost, or until ``timeout`` seconds have passed. Returns whether it is lost."""
        return self._connection.is_of_parent or self._lost.wait(timeout)

    def begin(self) -> bool:
        """Tells the sidecar that the work begins. Returns False if the term is over. Candidate calls it."""
        self._ping()
        if self.valid:
            self._pinger.start()
        return self.valid

    def end(self, work: str) -> None:
        """Ends the term, unless it has ended: the work is ``done``, has ``failed`` or was ``stopped``."""
        if self._connection.is_of_parent or self._over.is_set():
            return
        self._over.set()
        self._lost.set()
        if self._pinger.is_alive():
            self._pinger.join()
        try:
            self._connection.ask("POST", "/term", {"token": self.token, "work": work}, wait=60.0)
        except OSError:
            pass  # The lease runs out.

    def __enter__(self) -> "Term":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # An interruption is no fault of the work, and neither is a loss.
        is_fault = kind is not None and issubclass(kind, Exception) and not issubclass(kind, LeadershipLost)
        self.end("done" if kind is None else "failed" if is_fault else "stopped")

    def _ping(self) -> None:
        sent = now()
        try:
            status, told = self._connection.ask("POST", "/term", {"token": self.token, "work": "running"})
        except OSError:
            status, told = 0, {}
        if status == 409:
            self._lost.set()
        elif status == 200:
            # Of two times, that of the request is the earlier one.
            self._valid_until = sent + float(told["leftSeconds"] or 0.0)
            if told["draining"]:
                self._stopping.set()
        # Nobody may find it valid again who has found it lost.
        if now() >= self._valid_until:
            self._lost.set()

    def _ping_on(self) -> None:
        while not self._lost.is_set() and not self._over.wait(min(self._ping_period, self.remaining)):
            self._ping()
