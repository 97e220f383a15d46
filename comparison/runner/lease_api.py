"""A server of Leases on S3, beside one candidate."""

import json
import os
import urllib.error
import urllib.request

from .process import Server, free_ports
from .seaweed import BUCKET


class LeaseApi:
    """A running `leaderelect lease-api`, whose way to S3 is a proxy."""

    def __init__(self, target, seaweed, s3, folder):
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        command = [target / "rust/release/leaderelect", "lease-api", "--store", f"s3://{BUCKET}/leases?endpoint={s3}",
                   "--listen", f"127.0.0.1:{port}", "--drain", "0s"]
        self.server = Server("lease-api", command, folder, {**os.environ, **seaweed.environment()})
        self.server.wait_until(lambda: self.request("GET", "/livez") == 200)

    def request(self, method, path, body=None):
        """The status of an answer."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, {"Content-Type": "application/json"}, method=method)
        try:
            return urllib.request.urlopen(request, timeout=10).status
        except urllib.error.HTTPError as error:
            return error.code

    def stop(self):
        self.server.stop()
