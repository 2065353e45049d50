# SPDX-License-Identifier: Apache-2.0
"""The sidecar of a sandbox: GET /health and POST /exec, whose answer is a line of JSON for each event."""
import codecs
import json
import threading

import platform_check as check
from platform_faults import PLAIN, Answer
from platform_http import Deviation, Gone, Late, Listener, Response, error, read_request

DRAIN_SECONDS = 1.0
BAD_LINES = ("", "not json", "[]", '{"type":"stdout"}', '{"type":"stdout","data":7}', '{"type":"note"}',
             '{"data":"no type"}', '{"type":"exit"}', '{"type":"exit","code":"0"}', "null")


class Lines:
    """The answer of one exec: written by two threads, ended by a third."""

    def __init__(self, stream, fault):
        self.stream, self.fault = stream, fault
        self.params = fault.params if fault else {}
        self.lock = threading.Lock()
        self.sent = 0
        self.lost = self.ended = False

    def has(self, name):
        return self.fault is not None and self.fault.fault == name

    def write(self, value, end="\n"):
        line = (value if isinstance(value, str) else json.dumps(value)) + end
        data = line.encode()
        try:
            self.stream.send(b"%x\r\n%s\r\n" % (len(data), data) if data else b"")
        except (Gone, Late):
            self.lost = True

    def output(self, name, text):
        with self.lock:
            if self.lost or self.ended or not text:
                return
            self.sent += len(text)
            if self.has("sidecar_bad_lines"):
                for line in BAD_LINES:
                    self.write(line)
            self.write({"type": name, "data": text})
            if self.has("sidecar_drop") and self.sent >= self.params.get("bytes", 1):
                self.lost = True

    def exit(self, code):
        with self.lock:
            self.ended = True
            if self.lost or self.has("sidecar_drop"):
                self.lost = True
                return
            if not self.has("sidecar_no_exit"):
                self.write({"type": "exit", "code": code},
                           "" if self.has("sidecar_no_newline") else "\n")
            if not self.lost:
                self.stream.send(b"0\r\n\r\n")


def pump(process, stream, name, lines):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := process.read(stream):
        lines.output(name, decoder.decode(data))
    lines.output(name, decoder.decode(b"", True))


class Sidecar:
    def __init__(self, server, sandbox):
        self.server, self.sandbox = server, sandbox
        self.listener = Listener(0, self.connection)
        self.port = self.listener.port

    def close(self):
        self.listener.close()

    def connection(self, stream):
        while True:
            try:
                request = read_request(stream)
                schema = self.wanted(request)
            except Deviation as deviation:
                self.server.journal.violation("sidecar", str(deviation))
                stream.send(error(400, str(deviation)).encode(close=True))
                return
            request.fault = self.server.faults.take(f"{request.method} {request.target}")
            name = request.fault.fault if request.fault else None
            if name in PLAIN:
                self.server.journal.request(f"fault:{name}", request.method, request.path)
                base = f"http://127.0.0.1:{self.port}"
                answer = Answer(stream, request, lambda: Response(200, {"ok": True}), base)
                if not PLAIN[name](answer):
                    return
                continue
            self.server.journal.request(200, request.method, request.path)
            if schema is None:
                stream.send(Response(200, {"ok": True}).encode())
            elif not self.exec(stream, request):
                return

    def wanted(self, request):
        """The body that belongs to the request; the request is right in every respect."""
        check.hosts(request, self.port)
        if (request.method, request.target) == ("GET", "/health"):
            if request.body or request.header("content-type"):
                raise Deviation("GET /health has a body")
            return None
        if (request.method, request.target) != ("POST", "/exec"):
            raise Deviation(f"no such route: {request.method} {request.target}")
        if (request.header("content-type") or "").lower() != "application/json":
            raise Deviation("the content-type is not application/json")
        request.value = check.parse(request.body)
        check.EXEC(request.value, "body")
        return check.EXEC

    def exec(self, stream, request):
        value = request.value
        number = self.server.journal.command(value["command"])
        process = self.sandbox.start(value["command"], value.get("cwd"), value.get("env"))
        if process is None:
            return False
        process.feed(None)
        lines = Lines(stream, request.fault)
        response = Response(200, headers=[("Transfer-Encoding", "chunked")])
        response.content_type = "application/x-ndjson"
        stream.send(response.head(None))
        pumps = [threading.Thread(target=pump, args=(process, source, name, lines), daemon=True)
                 for source, name in ((process.child.stdout, "stdout"), (process.child.stderr, "stderr"))]
        for one in pumps:
            one.start()
        while not process.ended.wait(0.05):
            if lines.lost or stream.peer_left():
                break
        if not process.ended.is_set():
            if not lines.has("sidecar_drop"):
                process.kill()
            self.server.journal.closed(number, "dropped")
            return False
        for one in pumps:
            one.join(DRAIN_SECONDS)
        lines.exit(process.code)
        self.server.journal.closed(number, "dropped" if lines.lost else "closed")
        return not lines.lost
