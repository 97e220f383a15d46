"""The programs that show mutations, built of the copy of the source."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import copies

PROTOCOL = "leaderelection-proofs"


@dataclass(frozen=True)
class Program:
    """A program, and the folder that it expects to be in."""

    path: str
    folder: str


def wanted_by(trials):
    """The arguments of cargo that build what some trials need."""
    found = set()
    for trial in trials:
        package, target = trial.row.test.split("::")[:2] if trial.kind == "test" else (PROTOCOL, "interleavings")
        found.add((package, *(["--lib"] if target == "lib" else ["--test", target])))
    return sorted(found)


def build(work, folder, trials):
    """Builds what some trials need. Returns the programs by their names, those of tests with their packages."""
    built = {}
    for package, *targets in wanted_by(trials):
        try:
            built |= build_one(work, folder, package, *targets)
        except Refused as refused:
            sys.exit(str(refused))
    return built


def build_one(work, folder, package, *targets):
    """Builds some targets of a package. Returns the programs by their names."""
    programs = {}
    arguments = ["test", "--no-run", "--quiet", "--message-format=json", "-p", package, *targets, *speed_of(package)]
    command = ["cargo", *arguments, "--manifest-path", str(folder / "Cargo.toml")]
    # The crates are few and built one after the other, so that each needs both processors. Most trials are so short that
    # optimization across the units of a crate takes longer than it saves.
    environment = {"CARGO_PROFILE_TEST_CODEGEN_UNITS": "256", "CARGO_PROFILE_TEST_LTO": "off"} | os.environ | {"CARGO_TARGET_DIR": str(work / "build")}
    built = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    if built.returncode != 0:
        raise Refused(folder, built.stderr, messages, work / "build.txt")
    for message in messages:
        if message["reason"] == "compiler-artifact" and message.get("executable"):
            target, manifest = message["target"], Path(message["manifest_path"])
            name = "lib" if "lib" in target["kind"] else target["name"]
            name = f"{package}::{name}" if message["profile"]["test"] else name
            programs[name] = Program(message["executable"], str(manifest.parent))
    return programs


def speed_of(package):
    """The options that make both the compilation and its programs quick: most tests are over at once."""
    level = 2 if package == PROTOCOL else 0
    return [f"--config=profile.test.package.{each}.opt-level={level}" for each in ("leaderelection", PROTOCOL)]


class Refused(Exception):
    """What the compiler refuses, and the mutations in whose bodies that is."""

    def __init__(self, folder, words, messages, path):
        mistakes = [said for message in messages if (said := message.get("message") or {}).get("level") == "error"]
        places = {(span["file_name"], span["line_start"]) for said in mistakes for span in said["spans"] if span["is_primary"]}
        self.culprits = copies.culprits(folder, places)
        path.write_text(words + "".join(said["rendered"] for said in mistakes))
        errors = "\n".join(re.findall(r"^error.*\n(?: +-->.*\n)?", path.read_text(), re.M))
        names = ", ".join(sorted(self.culprits)) or "nobody knows which"
        super().__init__(f"{errors}\nthe source does not compile with a mutation, perhaps {names}; {path} says why")
