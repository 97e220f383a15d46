"""The servers that all contestants share, and the folders of a run."""

import os
import shutil
import time

from . import seaweed
from .kube import Kube
from .proxy import Proxy


class Place:
    """The servers of a run, started on demand."""

    def __init__(self, target, latency):
        self.target, self.latency = target, latency
        self.folder = target / "run"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.seaweed = self.kube = None

    def start(self, stores):
        if {"s3", "api"} & stores:
            self.seaweed = seaweed.Seaweed(seaweed.install(self.target), self.folder / "seaweedfs")
        if "kube" in stores:
            self.kube = Kube(self.target / "servers", self.folder / "kube")

    def proxy(self, store, begin):
        """A way to the server. The proxy adds the latency of a region, and speaks plain HTTP with the candidate."""
        if store in ("s3", "api"):
            return Proxy(self.seaweed.url, self.latency, begin=begin)
        return Proxy(self.kube.url, self.latency, self.kube.context, self.kube.token, begin)

    def stop(self):
        for server in (self.seaweed, self.kube):
            if server:
                server.stop()


class Busy:
    """The share of the processors' time that was not idle since this was made."""

    def __init__(self):
        self.began, self.before = time.monotonic(), self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as file:
            times = list(map(int, file.readline().split()[1:9]))
        return sum(times), times[3] + times[4]

    def seconds(self):
        return time.monotonic() - self.began

    def share(self):
        total, idle = (now - then for now, then in zip(self.read(), self.before))
        return 1 - idle / max(total, 1)


def machine():
    """The machine in words."""
    model = "an unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{os.cpu_count()} cores of {model}, Linux {os.uname().release}"
