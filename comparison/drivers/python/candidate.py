"""The elector of the official Python client as one candidate: it keeps the contract that comparison/README.md describes."""

import argparse
import os
import signal
import sys
import threading
import time

from kubernetes import client, config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("lock", "identity", "log"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("lease", "renew", "retry", "work"):
        parser.add_argument(f"--{name}-ms", type=int, required=True)
    return parser.parse_args()


class Work:
    """A leader's work: entries, until the elector says that the term is over."""

    def __init__(self, args):
        self.log = os.open(args.log, os.O_APPEND | os.O_WRONLY | os.O_CREAT, 0o644)
        self.identity, self.period = args.identity, args.work_ms / 1000
        self.over = threading.Event()

    def append(self, event):
        os.write(self.log, f"{time.clock_gettime_ns(time.CLOCK_MONOTONIC)} {self.identity} - {event}\n".encode())

    def lead(self):
        event = "start"
        while not self.over.is_set():
            self.append(event)
            event = "work"
            self.over.wait(self.period)
        self.append("stop")


def main():
    args = arguments()
    # Ends with the process that started it.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
    # This elector gives nothing up.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    config.load_kube_config()
    lock = LeaseLock(args.lock, "default", args.identity)
    Work(args).append("ready")
    while True:
        work = Work(args)
        # This elector writes the lease in whole seconds, and refuses a shorter retry period than one.
        lease, renew, retry = round(args.lease_ms / 1000), args.renew_ms / 1000, max(1.0, args.retry_ms / 1000)
        settings = electionconfig.Config(lock, lease, renew, retry, work.lead, work.over.set)
        leaderelection.LeaderElection(settings).run()


if __name__ == "__main__":
    main()
