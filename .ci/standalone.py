"""Packages of the workspace as packages of their own: each manifest has all that it takes from the workspace."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def packages():
    metadata = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version=1"))
    return {each["name"]: each for each in metadata["packages"]}


def published():
    return [line.split()[0] for line in run(".ci/published").splitlines()]


def dependencies(package):
    """What a user of the package builds."""
    return [each for each in package["dependencies"] if each["kind"] is None]


def own_tree(names, known):
    """The packages of this workspace that these are built from, themselves included."""
    found, open_ends = set(), set(names)
    while open_ends:
        found |= open_ends
        needed = {each["name"] for name in open_ends for each in dependencies(known[name])}
        open_ends = (needed & known.keys()) - found
    return sorted(found)


def manifest(name, needed, features=None, target="", inner=()):
    """The text of a manifest. `target` is the table of the library or the program, if it is not at its usual place. The packages `inner`
    are folders beside the manifest."""
    lines = ["[package]", f'name = "{name}"', 'version = "0.1.0"', 'edition = "2024"', "", target, "", "[features]"]
    lines += [f"{feature} = {json.dumps(enabled)}" for feature, enabled in (features or {}).items()]
    for place in sorted({each["target"] or "" for each in needed}):
        lines += ["", f"[target.'{place}'.dependencies]" if place else "[dependencies]"]
        lines += [f"{each['name']} = {{ {', '.join(options(each, inner))} }}" for each in needed if (each["target"] or "") == place]
    return "\n".join(lines) + "\n"


def options(dependency, inner):
    name = dependency["name"]
    yield f'path = "{name}"' if name in inner else f'version = "{dependency["req"]}"'
    if not dependency["uses_default_features"]:
        yield "default-features = false"
    if dependency["optional"]:
        yield "optional = true"
    if dependency["features"]:
        yield f"features = {json.dumps(dependency['features'])}"


def workspace(folder, members, here):
    """Makes the members in this folder a workspace that takes the packages `here`, each with its folder, instead of published ones."""
    patches = [f'{name} = {{ path = "{path}" }}' for name, path in here.items()]
    text = ["[workspace]", 'resolver = "3"', f"members = {json.dumps(sorted(members))}", "", "[patch.crates-io]", *patches]
    (folder / "Cargo.toml").write_text("\n".join(text) + "\n")
