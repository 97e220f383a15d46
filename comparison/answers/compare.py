"""The differences between two answers, and those that are accepted, each by its name."""

import re
from dataclasses import dataclass

MISSING = "(missing)"


@dataclass
class Accepted:
    """A difference with a name and a reason. The patterns are searched for in the names of scenarios, in requests (method, path, body and
    headers), and in values; that of a place fits a whole leaf."""

    name: str
    why: str
    place: str
    scenario: str = ""
    theirs: str = ""
    ours: str = ""
    request: str = ""

    def fits(self, scenario, leaf, request=""):
        place, theirs, ours = leaf
        return all((
            re.search(self.scenario, scenario), re.search(self.request, request, re.S), re.fullmatch(self.place, place),
            re.search(self.theirs, str(theirs), re.S), re.search(self.ours, str(ours), re.S),
        ))


def leaves(theirs, ours, place=""):
    """Every place in which two answers differ, with both values."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from leaves(theirs.get(key, MISSING), ours.get(key, MISSING), f"{place}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        for index in range(max(len(theirs), len(ours))):
            get = lambda values: values[index] if index < len(values) else MISSING
            yield from leaves(get(theirs), get(ours), f"{place}/{index}")
    elif theirs != ours:
        yield place, theirs, ours


def outcome(answer):
    """An answer in a line."""
    body = answer["body"] if isinstance(answer["body"], dict) else {}
    return " ".join(str(each) for each in (answer["status"], body.get("reason", ""), body.get("message", "")) if each != "")


def differences(theirs, ours):
    """The leaves. If the outcomes are not the same, everything differs, and the outcome says it all."""
    if theirs["status"] != ours["status"]:
        return [("/status", outcome(theirs), outcome(ours))]
    return leaves(theirs, ours)


def compare(scenario, theirs, ours, accepted, request=""):
    """The differences of one answer that nobody accepts, and the names of those that are accepted."""
    unknown, names = [], set()
    for leaf in differences(theirs, ours):
        fitting = [each.name for each in accepted if each.fits(scenario, leaf, request)]
        names.update(fitting)
        if not fitting:
            unknown.append(leaf)
    return unknown, names


WRONG = ((200, ""), (201, ""), (400, "BadRequest"), (401, "Unauthorized"), (403, "Forbidden"), (404, "NotFound"), (406, "NotAcceptable"),
         (409, "AlreadyExists"), (409, "Conflict"), (410, "Expired"), (413, ""), (422, "Invalid"), (500, ""))


def hidden(scenario, right, accepted, request=""):
    """The statuses that would be wrong in the place of a right one, and that somebody accepts."""
    for status, reason in WRONG:
        wrong = {"status": status, "headers": {}, "body": {"reason": reason}}
        if status != right["status"] and not compare(scenario, right, wrong, accepted, request)[0]:
            yield status
