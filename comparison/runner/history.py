"""The history of a fleet's lock, in the form that integration-tests/porcupine judges: what each candidate asked, and was told.

A value is the version that the server gave it. The proxy sees the server's answer also where the candidate does not get it, so that the
value of a write without an answer is known.
"""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

JUDGE = Path(__file__).resolve().parents[2] / "integration-tests/porcupine"
LEASES = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/[^/]+/leases(?:/([^/?]+))?")
# What the server has refused because of a condition, and what it has not carried out for any other reason.
CONFLICTS, FAILURES = {409, 412}, range(400, 500)


class Unconditional(Exception):
    """A write without a condition, which no register with compare-and-swap has."""


class History:
    """The events of all candidates of one election, a line for each."""

    def __init__(self, path):
        self.path, self.calls = path, 0
        # The reason for which there will be no verdict.
        self.unfit = None
        self.file = open(path, "a", encoding="utf-8", buffering=1)

    def begin(self, process, request):
        """The call that a request is. None if it is about no object, or if there will be no verdict."""
        try:
            question = None if self.unfit else ask(request)
        except Unconditional as reason:
            self.unfit, question = str(reason), None
        self.calls += 1
        return question and Call(self, {"process": process, "call": self.calls}, question)

    def write(self, event):
        # What ends with the processes says nothing.
        if not self.file.closed:
            self.file.write(json.dumps(event) + "\n")

    def close(self):
        self.file.close()

    def verdict(self):
        """What the judge says, or why there is no verdict; and whether some order of the calls explains the answers."""
        if self.unfit or not shutil.which("go"):
            return f"not judged: {self.unfit or 'Go is not installed'}", True
        with open(self.path, encoding="utf-8") as events:
            judged = subprocess.run(["go", "run", "-C", JUDGE, "."], stdin=events, capture_output=True, text=True)
        return (judged.stdout + judged.stderr).strip().replace("\n", "; "), judged.returncode == 0


def refused(histories):
    """The names of histories that no order of the calls explains. The judge needs the processors, so no trial goes on beside it."""
    verdicts = [(history.path.parent.name, *history.verdict()) for history in histories]
    for name, words, _ in verdicts:
        print(f"history of {name}: {words}", flush=True)
    return [name for name, _, is_good in verdicts if not is_good]


class Call:
    """A call under way. It is written when the server has answered, because a write's value is known then."""

    def __init__(self, history, name, question):
        self.history, self.name, self.question, self.at = history, name, question, time.monotonic_ns()
        self.kind, self.value = "info", None

    def answered(self, answer):
        """Notes what the server did, whether or not the candidate hears of it."""
        status, is_read = int(answer.first.split(b" ")[1]), self.question["operation"] == "read"
        if 200 <= status < 300:
            self.kind, self.value = "ok", version(answer)
        elif is_read and status == 404:
            self.kind = "ok"
        elif status in CONFLICTS:
            self.kind = "conflict"
        elif status in FAILURES:
            self.kind = "fail"
        new = {} if is_read else {"new": self.value}
        self.history.write({**self.name, "at": self.at, "type": "invoke", **self.question, **new})

    def told(self):
        """Notes that the candidate gets the answer."""
        self.history.write({**self.name, "at": time.monotonic_ns(), "type": self.kind, "value": self.value})


def ask(request):
    """The question of a request about one object, or None."""
    method, target = request.first.decode("latin-1").split(" ")[:2]
    path = target.split("?")[0]
    if lease := LEASES.fullmatch(path):
        return ask_lease(method, lease[1], request)
    if "?list-type" in target or path.count("/") < 2 or method not in ("GET", "PUT", "DELETE"):
        return None
    question = {"object": path, "operation": "read" if method == "GET" else "write"}
    if method == "GET":
        return question
    expected = request.header(b"if-match").decode().strip('"') or None
    if expected is None and request.header(b"if-none-match") != b"*":
        raise Unconditional(f"{method} {path} has no condition")
    return {**question, "expected": expected}


def ask_lease(method, name, request):
    if method == "GET" and name:
        return {"object": name, "operation": "read"}
    if method == "GET":
        return None
    try:
        metadata = json.loads(request.body)["metadata"]
    except (ValueError, KeyError, TypeError):
        raise Unconditional(f"the {method} of a Lease is not in JSON") from None
    expected = metadata.get("resourceVersion")
    if method == "POST" and not name:
        return {"object": metadata["name"], "operation": "write", "expected": None}
    if method != "PUT" or not expected:
        raise Unconditional(f"{method} {name} has no condition")
    return {"object": name, "operation": "write", "expected": expected}


def version(answer):
    """The version that an answer names; None after a deletion."""
    if etag := answer.header(b"etag"):
        return etag.decode().strip('"')
    try:
        return plain(answer)["metadata"]["resourceVersion"]
    except (ValueError, KeyError, TypeError):
        return None


def plain(answer):
    body = answer.body
    if b"chunked" in answer.header(b"transfer-encoding").lower():
        parts = []
        while size := int((head := body.split(b"\r\n", 1))[0].split(b";")[0], 16):
            parts.append(head[1][:size])
            body = head[1][size + 2 :]
        body = b"".join(parts)
    return json.loads(body)
