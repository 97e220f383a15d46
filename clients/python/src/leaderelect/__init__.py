"""One of many processes works at a time: leader election over S3, Google Cloud Storage, Azure Blob Storage and files.

    from leaderelect import leadership

    with leadership("s3://bucket/locks/importer?region=eu-central-1") as term:
        for item in items():
            term.check()
            write(item, fencing_token=term.token)

The election is done by the program ``leaderelect``, which this package brings along and runs beside yours.
"""

from ._candidate import Candidate, leadership
from ._errors import AlreadyDone, LeadershipLost, SidecarEnded, StaleToken
from ._fence import Fence
from ._term import Term

__all__ = ["AlreadyDone", "Candidate", "Fence", "LeadershipLost", "SidecarEnded", "StaleToken", "Term", "leadership"]
