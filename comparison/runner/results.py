"""The raw numbers as CSV files. The files are the state of a run: a row that is there is not measured again."""

import csv
import json
from contextlib import contextmanager
from datetime import date
from pathlib import Path

TRIALS = ["contestant", "fault", "trial", "lease_ms", "takeover_ms", "since_renewal_ms", "pause_ms", "wrong", "overlap_ms",
          "changes", "from", "to"]
IDLE = ["contestant", "role", "seconds", "writes", "reads", "lists", "cpu_ms", "rss_kib"]
KEYS = {"trials": ("contestant", "fault", "trial"), "idle": ("contestant", "role")}


class Table:
    """A CSV file whose rows are added one by one, each in one write."""

    def __init__(self, folder, name, columns):
        self.path, self.columns, self.key = Path(folder) / f"{name}.csv", columns, KEYS[name]
        self.rows = self.load()

    def load(self):
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(",".join(self.columns) + "\n")
            return []
        text = self.path.read_text()
        # The last row of a run that was killed may be a part of one.
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole)
        rows = list(csv.DictReader(whole.splitlines()))
        if rows and list(rows[0]) != self.columns:
            raise RuntimeError(f"{self.path} has other columns; remove it to measure anew")
        return rows

    def has(self, *key):
        return any(all(row[name] == str(value) for name, value in zip(self.key, key)) for row in self.rows)

    def add(self, *rows):
        """Adds rows that belong together."""
        rows = [{name: "" if row.get(name) is None else str(row[name]) for name in self.columns} for row in rows]
        with open(self.path, "a", newline="") as file:
            file.write("".join(",".join(row[name] for name in self.columns) + "\n" for row in rows))
        self.rows += rows

    def of(self, contestant, *rest):
        return [row for row in self.rows
                if row["contestant"] == contestant and all(row[name] == value for name, value in zip(self.key[1:], rest))]


class Facts:
    """What the page says of the run itself. `older` is written by hand, where a change since then makes figures old."""

    def __init__(self, folder):
        self.path = Path(folder) / "facts.json"
        self.values = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.values = {"skipped": {}, "builds": {}, "phases": {}} | self.values

    def save(self):
        self.path.write_text(json.dumps(self.values, indent=1, sort_keys=True) + "\n")

    def set_skipped(self, contestant, reason):
        self.values["skipped"].pop(contestant, None)
        if reason:
            self.values["skipped"][contestant] = reason
        self.save()

    def set_conditions(self, conditions):
        """What the rows depend on. Rows of other conditions are not mixed in."""
        known = self.values.setdefault("conditions", conditions)
        if different := sorted(name for name in conditions.keys() | known.keys() if conditions.get(name) != known.get(name)):
            raise RuntimeError(f"other rows in {self.path.parent} had another {', '.join(different)}; remove it to measure anew")
        self.values["measured"] = date.today().strftime("%-d %B %Y")
        self.save()

    def add_builds(self, seconds):
        """The longest build counts, because later ones find the cache."""
        for name, value in seconds.items():
            self.values["builds"][name] = round(max(value, self.values["builds"].get(name, 0)))
        self.save()

    @contextmanager
    def phase(self, name, busy):
        """Notes the time of a part of the run, also of one that is ended."""
        try:
            yield
        finally:
            self.add_phase(name, busy)

    def add_phase(self, name, busy):
        """A run that goes on adds to the time of the one that was ended, and its share counts by its time."""
        if busy.seconds() < 5:
            return
        phase = self.values["phases"].get(name, {"seconds": 0, "busy": 0})
        seconds = phase["seconds"] + busy.seconds()
        share = (phase["busy"] * phase["seconds"] + busy.share() * busy.seconds()) / seconds
        self.values["phases"][name] = {"seconds": round(seconds), "busy": round(share, 3)}
        self.save()
