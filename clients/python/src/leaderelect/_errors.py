"""The exceptions of this package."""


class LeadershipLost(Exception):
    """The term is over: another process may work."""


class AlreadyDone(Exception):
    """The job was done before, here or on another host."""


class SidecarEnded(Exception):
    """The program ``leaderelect`` has ended by itself. Its last words are on standard error."""
