"""Trials: a program that has to notice a mutation, and what it says."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rows import Row

# The program of the models and simulations.
PROOFS = "proofs"
# More processor time than any trial needs, in seconds.
PATIENCE = 120
# More simulated hours than any trial needs.
HOURS = 1000


@dataclass(frozen=True)
class Trial:
    """A mutation, and one of the things that have to notice it."""

    row: Row
    kind: str
    # The promise that is found broken, or the test that fails.
    expected: str

    @property
    def name(self):
        return f"{self.row.name}.{self.kind}"

    def command(self, programs):
        """The program and its arguments. With one thread, the same breach is found each time."""
        row = self.row
        if self.kind == "model":
            return [programs[PROOFS], *row.explore, row.setup, "--threads", "1"]
        if self.kind == "simulation":
            conditions = [f"--condition={condition}" for condition in row.conditions]
            seeds = ["--hours", str(HOURS), "--threads", "1", "--first-seed", str(row.seed or 0)]
            return [programs[PROOFS], *row.simulate, *seeds, *conditions]
        package, target, *path = row.test.split("::")
        return [programs[f"{package}::{target}"], "-q", "::".join(path)]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a trial."""

    trial: Trial
    # The processor time of the trial.
    seconds: float
    # The promise that was found broken, or the test that has failed.
    found: str | None
    details: str = ""
    # The seed that broke the promise.
    seed: int | None = None

    @property
    def is_right(self):
        return self.found == self.trial.expected

    @property
    def is_late(self):
        """Whether the row names a seed, and another one was the first to show the mutation."""
        return self.is_right and self.trial.row.seed not in (None, self.seed) and self.trial.kind == "simulation"

    def __str__(self):
        found = self.found or "NOT CAUGHT"
        other = "" if self.is_right else f", NOT {self.trial.expected}"
        details = f"{self.details}, " if self.details else ""
        details += f"seed {self.seed}, " if self.seed is not None else ""
        return f"{self.trial.row.name:50} {self.trial.kind:10} {found}{other} ({details}{self.seconds:.1f} s)"


def of(row):
    """The trials of a mutation."""
    kinds = [("model", row.question if row.setup else None), ("simulation", row.oracle), ("test", row.test)]
    return [Trial(row, kind, expected) for kind, expected in kinds if expected]


def judge(trial, status, text, seconds):
    """What the words of a program say. The last line of one that explores or simulates is then `violated: PROMISE`."""
    if trial.kind == "test":
        return judge_test(trial, text, seconds)
    broken = re.findall(r"^violated: (.*?)(?: seed: (\d+))?$", text, re.M)
    hours = re.findall(r"^(\d+) simulated hours", text, re.M)
    details = f"{hours[-1]} h" if hours else ""
    if status <= 0 or not broken:
        return Verdict(trial, seconds, None, details)
    promise, seed = broken[-1]
    return Verdict(trial, seconds, promise, details, int(seed) if seed else None)


def judge_test(trial, text, seconds):
    """The test that has failed, if it is one of those that the row names."""
    failed = re.findall(r"^    ([\w:]+)$", text, re.M) if "test result: FAILED" in text else []
    path = "::".join(trial.row.test.split("::")[2:])
    found = trial.expected if failed and all(test.startswith(path) for test in failed) else None
    return Verdict(trial, seconds, found or ", ".join(failed) or None, failed[0].split("::")[-1] if found else "")


def run(trial, programs, choice, output):
    """Carries out a trial. What its program says is kept in `output`."""
    program, *arguments = trial.command(programs)
    path = output / f"{trial.name}.txt"
    limited = ["bash", "-c", f'ulimit -t {PATIENCE}; exec "$0" "$@"', program.path, *arguments]
    with path.open("w") as file:
        process = subprocess.Popen(
            limited, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=program.folder, env=os.environ | choice
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = path.read_text(errors="replace")
    return judge(trial, process.returncode, text, used.ru_utime + used.ru_stime)


class Memory:
    """The processor time of each trial when it was last carried out, so that the longest can be first."""

    def __init__(self, path: Path):
        self.path = path
        self.seconds = json.loads(path.read_text()) if path.is_file() else {}

    def longest_first(self, trials):
        unknown = {"simulation": 9.0, "test": 2.0, "model": 1.0}
        return sorted(trials, key=lambda trial: -self.seconds.get(trial.name, unknown[trial.kind]))

    def keep(self, verdicts):
        self.seconds |= {verdict.trial.name: round(verdict.seconds, 1) for verdict in verdicts}
        self.path.write_text(json.dumps(self.seconds, indent=0, sort_keys=True))
