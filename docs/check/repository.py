"""The files of the repository, and the tables of its pages."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def files(pattern):
    """The files of the repository with such a name, wherever they lie."""
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in listed.splitlines() if not (path := ROOT / name).is_symlink()]


def table(page, heading):
    """The rows of the first table under a heading."""
    section = page.read_text().split(f"\n{heading}\n", 1)[1]
    rows = re.search(r"(?:^\|.*\n)+", section, re.M)[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))] for row in rows]
