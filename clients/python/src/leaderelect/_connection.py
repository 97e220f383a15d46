"""The conversation with a sidecar."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 5.0
"""The longest wait for an answer, in seconds, beyond the time that a request itself waits."""


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Connection:
    """Asks a sidecar at ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``. Each request is one attempt."""

    def __init__(self, address: str, token: str | None) -> None:
        self._address = address
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        if self._address.startswith("unix:"):
            return _OverSocket(self._address.removeprefix("unix:"), timeout)
        url = urlsplit(self._address)
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.netloc, timeout=timeout)
        return http.client.HTTPConnection(url.netloc, timeout=timeout)

    def ask(self, method: str, path: str, body: object = None, wait: float = 0.0) -> tuple[int, dict[str, Any]]:
        """Returns the status and the JSON of an answer. Raises OSError if there is none."""
        connection = self._open(wait + PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            answer = connection.getresponse()
            content = answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"no answer from {self._address}: {error!r}") from error
        finally:
            connection.close()
        if answer.status not in (200, 409):
            text = content.decode(errors="replace").strip()
            raise OSError(f"{self._address}{path} answers {answer.status}: {text}")
        return answer.status, json.loads(content)
