"""The log of an election: what its candidates wrote, and which entries a leader wrote outside its right."""

from typing import NamedTuple

NANOS = 1_000_000_000


class Entry(NamedTuple):
    """A line of the log. The moment is the machine's monotonic clock, in nanoseconds."""

    at: int
    identity: str
    token: str
    event: str


class Wrong(NamedTuple):
    """An entry of a leader that another had followed, and the moment at which that other one began."""

    entry: Entry
    since: int


def parse(line):
    """The entry of a line. A process that is killed may leave a part of one."""
    parts = line.split(" ")
    if len(parts) != 4 or not parts[0].isdigit():
        return None
    return Entry(int(parts[0]), *parts[1:])


def is_work(entry):
    return entry.event in ("start", "work")


def wrong_entries(entries):
    """The entries that a candidate wrote after another one had begun a later term.

    The order is that of the file, which is the order of the writes: a process that was frozen between its look at the clock and
    its write has written late. Of two terms, the later one is the one that began later.
    """
    wrong, began, last = [], {}, None
    for place, entry in enumerate(filter(is_work, entries)):
        if entry.event == "start":
            began[entry.identity] = last = place, entry.at
        elif last and began.get(entry.identity, last) < last:
            own = began[entry.identity]
            wrong.append(Wrong(entry, min(each for each in began.values() if each > own)[1]))
    return wrong


def longest_pause(entries, since, until):
    """The longest time within these bounds in which nobody worked, in nanoseconds."""
    moments = sorted(entry.at for entry in entries if is_work(entry))
    before = [at for at in moments if at < since]
    inside = [at for at in moments if since <= at <= until]
    marks = [before[-1] if before else since, *inside, until]
    return max(later - earlier for earlier, later in zip(marks, marks[1:]))


def next_leader(entries, leader, since):
    """The first beginning of another candidate's term after a moment."""
    begun = [entry for entry in entries if entry.event == "start" and entry.identity != leader and entry.at > since]
    return min(begun, default=None)


def changes(entries, since, until):
    """The number of terms that began within these bounds."""
    return sum(entry.event == "start" and since <= entry.at <= until for entry in entries)


class Log:
    """The file that all candidates of an election append to, read as it grows."""

    def __init__(self, path):
        self.path, self.entries = path, []
        # What the runner asks for many times a second.
        self.starts, self.ready, self.last_work = [], {}, {}
        path.touch()
        self.file, self.rest = open(path, encoding="ascii"), ""

    def read(self):
        """Reads what is new, and returns all entries so far."""
        text = self.rest + self.file.read()
        *lines, self.rest = text.split("\n")
        for entry in filter(None, map(parse, lines)):
            self.entries.append(entry)
            if entry.event == "start":
                self.starts.append(entry)
            if entry.event == "ready":
                self.ready[entry.identity] = entry.at
            if is_work(entry):
                self.last_work[entry.identity] = entry.at
        return self.entries

    def last_workers(self):
        """All candidates, the one that worked last first."""
        return sorted(self.last_work, key=self.last_work.get, reverse=True)

    def forget(self, before):
        """Drops entries that no question is about any more. The last beginning of every candidate's term stays."""
        latest = {entry.identity: entry for entry in self.starts}
        self.entries = [entry for entry in self.entries if entry.at >= before or entry is latest.get(entry.identity)]
        self.starts = [entry for entry in self.entries if entry.event == "start"]

    def close(self):
        self.file.close()
