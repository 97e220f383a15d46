"""A candidate for leadership."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ._connection import Connection
from ._errors import AlreadyDone
from ._sidecar import Sidecar
from ._term import Term

_WAIT = 30


class Candidate:
    """Competes for a lock, and yields each term that it wins:

        with Candidate("s3://bucket/locks/importer") as candidate:
            for term in candidate:
                with term:
                    work(term)

    ``url`` names the lock, and this process gets a sidecar of its own. ``address`` names a sidecar that runs already, such
    as ``http://127.0.0.1:4040`` or ``unix:/run/leader.sock``, and ``token`` is for one that demands it: without, PermissionError.
    ``lease`` is the duration of the lease in seconds, and ``options`` are further options of ``leaderelect serve``.
    With ``once_for``, the name of a job, there are terms until one host has done the job.
    A forked process, such as a worker, has no part in the candidate of its parent: a term is lost there from the beginning.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        address: str | None = None,
        token: str | None = None,
        identity: str | None = None,
        lease: float = 15.0,
        once_for: str | None = None,
        options: Sequence[str] = (),
        program: str | None = None,
    ) -> None:
        if (url is None) == (address is None):
            raise ValueError("give either the url of a lock or the address of a sidecar")
        self._sidecar: Sidecar | None = None
        self._ping_period = lease / 10
        if url is not None:
            milliseconds = f"{round(lease * 1000)}ms"
            own = ["--lease-duration", milliseconds, "--heartbeat-timeout", milliseconds]
            own += ["--identity", identity] if identity is not None else []
            own += ["--job-id", once_for] if once_for is not None else []
            self._sidecar = Sidecar(url, [*own, *options], program, token)
            address = self._sidecar.address
        self._connection = Connection(str(address), token)

    def leader(self) -> dict[str, Any]:
        """The answer of the sidecar about the leader: ``name``, ``fencingToken``, ``leading`` and more."""
        return self._connection.ask("GET", "/leader")[1]

    def __iter__(self) -> Iterator[Term]:
        """Yields each term, and ends when the job of ``once_for`` is done. Work only inside of ``with term``."""
        query = ""
        while True:
            try:
                told = self._connection.ask("GET", f"/leader{query}", wait=_WAIT)[1]
            except PermissionError:
                raise
            except OSError:
                # Nobody knows who leads, so this process does not.
                if self._sidecar is not None:
                    self._sidecar.check()
                time.sleep(1.0)
                continue
            if told.get("jobDone"):
                return
            known = told["fencingToken"]
            query = f"?wait={_WAIT}s&after={'' if known is None else known}"
            if told["leading"] and not told["draining"]:
                term = Term(self._connection, known, self._ping_period)
                if term.begin():
                    yield term
                    # Unless the block has ended it.
                    term.end("stopped")
                query = ""

    def close(self) -> None:
        """Ends the sidecar that this candidate has started, and releases the lease."""
        if self._sidecar is not None:
            self._sidecar.close()

    def __enter__(self) -> "Candidate":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@contextmanager
def leadership(url: str | None = None, **options: Any) -> Iterator[Term]:
    """Waits for leadership, and leads for one term: the block. The arguments are those of Candidate.

    Raises AlreadyDone in place of running the block if the job of ``once_for`` is done.
    """
    with Candidate(url, **options) as candidate:
        for term in candidate:
            with term:
                yield term
            return
        raise AlreadyDone(options.get("once_for"))
