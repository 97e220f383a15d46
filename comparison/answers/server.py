"""What a server answers to a request, without what differs from server to server: versions, UIDs, times."""

import http.client
import json
import re
from urllib.parse import urlsplit

from . import cases

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
GENERATED = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
HEADERS = ("Content-Type", "Warning", "Allow")
PATIENCE = 60


class Server:
    """A server, at its URL and with the token of somebody who may do everything."""

    def __init__(self, url, token, context=None):
        self.url, self.token, self.context = urlsplit(url), token, context

    def play(self, name, steps):
        """The answers to the steps of a scenario."""
        memory = Memory(name)
        return [memory.take(self.send(*memory.filled(step))) for step in steps]

    def send(self, method, path, body, headers):
        make = http.client.HTTPSConnection if self.context else http.client.HTTPConnection
        connection = make(self.url.hostname, self.url.port, timeout=PATIENCE, **({"context": self.context} if self.context else {}))
        try:
            headers = {"Authorization": f"Bearer {self.token}"} | headers
            connection.request(method, path, None if body is None else body.encode(), headers)
            answer = connection.getresponse()
            return answer.status, {name: answer.getheader(name) for name in HEADERS}, answer.read().decode(errors="replace")
        finally:
            connection.close()


class Memory:
    """What the answers so far have shown, for the placeholders of later steps, and for the names in the place of what differs."""

    def __init__(self, scenario):
        # A name of its own for each scenario: nothing is left over from another one.
        self.lease = re.sub(r"[^a-z]+", "-", scenario.lower())
        self.version, self.list, self.uid, self.token = "1", "1", "", ""
        self.names = {}

    def filled(self, step):
        method, path, body, headers = step
        fill = lambda text: text and re.sub(r"\{(leases|lease\d*|list|version|uid|continue)\}", self.value, text)
        return method, fill(path).translate({ord(each): f"%{ord(each):X}" for each in " <>"}), fill(cases.text(body)), {name: fill(value) for name, value in headers.items()}

    def value(self, match):
        name = match[1]
        values = {"leases": f"{cases.API}/namespaces/default/leases", "version": self.version, "list": self.list, "uid": self.uid, "continue": self.token}
        return values[name] if name in values else f"{self.lease}{name.removeprefix('lease')}"

    def take(self, answer):
        status, headers, body = answer
        is_watch = body.startswith(('{"type"', '{"object"'))
        documents = [read(each) for each in body.splitlines()] if is_watch else [read(body)]
        for each in documents:
            self.learn(each.get("object", each) if isinstance(each, dict) else None)
        shown = documents[0] if len(documents) == 1 else documents
        return {"status": status, "headers": headers, "body": self.shown(shown)}

    def learn(self, document):
        if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
            return
        metadata = document["metadata"]
        self.token = metadata.get("continue") or self.token
        if document.get("kind") == "LeaseList":
            self.list = metadata.get("resourceVersion") or self.list
        if document.get("kind") == "Lease":
            self.version, self.uid = metadata.get("resourceVersion") or self.version, metadata.get("uid") or self.uid

    def shown(self, value, key=None):
        if isinstance(value, dict):
            is_list = str(value.get("kind", "")).endswith("List") or value.get("kind") == "Table"
            if is_list and isinstance(value.get("metadata"), dict) and value["metadata"].get("resourceVersion"):
                # It has no number: that of one server is a version of a Lease too.
                rest = value["metadata"] | {"resourceVersion": ""}
                return self.shown(value | {"metadata": rest}, key) | {"metadata": self.shown(rest) | {"resourceVersion": "VERSION OF A LIST"}}
            return {name: self.shown(each, name) for name, each in value.items()}
        if isinstance(value, list):
            # The last cell of a row is the age of a Lease.
            return [self.shown(each, "age" if key == "cells" and each is value[-1] else None) for each in value]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion" and value:
            return self.named(value, "VERSION")
        if key == "age":
            return "AGE"
        if key == "continue":
            return "CONTINUE" if value else value
        if key in ("creationTimestamp", "time", "deletionTimestamp"):
            return TIME.sub("TIME", value)
        value = UID.sub(lambda match: self.named(match[0], "UID"), value)
        value = GENERATED.sub("GENERATED", value) if value.startswith(self.lease) else value
        return re.sub(rf"\b{re.escape(self.version)}\b", lambda match: self.named(match[0], "VERSION"), value) if len(self.version) > 2 else value

    def named(self, value, kind):
        count = sum(1 for each in self.names.values() if each.startswith(kind))
        return self.names.setdefault(value, f"{kind} {count + 1}")


def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return text
