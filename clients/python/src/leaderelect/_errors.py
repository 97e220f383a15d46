"""The exceptions of this package."""


class LeadershipLost(Exception):
    """The term is over: another process may work."""


class AlreadyDone(Exception):
    """The job was done before, here or on another host."""


class StaleToken(Exception):
    """A resource refuses a leader, because another one has taken over. Stop working."""

    def __init__(self, token: int, highest: int) -> None:
        super().__init__(f"fencing token {token} is stale, because {highest} has been seen")
        self.token, self.highest = token, highest


class SidecarEnded(Exception):
    """The program ``leaderelect`` has ended by itself. Its last words are on standard error."""
