"""A copy of the source in which code is broken.

A program chooses the mutation when it runs: each function that mutations change has a body for each of them besides its own.
"""

import os
import re
import subprocess
from collections import defaultdict

from rows import ROOT, Source

# Which mutation a program runs with. Its number is read once.
CHOICE = "MUTATION"
# The file that gets the numbers of the mutations whose functions a program enters, if it runs without a mutation.
REACHED = "MUTATIONS_REACHED"
MODULE = f"""\
//! The choice of a mutation.

use std::fs::File;
use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{{AtomicBool, Ordering}};

static CHOSEN: LazyLock<Option<usize>> = LazyLock::new(|| std::env::var("{CHOICE}").ok()?.parse().ok());
static REACHED: [AtomicBool; 10_000] = [const {{ AtomicBool::new(false) }}; 10_000];

/// Returns `true` if the program runs with this mutation.
#[must_use]
pub fn is_chosen(number: usize) -> bool {{
    if CHOSEN.is_none() && !REACHED[number].swap(true, Ordering::Relaxed) {{
        tell(number);
    }}
    *CHOSEN == Some(number)
}}

fn tell(number: usize) {{
    let file = std::env::var_os("{REACHED}").and_then(|path| File::options().append(true).create(true).open(path).ok());
    if let Some(mut file) = file {{
        let _ = file.write_all(format!("{{number}}\\n").as_bytes());
    }}
}}

/// Returns an iterator of a type that many share.
pub fn boxed<'a, T, I: Iterator<Item = T> + Send + 'a>(iterator: I) -> Box<dyn Iterator<Item = T> + Send + 'a> {{
    Box::new(iterator)
}}
"""
# The crate that all others have below them, and the one by whose name most know it.
LOWEST = "protocol/src/lib.rs"
LIBRARY = "leaderelection/src/lib.rs"
# Nothing that shows a mutation needs it: a package without code that asks for the SDKs of all clouds, which would take longer to
# compile than everything else.
NEEDLESS = re.compile(r"^leaderelection-test-features\.workspace = true\n", re.M)


def write(folder, changed):
    """Makes `folder` a copy of the repository with other texts for some files. A file that is right is left alone."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    names = {name for name in os.fsdecode(listed.stdout).split("\0") if name and (ROOT / name).is_file()}
    for path in list(folder.rglob("*")):
        if path.is_file() and str(path.relative_to(folder)) not in names | changed.keys():
            path.unlink()
    for name in sorted(names | changed.keys()):
        path = folder / name
        content = changed[name].encode() if name in changed else (ROOT / name).read_bytes()
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def of_all(rows):
    """The files of the copy that has all these mutations, each with its number."""
    bodies = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(rows):
        for file, places in by_file(row.places()).items():
            for item in {place.item for place in places}:
                within = [place for place in places if place.item == item]
                bodies[file][item].append((number, row.name, changed(file, within, *item.body)))
    files = {file: with_bodies(file, items) for file, items in bodies.items()}
    own = {LOWEST: "leaderelection_protocol;\npub mod mutation;\n",
           LIBRARY: "leaderelection;\npub use leaderelection_protocol::mutation;\n"}
    for library, items in own.items():
        files[library] = (files.get(library) or (ROOT / library).read_text()) + f"\nextern crate self as {items}"
    files["protocol/src/mutation.rs"] = MODULE
    return files


def lean():
    """The manifests, without what is needless."""
    manifests = {path: path.read_text() for path in ROOT.glob("*/Cargo.toml")}
    return {str(path.relative_to(ROOT)): NEEDLESS.sub("", text) for path, text in manifests.items() if NEEDLESS.search(text)}


def with_bodies(file, items):
    text, grown = Source.of(file).text, []
    crate = "leaderelection_protocol" if file.startswith("protocol/") else "leaderelection"
    # From the end, so that the places before stay where they are.
    for item, bodies in sorted(items.items(), key=lambda entry: entry[0].start, reverse=True):
        start, end = item.body
        # A function inside of this one has made its body longer.
        end += sum(by for at, by in grown if at < end)
        before = len(text)
        choices = "".join(
            f" if ::{crate}::mutation::is_chosen({number}) {{ // mutation: {name}\n{typed(item, body)}\n}} else"
            for number, name, body in bodies
        )
        text = f"{text[:start]}{choices} {{ // no mutation\n{typed(item, text[start:end])}\n}}{text[end:]}"
        grown.append((start, len(text) - before))
    return text


def typed(item, body):
    """A body that has the type of all others, although the function does not name its own."""
    return f"::leaderelection::mutation::boxed::<{item.yields}, _>((move || {{{body}\n}})())" if item.yields else body


def by_file(places):
    files = defaultdict(list)
    for place in places:
        files[place.edit.file].append(place)
    return files


def changed(file, places, start, end):
    """A part of a file, with the new texts."""
    text = Source.of(file).text
    for place in sorted(places, key=lambda place: place.start, reverse=True):
        text = text[: place.start] + place.edit.new + text[place.end :]
        end += len(place.edit.new) - (place.end - place.start)
    return text[start:end]


def culprits(folder, places):
    """The mutations in whose bodies a compiler has found mistakes, of which it tells the files and lines."""
    found = set()
    for file, line in places:
        path = folder / file
        if path.is_file():
            before = path.read_text().splitlines()[:line]
            names = [name[1] for text in before if (name := re.search(r"// (?:mutation: (\S+)|no mutation)", text))]
            found |= set(names[-1:]) - {None}
    return found
