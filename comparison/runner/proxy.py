"""One candidate's way to its server: an HTTP/1.1 proxy that adds a region's latency, counts, goes silent, and loses answers."""

import asyncio
import time
from collections import Counter
from urllib.parse import urlsplit

WRITES = {"PUT", "POST", "PATCH", "DELETE"}
LIMIT = 1 << 20


class Message:
    """A request or an answer: the first line, the headers as they were sent, and the body."""

    def __init__(self, first, headers, body):
        self.first, self.headers, self.body = first, headers, body

    def header(self, name):
        for each in self.headers:
            key, _, value = each.partition(b":")
            if key.strip().lower() == name:
                return value.strip()
        return b""

    def to_bytes(self):
        return b"".join([self.first, *self.headers, b"\r\n", self.body])


async def read_head(reader):
    first = await reader.readline()
    if not first:
        return None
    headers = []
    while (line := await reader.readline()) not in (b"\r\n", b"\n"):
        if not line:
            raise ConnectionError("the connection ended in the middle of a message")
        headers.append(line)
    return Message(first, headers, b"")


async def read_body(reader, message, to_the_end):
    if b"chunked" in message.header(b"transfer-encoding").lower():
        parts = []
        while True:
            line = await reader.readline()
            size = int(line.split(b";")[0], 16)
            parts += [line, await reader.readexactly(size + 2) if size else await reader.readline()]
            if not size:
                return b"".join(parts)
    if length := message.header(b"content-length"):
        return await reader.readexactly(int(length))
    return await reader.read() if to_the_end else b""


def kind(method, target):
    """What a request is priced as."""
    if method in WRITES:
        return "write"
    return "list" if "list-type=" in target else "read"


class Proxy:
    """A proxy on a port of its own."""

    def __init__(self, upstream, latency, context=None, token=None, begin=lambda request: None):
        self.upstream, self.latency, self.context = urlsplit(upstream), latency, context
        # Begins a call of the history.
        self.begin = begin
        # The proxy speaks for the candidate, because not every client sends a token over plain HTTP.
        self.headers = [f"Authorization: Bearer {token}\r\n".encode()] if token else []
        self.loses_answers = False
        # Set while the proxy is silent, and done when the silence ends. The requests that wait for that are counted.
        self.silence, self.waiting = None, 0
        self.counts = Counter()
        # The moment at which the last write that the server accepted had arrived here.
        self.last_write = None
        self.serving = set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=LIMIT)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def stop(self):
        self.server.close()
        for each in self.serving:
            each.cancel()
        await asyncio.gather(*self.serving)

    def go_silent(self):
        """From now on, nothing that the candidate sends is answered, and nothing reaches the server."""
        self.silence = asyncio.Event()

    def heal(self):
        """The connections that got no answer never will."""
        if self.silence:
            self.silence.set()
            self.silence = None
        self.loses_answers = False

    async def serve(self, reader, writer):
        self.serving.add(task := asyncio.current_task())
        upstream = None
        try:
            while (request := await read_head(reader)) is not None:
                if request.header(b"expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    request.headers = [each for each in request.headers if not each.lower().startswith(b"expect:")]
                request.body = await read_body(reader, request, to_the_end=False)
                if upstream is None:
                    upstream = await self.connect()
                answer = await self.carry(request, upstream)
                if answer is None:
                    break
                writer.write(answer.to_bytes())
                await writer.drain()
                if b"close" in answer.header(b"connection").lower() or b"close" in request.header(b"connection").lower():
                    break
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The connection ends, as it does with the proxy.
            pass
        finally:
            self.serving.discard(task)
            writer.transport.abort()
            if upstream:
                upstream[1].transport.abort()

    async def connect(self):
        return await asyncio.open_connection(
            self.upstream.hostname, self.upstream.port, ssl=self.context, limit=LIMIT,
            server_hostname=self.upstream.hostname if self.context else None,
        )

    async def carry(self, request, upstream):
        """The server's answer; None if the candidate gets none."""
        arrived = time.monotonic_ns()
        method, target = request.first.decode("latin-1").split(" ")[:2]
        call = self.begin(request)
        await self.pause()
        self.counts[kind(method, target)] += 1
        reader, writer = upstream
        if self.headers:
            request.headers = [each for each in request.headers if not each.lower().startswith(b"authorization:")] + self.headers
        writer.write(request.to_bytes())
        await writer.drain()
        answer = await read_head(reader)
        if answer is None:
            raise ConnectionError("the server closed the connection")
        status = int(answer.first.split(b" ")[1])
        has_body = method != "HEAD" and status not in (204, 304)
        answer.body = await read_body(reader, answer, to_the_end=True) if has_body else b""
        if call:
            call.answered(answer)
        if method in WRITES and 200 <= status < 300:
            self.last_write = arrived
        # The way back may be gone by now, too.
        await self.pause()
        if method in WRITES and self.loses_answers:
            return None
        if call:
            call.told()
        return answer

    async def pause(self):
        """Half of a round trip. Whatever meets silence on its way is lost, and its connection ends with the silence."""
        await asyncio.sleep(self.latency / 2)
        if self.silence:
            self.waiting += 1
            await self.silence.wait()
            self.waiting -= 1
            raise ConnectionError("lost in silence")
