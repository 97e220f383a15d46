"""Changes that cargo-mutants draws, and the tests that notice them.

Each test runs once without a change, and tells which changed functions it enters. A change is then tried on these tests alone.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import copies
import programs
from rows import ROOT, Edit, Place, Source

# How many tests are tried before all others: those that have noticed the most changes in the least time.
FIRST = 10
# Seconds, and seconds for each that the tests have needed without a change. Processor time is the shorter limit, because a busy
# machine does not add to it.
PATIENCE, PROCESSOR, TIMES = 15, 8, 5
# Kibibytes of memory.
MEMORY = 16 * 1024 * 1024
# The variables of each test run, such as how many tests wait at a time.
VARIABLES = tomllib.loads((ROOT / ".cargo/config.toml").read_text())["env"]
TESTS_AT_A_TIME = int((VARIABLES | os.environ)["RUST_TEST_THREADS"])
# The variable by which the processes of a trial are known, those included that tests have started.
TRIAL = "MUTATION_TRIAL"
# What notices a change that does not compile.
UNVIABLE = "the compiler"
# The names of changes of constants, which are not drawn.
OF_CONSTANTS = r": replace \W+ with \W+$"


class Change:
    """A change of one place."""

    def __init__(self, name, drawn):
        self.name, self.file = name, drawn["file"]
        # The line of the source moves.
        self.label = re.sub(r":\d+:\d+:", ":", drawn["name"], count=1)
        source = Source.of(self.file)
        ends = (drawn["span"]["start"], drawn["span"]["end"])
        start, end = (source.starts_of_lines[at["line"] - 1] + at["column"] - 1 for at in ends)
        item = source.innermost(start, end)
        self.place = Place(Edit(self.file, item.name, source.text[start:end], drawn["replacement"]), start, end, item)
        self.has_choice = bool(item.body) and item.body[0] <= start and end <= item.body[1]

    def places(self):
        return [self.place]

    def alone(self):
        """The files of a copy that has this change and no other."""
        return copies.of_all([]) | {self.file: copies.changed(self.file, [self.place], 0, len(Source.of(self.file).text))}


@dataclass(eq=False)
class Test:
    program: programs.Program
    name: str
    # Guesses, until it has run.
    seconds: float = 30.0
    processor: float = 30.0
    # The numbers of the changes whose functions it enters.
    reached: set = field(default_factory=set)
    # How many changes of each file.
    noticed: Counter = field(default_factory=Counter)

    def merit(self, file):
        return -(self.noticed[file] + self.noticed.total() / 10) / (self.seconds + 0.1), self.seconds


def draw(area, package, files, pattern):
    """The changes of an area's files."""
    wanted = [word for file in files for word in ("--file", file)] + (["--re", pattern] if pattern else [])
    command = ["cargo", "mutants", "--list", "--json", "--exclude-re", OF_CONSTANTS, "--package", package, *wanted]
    listed = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    return [Change(f"{area}-{number}", drawn) for number, drawn in enumerate(json.loads(listed.stdout))]


@dataclass
class Copy:
    """A copy of the source, in which programs choose among all changes that compile."""

    work: Path
    # The packages and targets of each area.
    targets: dict
    changes: list

    def build(self):
        """Builds the tests of all areas. Returns those of each, and the changes that do not compile."""
        refused = []
        while True:
            try:
                return {area: self.build_area(area, copies.of_all(self.changes)) for area in self.targets}, refused
            except programs.Refused as words:
                if not words.culprits:
                    raise
                refused += [change for change in self.changes if change.name in words.culprits]
                self.changes = [change for change in self.changes if change.name not in words.culprits]

    def build_area(self, area, files):
        """Builds the tests of an area from a copy with these files. Returns the programs."""
        copies.write(self.work / "source", files)
        built = [programs.build_one(self.work, self.work / "source", *target) for target in self.targets[area]]
        return [program for some in built for name, program in some.items() if "::" in name]


