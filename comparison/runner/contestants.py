"""The electors that are compared, their builds, and the commands of their drivers."""

import errno
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = ROOT / "comparison/drivers"
FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"


@dataclass(frozen=True)
class Driver:
    """A program that keeps the contract of comparison/README.md."""

    name: str
    language: str
    store: str
    arguments: tuple = ()
    needs_lease: bool = False
    # The period of renewals that its own documentation recommends for a lease of 15 s, in milliseconds.
    retry_at_rest: int | None = None

    def command(self, target, options, is_shifted):
        """The command line. Go asks the kernel for the time itself, so a shifted clock needs a program of its own."""
        programs = {
            "rust": [target / "rust/release" / f"comparison-{self.name}"],
            "go": [target / "go" / (f"{self.name}-shifted" if is_shifted else self.name)],
            "java": ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp",
                     f"{target}/java/classes:{target}/java/dependency/*", "comparison." + self.name.title().replace("-", "")],
            "python": ["env", f"PYTHONPATH={target}/python", sys.executable, DRIVERS / "python/candidate.py"],
        }
        return [str(each) for each in [*programs[self.language], *self.arguments, *options]]

    def clock(self, seconds):
        """The variables that shift the wall clock of the program, and no other clock."""
        if not seconds:
            return {}
        if self.language == "go":
            return {"COMPARISON_WALL_CLOCK_OFFSET": str(seconds)}
        # Without the last one, every timed wait of a Java program ends at once, and the program spins.
        return {"LD_PRELOAD": str(faketime()), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_FORCE_MONOTONIC_FIX": "0"}


@dataclass(frozen=True)
class Contestant:
    """One row of the tables. Each candidate has its own driver."""

    key: str
    title: str
    drivers: tuple
    # Takes part only if it is named, and has no place in the published page.
    is_extra: bool = False

    @property
    def store(self):
        return self.drivers[0].store

    @property
    def is_ours(self):
        return self.key.startswith("ours-")

    @property
    def languages(self):
        return {driver.language for driver in self.drivers}


def alike(driver):
    return (driver,) * 3


OURS_LEASE = Driver("ours", "rust", "kube")
CLIENT_GO_LEASE = Driver("client-go-lease", "go", "kube")

CONTESTANTS = [
    Contestant("ours-file", "this library, file", alike(Driver("ours", "rust", "file"))),
    Contestant("ours-s3", "this library, S3", alike(Driver("ours", "rust", "s3"))),
    Contestant("ours-s3-peers", "this library, S3 with peers", alike(Driver("ours", "rust", "s3", ("--peer-key", "{secret}")))),
    Contestant("ours-sessions", "this library, a session on S3", alike(Driver("ours", "rust", "s3", ("--session",)))),
    Contestant("ours-lease", "this library, Lease", alike(OURS_LEASE)),
    Contestant("client-go-lease", "client-go, Lease", alike(CLIENT_GO_LEASE)),
    Contestant("client-go-keeps", "client-go, Lease, no ReleaseOnCancel", alike(Driver("client-go-lease", "go", "kube", ("--keep",)))),
    Contestant("client-go-s3", "client-go, S3", alike(Driver("client-go-s3", "go", "s3"))),
    Contestant("kube-leader-election", "kube-leader-election, Lease", alike(Driver("kube-leader-election", "rust", "kube", retry_at_rest=5000))),
    Contestant("kubert", "kubert, Lease", alike(Driver("kubert", "rust", "kube", needs_lease=True, retry_at_rest=14_000))),
    Contestant("fabric8", "fabric8, Lease", alike(Driver("fabric8", "java", "kube"))),
    # Each leader is followed by a candidate of the other kind.
    Contestant("mixed-lease", "this library and client-go, one Lease", (OURS_LEASE, CLIENT_GO_LEASE)),
]

# Electors for Leases, through `leaderelect lease-api` on S3, each candidate with a server of its own.
CONTESTANTS += [
    Contestant(f"{each.key}-api", f"{each.title.removesuffix(', Lease')}, through lease-api",
               tuple(replace(driver, store="api") for driver in each.drivers), is_extra=each.key != "client-go-lease")
    for each in [
        *(each for each in CONTESTANTS if each.key in ("client-go-lease", "kube-leader-election", "kubert", "fabric8")),
        Contestant("python", "Python", alike(Driver("python", "python", "api"))),
        Contestant("controller-runtime", "controller-runtime", alike(Driver("controller-runtime", "go", "api"))),
        Contestant("official", "Java's official client", alike(Driver("official", "java", "api"))),
    ]
]

# The contestants that nobody can measure here, and the reason.
NEVER = {
    "s3lect": "the Go module proxy refuses github.com/podplane/s3lect and github.com/nadrama-com/s3lect",
}


def faketime():
    """The library that shifts the clock of programs that ask libc for the time; None if it is not installed."""
    return next(iter(glob.glob(FAKETIME)), None)


class Builds:
    """The programs, built once below the target. A language whose tools are missing is skipped, and the reason kept."""

    def __init__(self, target):
        self.target = target
        self.skipped, self.seconds = {}, {}

    def build(self, names):
        """Builds the Rust programs beside all others, because neither keeps all cores busy all the time."""
        chains = [[name for name in names if (name == "rust") == is_rust] for is_rust in (True, False)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.build_one_by_one, chains))

    def build_one_by_one(self, names):
        steps = {"rust": self.rust, "go": self.go, "java": self.java, "servers": self.servers,
                 "python": self.python, "leaderelect": self.leaderelect}
        for name in names:
            began = time.monotonic()
            # One write, because two builds go on.
            print(f"building: {name}\n", end="", flush=True)
            try:
                steps[name]()
            except (OSError, subprocess.CalledProcessError) as error:
                self.skipped[name] = reason(error)
                print(f"skipped: {name}: {self.skipped[name]}", flush=True)
            self.seconds[name] = time.monotonic() - began

    def rust(self):
        # Not `--locked`: a new dependency of the library is added, and all others stay at the versions of the lock file.
        run(["cargo", "build", "--release", "--quiet"], DRIVERS / "rust",
            {"CARGO_TARGET_DIR": str(self.target / "rust")})

    def go(self):
        options = ["-trimpath", "-ldflags=-s -w", "-mod=readonly"]
        for name in GO_PROGRAMS:
            run(["go", "build", *options, "-o", self.target / "go" / name, f"./{name}"], DRIVERS / "go", GO)
        overlay = self.overlay()
        for name in GO_PROGRAMS:
            run(["go", "build", *options, f"-overlay={overlay}", "-o", self.target / "go" / f"{name}-shifted", f"./{name}"],
                DRIVERS / "go", GO)

    def overlay(self):
        """Go's own package `time`, with a shift of the wall clock that a variable sets.

        Programs in Go read the clock from the kernel's page and not through libc, so no preloaded library can shift it.
        """
        goroot = Path(subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip())
        source, folder = goroot / "src/time/time.go", self.target / "go"
        folder.mkdir(parents=True, exist_ok=True)
        # The monotonic part stays as it is.
        read = "\tsec, nsec, mono := runtimeNow()\n"
        text = source.read_text()
        if text.count(read) < 1:
            raise OSError(f"{source} does not read the clock as expected; this needs the work of a person")
        (folder / "time.go").write_text(text.replace(read, f"{read}\tsec += wallClockOffset()\n"))
        (folder / "offset.go").write_text(
            'package time\n\nimport "syscall"\n\n'
            "var wallClockOffset = func() func() int64 {\n"
            '\ttext, _ := syscall.Getenv("COMPARISON_WALL_CLOCK_OFFSET")\n'
            "\toffset, _ := atoi(text)\n"
            "\treturn func() int64 { return int64(offset) }\n"
            "}()\n")
        overlay = folder / "overlay.json"
        replaced = {str(source): str(folder / "time.go"), str(source.with_name("zz_offset.go")): str(folder / "offset.go")}
        overlay.write_text(json.dumps({"Replace": replaced}))
        return overlay

    def java(self):
        run(["mvn", "--quiet", "--batch-mode", "package", "-Dmaven.test.skip", f"-Dcomparison.target={self.target}/java"],
            DRIVERS / "java", {})

    def python(self):
        run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--require-hashes",
             "--no-deps", "--only-binary=:all:", "--root-user-action=ignore", "--upgrade", "--target", self.target / "python",
             "--requirement", DRIVERS / "python/requirements.txt"], ROOT, {})

    def leaderelect(self):
        run(["cargo", "build", "--release", "--quiet", "--package", "leaderelection-cli"], ROOT,
            {"CARGO_TARGET_DIR": str(self.target / "rust")})

    def servers(self):
        folder = self.target / "servers"
        is_built = all((folder / name).exists() for name in ("etcd", "kube-apiserver"))
        for program in ("openssl",) if is_built else ("openssl", "go"):
            if not shutil.which(program):
                raise FileNotFoundError(errno.ENOENT, "not installed", program)
        if not is_built:
            run([ROOT / "comparison/build-servers", folder], ROOT, {})


    def digest(self):
        """What changes when one of our programs, or one of theirs, is built from other source."""
        digest = hashlib.sha256()
        parts = ("rust/release/comparison-*", "go/c*", "java/classes/comparison/*", "servers/*")
        for path in sorted(path for part in parts for path in self.target.glob(part)):
            if path.suffix != ".d":
                digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


GO_PROGRAMS = ("client-go-lease", "client-go-s3", "controller-runtime")
GO = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}


def run(command, folder, environment):
    subprocess.run([str(each) for each in command], cwd=folder, check=True, env={**os.environ, **environment},
                   stdin=subprocess.DEVNULL)


def reason(error):
    if isinstance(error, FileNotFoundError):
        return f"{Path(error.filename).name} is not installed"
    return f"the build failed: {error}"


# What the stores need.
NEEDED = {"kube": {"servers"}, "api": {"leaderelect"}}


def skip_reason(contestant, builds):
    """The reason for which a contestant does not take part; None if it does."""
    needed = contestant.languages | NEEDED.get(contestant.store, set())
    reasons = {builds.skipped[name] for name in needed if name in builds.skipped}
    return "; ".join(sorted(reasons)) or None
