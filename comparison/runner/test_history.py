"""Tests of the histories. The judge's part is skipped without Go.

    python3 -m unittest discover -s comparison -p 'test_*.py'
"""

import asyncio
import functools
import json
import tempfile
import unittest
from pathlib import Path

from runner import history
from runner.history import History
from runner.proxy import Message, Proxy


def message(first, *headers, body=b""):
    return Message(first, [b"%s: %s\r\n" % header for header in headers], body)


GET = message(b"GET /bucket/lock HTTP/1.1\r\n")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def put(expected=None):
    condition = (b"If-Match", b'"%s"' % expected) if expected else (b"If-None-Match", b"*")
    return message(b"PUT /bucket/lock HTTP/1.1\r\n", condition)


def answer(status, *headers, body=b""):
    return message(b"HTTP/1.1 %d x\r\n" % status, *headers, body=body)


def wrote(etag):
    return answer(200, (b"ETag", b'"%s"' % etag))


class Histories(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.history = History(Path(folder.name) / "history")
        self.addCleanup(self.history.close)

    def call(self, process, request, said, is_told=True):
        call = self.history.begin(process, request)
        call.answered(said)
        if is_told:
            call.told()

    def events(self):
        return [json.loads(line) for line in self.history.path.read_text().splitlines()]

    def is_explained(self):
        words, is_good = self.history.verdict()
        if words.endswith("Go is not installed"):
            self.skipTest(words)
        return is_good

    def test_a_write_whose_answer_is_lost_has_a_value_and_no_end(self):
        self.call(1, put(), wrote(b"a"), is_told=False)
        [begun] = self.events()
        self.assertEqual([begun[each] for each in ("process", "type", "object", "expected", "new")], [1, "invoke", "/bucket/lock", None, "a"])

    def test_calls_one_after_another_are_explained(self):
        self.call(1, GET, answer(404))
        self.call(1, put(), wrote(b"a"), is_told=False)
        self.call(2, GET, wrote(b"a"))
        self.call(2, put(b"a"), wrote(b"b"))
        self.call(1, put(b"a"), answer(412))
        self.assertEqual([each.get("type") for each in self.events()].count("conflict"), 1)
        self.assertTrue(self.is_explained())

    def test_two_that_replace_one_version_are_refused(self):
        self.call(1, put(), wrote(b"a"))
        self.call(1, put(b"a"), wrote(b"b"))
        self.call(2, put(b"a"), wrote(b"c"))
        self.assertFalse(self.is_explained())
        self.assertEqual(history.refused([self.history]), [self.history.path.parent.name])

    def test_versions_of_leases_are_those_of_their_metadata(self):
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body := b'{"metadata":{"resourceVersion":"8"}}'), body)
        renew = message(b"PUT %s/lock HTTP/1.1\r\n" % LEASE.encode(), body=b'{"metadata":{"resourceVersion":"7"}}')
        self.call(1, renew, answer(200, (b"Transfer-Encoding", b"chunked"), body=chunked))
        self.assertEqual([self.events()[0][each] for each in ("object", "expected", "new")], ["lock", "7", "8"])

    def test_writes_without_a_condition_are_not_judged(self):
        self.call(1, GET, answer(404))
        self.assertIsNone(self.history.begin(1, message(b"PATCH %s/lock HTTP/1.1\r\n" % LEASE.encode(), body=b'{"metadata":{}}')))
        self.assertEqual(self.history.verdict(), ("not judged: PATCH lock has no condition", True))

    def test_listings_are_no_calls_about_one_object(self):
        for target in (b"/bucket?list-type=2", LEASE.encode()):
            self.assertIsNone(self.history.begin(1, message(b"GET %s HTTP/1.1\r\n" % target)))

    def test_the_proxy_notes_what_passes(self):
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 0\r\n\r\n')

        async def run():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            proxy = await Proxy(url, 0, begin=functools.partial(self.history.begin, 7)).start()
            reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))
            writer.write(b"GET /bucket/lock HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()
            await proxy.stop()
            server.close()

        asyncio.run(asyncio.wait_for(run(), 30))
        self.assertEqual([(each["process"], each["type"], each.get("value")) for each in self.events()], [(7, "invoke", None), (7, "ok", "a")])


if __name__ == "__main__":
    unittest.main()