class Court:
    """The tests of an area, which judge changes."""

    def __init__(self, copy, area, built, pool, pattern):
        self.copy, self.area, self.pool = copy, area, pool
        listed = [test for program in built for test in tests_of(program) if re.search(pattern, test.name)]
        with ThreadPoolExecutor(TESTS_AT_A_TIME) as many:
            passed = list(many.map(survey, listed))
        self.tests = [test for test, is_passed in zip(listed, passed, strict=True) if is_passed]
        for test in set(listed) - set(self.tests):
            print(f"no judge, because it fails or takes too long without a change: {test.name}", flush=True)

    def judge(self, numbers):
        """Tries the changes with these numbers. Yields each with the test that notices it, or `None`."""

        def attempt(number):
            judges = [test for test in self.tests if number in test.reached]
            return attempt_by(judges, {copies.CHOICE: str(number)}, self.copy.changes[number].file)

        yield from zip((self.copy.changes[number] for number in numbers), self.pool.map(attempt, numbers), strict=True)

    def judge_alone(self, change):
        """Tries a change of what a program cannot choose. Returns what notices it, or else `None`."""
        try:
            built = {program.path for program in self.copy.build_area(self.area, change.alone())}
        except programs.Refused:
            return UNVIABLE
        # The name of a program is the same whatever it is built from.
        return attempt_by([test for test in self.tests if test.program.path in built], {}, change.file)


def tests_of(program):
    listed = subprocess.run([program.path, "--list", "--format", "terse"], cwd=program.folder, check=True, text=True, stdout=subprocess.PIPE)
    return [Test(program, name) for name in re.findall(r"^(.*): test$", listed.stdout, re.M)]


def survey(test):
    """Runs a test without a change. Returns `False` if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path, began = Path(folder) / "reached", time.monotonic()
        # Some tests start processes of users without rights.
        path.touch()
        path.chmod(0o666)
        Path(folder).chmod(0o711)
        failure, test.processor = first_failure([test], {copies.REACHED: str(path)})
        test.seconds = time.monotonic() - began
        test.reached = {int(line) for line in path.read_text().split()}
    return failure is None


def attempt_by(tests, variables, file):
    """Runs tests until one fails by a change of a file. Returns its name, or how its program ended, or `None`."""
    ordered = sorted(tests, key=lambda test: test.merit(file))
    for some in (ordered[:FIRST], ordered[FIRST:]):
        for program in dict.fromkeys(test.program for test in some):
            judges = [test for test in some if test.program == program]
            if failure := sure_failure(judges, variables):
                for test in judges:
                    test.noticed[file] += test.name == failure
                return failure
    return None


def sure_failure(tests, variables):
    """Runs tests until one fails twice: on a busy machine, a test may fail by itself."""
    while tests:
        failure, _ = first_failure(tests, variables)
        failed = [test for test in tests if test.name == failure]
        if not failed or first_failure(failed, variables)[0]:
            return failure
        tests = [test for test in tests if test not in failed]
    return None


def first_failure(tests, variables):
    """Runs tests of one program until one fails. Returns its name, or how the program ended, and the time of processors."""
    trial, processor = {TRIAL: uuid.uuid4().hex}, sum(test.processor for test in tests)
    # As many wait at a time as may, and those that compute have one processor.
    seconds = max(max(test.seconds for test in tests), sum(test.seconds for test in tests) / TESTS_AT_A_TIME, processor)
    limited = f'ulimit -t {PROCESSOR + TIMES * processor:.0f} -v {MEMORY}; exec "$0" "$@"'
    process = subprocess.Popen(
        ["bash", "-c", limited, tests[0].program.path, "--exact", *(test.name for test in tests)],
        cwd=tests[0].program.folder, env=VARIABLES | os.environ | variables | trial, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    timer = threading.Timer(PATIENCE + TIMES * seconds, end, [trial])
    timer.start()
    failed = next((found[1] for line in process.stdout if (found := re.match(r"test (\S+).* FAILED$", line))), None)
    timer.cancel()
    end(trial)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return failed or (f"status {process.returncode}" if status else None), used.ru_utime + used.ru_stime


def end(trial):
    """Ends the processes of a trial."""
    [mark] = (f"{name}={value}".encode() for name, value in trial.items())
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except OSError:
            pass  # Of another user, or over.
