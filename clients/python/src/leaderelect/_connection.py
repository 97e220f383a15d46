"""The conversation with a sidecar."""

import http.client
import json
import math
import os
import socket
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 5.0
"""The longest wait for an answer, in seconds, beyond the time that a request itself waits."""

_LARGEST = 64 * 1024
"""The largest answer that is read, in bytes."""

_LONGEST = 24 * 60 * 60.0
"""The longest lease that is believed, in seconds."""


def _told(content: bytes) -> dict[str, Any]:
    """Reads an answer about the leader. Raises ValueError if it is something else."""
    told = json.loads(content)
    if not isinstance(told, dict) or not isinstance(told.get("leading"), bool) or not isinstance(told.get("draining"), bool):
        raise ValueError("it does not say who leads")
    token, left = told.get("fencingToken"), told.get("leftSeconds")
    if not (token is None or type(token) is int and token >= 0):
        raise ValueError(f"fencingToken is {token!r}")
    if not (left is None or type(left) in (int, float) and math.isfinite(left) and 0 <= left <= _LONGEST):
        raise ValueError(f"leftSeconds is {left!r}")
    return told


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Connection:
    """Asks a sidecar at ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``. Each request is one attempt.

    It is for the process that made it: a forked one would work in the term of its parent.
    """

    def __init__(self, address: str, token: str | None) -> None:
        self._owner = os.getpid()
        self._address = address
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    @property
    def is_of_parent(self) -> bool:
        """This process was forked from the one that made this connection."""
        return os.getpid() != self._owner

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        if self._address.startswith("unix:"):
            return _OverSocket(self._address.removeprefix("unix:"), timeout)
        url = urlsplit(self._address)
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.netloc, timeout=timeout)
        return http.client.HTTPConnection(url.netloc, timeout=timeout)

    def ask(self, method: str, path: str, body: object = None, wait: float = 0.0) -> tuple[int, dict[str, Any]]:
        """Returns the status and the JSON of an answer. Raises OSError if there is none, and PermissionError without the token.

        Raises RuntimeError in a forked process.
        """
        if self.is_of_parent:
            raise RuntimeError("this process was forked: a candidate and its terms belong to the process that made them")
        connection = self._open(wait + PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            answer = connection.getresponse()
            content = answer.read(_LARGEST + 1)
        except http.client.HTTPException as error:
            raise OSError(f"no answer from {self._address}: {error!r}") from error
        finally:
            connection.close()
        if answer.status == 401:
            raise PermissionError(f"{self._address} demands a token: give the one of its --token-file as token=")
        if answer.status not in (200, 409):
            text = content[:200].decode(errors="replace").strip()
            raise OSError(f"{self._address}{path} answers {answer.status}: {text}")
        try:
            if len(content) > _LARGEST:
                raise ValueError(f"it is larger than {_LARGEST} bytes")
            return answer.status, _told(content)
        except (ValueError, RecursionError) as error:
            raise OSError(f"{self._address}{path} gives no answer of leaderelect serve: {error}") from error
