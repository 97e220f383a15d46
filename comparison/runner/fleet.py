"""The candidates of one election, their ways to the server, and their log."""

import asyncio
import functools
import os
import secrets
import signal
import subprocess
import time
from dataclasses import dataclass

from .entries import Log, next_leader
from .history import History
from .kube import create_lease, kubeconfig
from .lease_api import LeaseApi
from .process import end_with_parent
from .proxy import Proxy

MILLI = 1_000_000
# The time between two entries of a leader.
WORK_MS = 20
# The time between two looks at the log. The moments are in the log, so this time is in no result.
LOOK = 0.05


@dataclass
class Candidate:
    """A process in a slot of the fleet. The process that follows another one in its slot has a name of its own, as a pod has."""

    slot: int
    identity: str
    process: subprocess.Popen
    proxy: Proxy | None
    # The moment of its last write that reached the store, of a process that was killed.
    renewed: int | None = None

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)


class Fleet:
    """Candidates that compete for one lock."""

    def __init__(self, place, contestant, name, timings, shifts=(0, 0, 0), is_at_rest=False):
        self.place, self.contestant, self.timings, self.shifts = place, contestant, timings, shifts
        self.is_at_rest = is_at_rest
        self.folder = place.folder / name
        self.folder.mkdir(parents=True)
        self.log = Log(self.folder / "log")
        self.history = History(self.folder / "history")
        self.lock, self.secret = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
        self.candidates, self.proxies, self.apis, self.started = {}, {}, {}, 0

    async def start(self):
        if self.contestant.store == "kube" and any(driver.needs_lease for driver in self.contestant.drivers):
            self.place.kube.create_lease(self.lock)
        for slot, driver in enumerate(self.contestant.drivers):
            if driver.store != "file":
                self.proxies[slot] = await self.place.proxy(driver.store, functools.partial(self.history.begin, slot)).start()
            if driver.store == "api":
                folder = self.folder / f"api-{slot}"
                api = await asyncio.to_thread(LeaseApi, self.place.target, self.place.seaweed, self.proxies[slot].url, folder)
                self.apis[slot] = api
                if driver.needs_lease and slot == 0:
                    await asyncio.to_thread(create_lease, api.request, self.lock)
            await self.spawn(slot)
            # The first one leads, so that the fleets of all contestants begin alike.
            if slot == 0:
                await self.wait_until(lambda: self.leader() is not None, 20)

    async def spawn(self, slot):
        driver, proxy = self.contestant.drivers[slot], self.proxies.get(slot)
        self.started += 1
        identity = f"node-{slot}-{self.started}"
        options = ["--lock", self.url(driver, proxy), "--identity", identity, "--log", self.log.path, *self.times(driver)]
        command = driver.command(self.place.target, options, is_shifted=bool(self.shifts[slot]))
        command = [self.secret if each == "{secret}" else each for each in command]
        environment = {**os.environ, **self.environment(slot, driver, proxy), **driver.clock(self.shifts[slot]), "RUST_LOG": "off"}
        with open(self.folder / f"{identity}.log", "wb") as output:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output,
                                       preexec_fn=end_with_parent)
        self.candidates[slot] = Candidate(slot, identity, process, proxy)

    def times(self, driver):
        retry = driver.retry_at_rest if self.is_at_rest and driver.retry_at_rest else self.timings.retry
        return ["--lease-ms", self.timings.lease, "--renew-ms", self.timings.renew, "--retry-ms", retry, "--work-ms", WORK_MS]

    def url(self, driver, proxy):
        """The name of the lock, as the driver wants it."""
        if driver.name != "ours":
            return self.lock
        if driver.store == "file":
            return f"file://{self.folder}/store/{self.lock}"
        if driver.store == "s3":
            return f"s3://bucket/{self.lock}?endpoint={proxy.url}"
        return f"lease://default/{self.lock}"

    def environment(self, slot, driver, proxy):
        if driver.store == "s3":
            return {**self.place.seaweed.environment(), "COMPARISON_S3": proxy.url}
        if driver.store in ("kube", "api"):
            url = proxy.url if driver.store == "kube" else self.apis[slot].url
            path = self.folder / f"kubeconfig-{url.rsplit(':', 1)[1]}"
            path.write_text(kubeconfig(url))
            return {"KUBECONFIG": str(path)}
        return {}

    async def wait_until(self, holds, limit):
        """Waits until `holds()` is true of the log. Returns whether that came within the limit, in seconds."""
        deadline = time.monotonic() + limit
        while not holds():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(LOOK)
        return True

    def leader(self):
        """The candidate that began the last term. If that one has stopped, whoever worked last, as an elector may let two lead."""
        self.log.read()
        for identity in [*(each.identity for each in self.log.starts[-1:]), *self.log.last_workers()]:
            if self.quiet_for(identity) < 25 * WORK_MS and (candidate := self.by_identity(identity)):
                return candidate
        return None

    def quiet_for(self, identity):
        """The time since a candidate's last entry, in milliseconds."""
        return (time.monotonic_ns() - self.log.last_work.get(identity, 0)) / MILLI

    def by_identity(self, identity):
        return next((each for each in self.candidates.values() if each.identity == identity), None)

    async def settled(self, limit):
        """Waits until one candidate leads, and the others had the time to see that. After the limit, whoever leads counts."""
        found = None

        def holds():
            nonlocal found
            found = self.leader()
            return found is not None and self.is_settled(found)

        if not await self.wait_until(holds, limit) and found is None:
            await self.wait_until(lambda: self.leader() is not None, limit)
            found = self.leader()
        return found

    def is_settled(self, leader):
        """Whether all have seen this leader, and no leader of the past goes on working."""
        ready = [self.log.ready.get(each.identity) for each in self.candidates.values()]
        if None in ready:
            return False
        calm = 3 * self.timings.retry
        others = [each for each in self.log.last_work if each != leader.identity]
        since = max(self.log.starts[-1].at, *ready)
        return time.monotonic_ns() - since > calm * MILLI and all(self.quiet_for(each) > calm for each in others)

    async def next_after(self, leader, since, limit):
        """The first entry of the next leader. None if there is none within the limit."""
        def found():
            self.log.read()
            return next_leader(self.log.starts, leader.identity, since)

        await self.wait_until(found, limit)
        return found()

    def last_renewal(self, candidate):
        """The moment of a candidate's last write to the store."""
        if candidate.proxy:
            return candidate.proxy.last_write
        written = max(filter(None, map(changed, (self.folder / "store").rglob("*"))), default=None)
        return written and written - time.time_ns() + time.monotonic_ns()

    async def replace(self, candidate):
        """Starts a process in the place of one that ends."""
        while candidate.process.poll() is None:
            await asyncio.sleep(LOOK)
        await self.spawn(candidate.slot)

    async def replace_the_dead(self):
        """A candidate may have ended by itself, as some do when they lose."""
        for candidate in list(self.candidates.values()):
            if candidate.process.poll() is not None:
                await self.spawn(candidate.slot)

    async def stop(self):
        self.history.close()
        for candidate in self.candidates.values():
            candidate.signal(signal.SIGKILL)
            candidate.process.wait()
        for api in self.apis.values():
            api.stop()
        for proxy in self.proxies.values():
            await proxy.stop()
        self.log.close()


def changed(path):
    """The time at which a file was written. None if it is gone: the store replaces its files."""
    try:
        return path.stat().st_mtime_ns if path.is_file() else None
    except FileNotFoundError:
        return None
