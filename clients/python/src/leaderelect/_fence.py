"""A resource that refuses earlier leaders."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ._errors import StaleToken


class Fence:
    """The largest token that a resource of this process has seen, such as a server's. Smaller ones are refused.

        with fence.entered(token):
            balance += amount

    ``highest`` is what was stored with data that outlives the process.
    """

    def __init__(self, highest: int = 0) -> None:
        self._lock = threading.Lock()
        self._highest = highest

    @property
    def highest(self) -> int:
        """The largest token seen so far."""
        return self._highest

    @contextmanager
    def entered(self, token: int) -> Iterator[None]:
        """Checks a token. Nobody else enters during the block, so that the check and the change in it are one step.

        Raises StaleToken if a larger token was seen.
        """
        with self._lock:
            if token < self._highest:
                raise StaleToken(token, self._highest)
            self._highest = token
            yield
