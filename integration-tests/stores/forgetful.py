"""A relay that loses the answer of every n-th write after the server has written, and closes the connection.

    forgetful.py PORT PORT_OF_THE_SERVER N
"""

import http.client
import itertools
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WRITES = itertools.count(1)


class Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        server = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=60)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "transfer-encoding"):
                server.putheader(name, value)
        server.endheaders(body)
        answer = server.getresponse()
        content = answer.read()
        server.close()
        if self.command == "PUT" and next(WRITES) % int(sys.argv[3]) == 0:
            self.close_connection = True
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("content-length") if self.command == "HEAD" else len(content)
        self.send_header("content-length", str(length or 0))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Relay).serve_forever()
