# SPDX-License-Identifier: Apache-2.0
"""A strict HTTP/1.1 server on raw sockets, for stand-ins that judge a client.

A stand-in gives it an application with these members:

    plan(request)              checks a request and returns what carries it out, a function of the
                               connection; raises Violation, with an answer, when the request is wrong
    fault_body(request, code)  bytes and content type of an answer made up for a status
    control(connection, request)   answers a request for /__test/..., which is nobody's business
    faults_of_its_own          {name: function(connection, request, rule)}: answered instead
    faults_in_streams          names it looks for in connection.faults by itself

It knows keep-alive, chunked bodies, Expect, TLS and, through standin_faults, how to misbehave.
"""
import email.utils
import http
import json
import re
import socket
import ssl
import struct
import tempfile
import threading
import time
import urllib.parse

import standin_faults

HEAD_LIMIT = 65536
BODY_LIMIT = 4 << 30
JSON_LIMIT = 64 << 20
KEEP_ALIVE = 640
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
REQUEST_LINE = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.1")
ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Violation(Exception):
    """The client did what it must not; body and type are the answer."""

    def __init__(self, text, status=400, body=None, content_type="application/json"):
        super().__init__(text)
        self.status = status
        self.body = body if body is not None else json.dumps({"code": status, "message": text}).encode()
        self.content_type = content_type


class Malformed(Exception):
    """Not HTTP as it should be: answered with 400, and nothing more is read."""


class Dropped(Exception):
    """The connection is at its end: reset, cut or closed by the client."""

    def __init__(self, how="closed"):
        super().__init__(how)
        self.how = how


class Request:
    def __init__(self, method, target, headers):
        self.method = method
        self.target = target
        self.headers = headers
        self.path, _, self.query_text = target.partition("?")
        self.file = None
        self.length = 0

    def all(self, name):
        return [value for key, value in self.headers if key == name]

    def header(self, name):
        values = self.all(name)
        return values[0] if values else None

    def query(self):
        """Pairs, decoded once."""
        return urllib.parse.parse_qsl(self.query_text, keep_blank_values=True, errors="strict")

    def body(self):
        self.file.seek(0)
        return self.file.read(JSON_LIMIT)


class Answer:
    """An answer that has begun: write its body, then finish."""

    def __init__(self, connection, status, headers, length):
        self.connection = connection
        faults = connection.faults
        self.shaper = standin_faults.Shaper(faults)
        self.chunked = length is None
        lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase if status in REASONS else 'Status'}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if "eof_framing" in faults:
            self.chunked = False
            connection.keep = False
        elif self.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif status not in (204, 304):
            more = faults["bad_length"].get("more", 10) if "bad_length" in faults else 0
            lines.append(f"Content-Length: {length + more}")
            connection.keep &= more == 0
        lines.append(f"Date: {email.utils.formatdate(usegmt=True)}")
        if connection.keep or "close_after" in faults:
            lines += ["Connection: keep-alive", f"Keep-Alive: timeout={KEEP_ALIVE}"]
        else:
            lines.append("Connection: close")
        connection.status = str(status)
        connection.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        self.check()

    def check(self):
        if self.shaper.is_over():
            self.connection.drop(self.shaper.ending)

    def write(self, data):
        for piece in self.shaper.pieces(data):
            if self.chunked:
                piece = b"%x\r\n%b\r\n" % (len(piece), piece)
            self.connection.send(piece)
        self.check()

    def finish(self):
        if self.chunked:
            self.connection.send(b"0\r\n\r\n")


REASONS = {status.value for status in http.HTTPStatus}


class Connection:
    def __init__(self, server, sock):
        self.server = server
        self.sock = sock
        self.buffer = bytearray()
        self.keep = True
        self.faults = {}
        self.status = "-"
        self.is_begun = False
        self.request = None

    # What arrives.

    def fill(self):
        try:
            data = self.sock.recv(1 << 18)
        except OSError as error:
            raise Dropped() from error
        if not data:
            raise Dropped()
        self.buffer += data

    def take(self, size):
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def read_until(self, mark, limit):
        while (at := self.buffer.find(mark)) < 0:
            if len(self.buffer) > limit:
                raise Malformed(f"more than {limit} bytes without an end")
            self.fill()
        data = self.take(at)
        del self.buffer[:len(mark)]
        return data

    def read_head(self):
        lines = self.read_until(b"\r\n\r\n", HEAD_LIMIT).split(b"\r\n")
        match = REQUEST_LINE.fullmatch(lines[0])
        if not match:
            raise Malformed(f"bad request line: {lines[0][:80]!r}")
        target = match[2].decode()
        if "#" in target or ESCAPE.search(target):
            raise Malformed("bad character or escape in the target")
        headers = []
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            value = value.strip(b" \t")
            if not colon or not TOKEN.fullmatch(name):
                raise Malformed(f"bad header line: {line[:40]!r}")
            if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
                raise Malformed(f"control character in header {name.decode()}")
            headers.append((name.decode().lower(), value.decode("latin-1")))
        request = Request(match[1].decode(), target, headers)
        for name in ("host", "content-length", "transfer-encoding", "content-type", "user-agent"):
            if len(request.all(name)) > 1:
                raise Malformed(f"header {name} more than once")
        if request.header("host") is None:
            raise Malformed("no Host header")
        if request.header("connection") not in (None, "keep-alive", "Keep-Alive", "close"):
            raise Malformed(f"Connection: {request.header('connection')}")
        return request

    def read_body(self, request):
        length, coding = request.header("content-length"), request.header("transfer-encoding")
        if length is not None and coding is not None:
            raise Malformed("both Content-Length and Transfer-Encoding")
        if coding not in (None, "chunked"):
            raise Malformed(f"Transfer-Encoding: {coding}")
        if length is not None and not re.fullmatch(r"[0-9]{1,15}", length):
            raise Malformed(f"Content-Length: {length}")
        request.file = tempfile.SpooledTemporaryFile(1 << 20)  # pylint: disable=consider-using-with
        if (expect := request.header("expect")) is not None:
            if expect.lower() != "100-continue":
                raise Malformed(f"Expect: {expect}")
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if coding:
            while size := self.chunk_size():
                self.copy(request, size)
                while len(self.buffer) < 2:
                    self.fill()
                if self.take(2) != b"\r\n":
                    raise Malformed("no line end after a chunk")
            if self.read_until(b"\r\n", HEAD_LIMIT):
                raise Malformed("a trailer after the last chunk")
        elif length is not None:
            self.copy(request, int(length))

    def chunk_size(self):
        line = self.read_until(b"\r\n", 64)
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
            raise Malformed(f"bad chunk size: {line[:20]!r}")
        return int(line, 16)

    def copy(self, request, size):
        request.length += size
        if request.length > BODY_LIMIT:
            raise Malformed("body too large")
        while size:
            if not self.buffer:
                self.fill()
            data = self.take(min(size, len(self.buffer)))
            request.file.write(data)
            size -= len(data)

    def is_gone(self):
        """Called when the socket is readable in the middle of an answer."""
        try:
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.settimeout(0.01)
                try:
                    data = self.sock.recv(4096)
                finally:
                    self.sock.settimeout(KEEP_ALIVE)
                self.buffer += data
                return not data
            return not self.sock.recv(1, socket.MSG_PEEK)
        except (TimeoutError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True

    # What leaves.

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Dropped() from error

    def drop(self, how):
        if how == "reset":
            # Closing with a linger time of zero sends a RST
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Dropped(how)

    def begin(self, status, headers, length=None):
        """The head of an answer; length None for a stream."""
        self.spoil()
        self.is_begun = True
        headers = list(headers)
        if "wrong_type" in self.faults:
            kind = self.faults["wrong_type"].get("type", "text/html")
            headers = [h for h in headers if h[0].lower() != "content-type"] + [("content-type", kind)]
        return Answer(self, status, headers, length)

    def respond(self, status, body=b"", content_type=None, headers=()):
        headers = list(headers)
        if content_type:
            headers.insert(0, ("content-type", content_type))
        if "garbage_json" in self.faults:
            body = self.faults["garbage_json"].get("body", '{"code": ').encode()
        answer = self.begin(status, headers, len(body))
        if status not in (204, 304):
            answer.write(body)
        answer.finish()

    def json(self, status, value, headers=(), content_type="application/json; charset=utf-8"):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        self.respond(status, text.encode("utf-8", "surrogateescape"), content_type, headers)

    # Faults.

    def spoil(self):
        """Called once, when the real answer is ready."""
        faults = self.faults
        if "delay_after" in faults:
            time.sleep(faults["delay_after"].get("ms", 100) / 1000)
        if "reset_after" in faults:
            self.drop("reset")
        if "cut_after" in faults:
            self.drop("cut")
        carried = [name for name in self.server.instead if name in faults and faults[name].get("carry")]
        if carried:
            rule = faults.pop(carried[0])
            self.instead(carried[0], rule)
            raise Dropped("done")
        if "oversized" in faults:
            self.oversized(faults.pop("oversized"))

    def instead(self, name, rule):
        request = self.request
        if name in self.server.application.faults_of_its_own:
            self.server.application.faults_of_its_own[name](self, request, rule)
        elif name == "status":
            code = rule.get("code", 500)
            body, kind = self.server.application.fault_body(request, code)
            if "body" in rule:
                body = rule["body"] if isinstance(rule["body"], str) else json.dumps(rule["body"])
                body = body.encode()
            self.respond(code, body, rule.get("type", kind), list(rule.get("headers", {}).items()))
        elif name == "redirect":
            self.respond(rule.get("code", 302), headers=[("Location", rule["location"])])
        elif name == "reset_before":
            self.drop("reset")
        elif name == "garbage":
            self.send(rule.get("text", "\x00\x16SSH-2.0-garbage\r\n\r\n").encode())
            self.drop("cut")
        elif name == "hang":
            self.status = "hang"
            while True:
                self.fill()

    def oversized(self, rule):
        size = rule.get("mib", 64) << 20
        self.is_begun = True
        answer = Answer(self, 200, [("content-type", "application/json")],
                        size + 4 if rule.get("length") else None)
        answer.write(b'["')
        for _ in range(size >> 16):
            answer.write(b"x" * 65536)
        answer.write(b'"]')
        answer.finish()
        raise Dropped("done")

    # The requests, one after the other.

    def serve(self):
        try:
            while self.keep and self.serve_one():
                pass
        except Dropped:
            pass
        finally:
            self.sock.close()

    def serve_one(self):
        self.status, self.is_begun, self.faults, self.request = "-", False, {}, None
        try:
            self.request = self.read_head()
            if self.request.path.startswith("/__test/"):
                self.read_body(self.request)
                self.server.application.control(self, self.request)
                return True
            self.keep = self.request.header("connection") != "close"
            self.faults = self.server.faults.meet(self.request.method, self.request.target)
            if self.faults.get("reset_before", {}).get("early"):
                self.drop("reset")
            self.read_body(self.request)
            self.carry_out()
        except Malformed as error:
            self.keep = False
            self.refuse(Violation(str(error)))
        except Dropped as drop:
            if drop.how != "done":
                self.status = drop.how if self.status in ("-", "hang") else f"{self.status}+{drop.how}"
                if self.status == "hang+closed":
                    self.status = "hang"
                self.keep = False
        finally:
            if self.request and not self.request.path.startswith("/__test/"):
                self.server.log(f"{self.request.method} {hide(self.request.target)} {self.status}")
            if self.request and self.request.file:
                self.request.file.close()
        return "close_after" not in self.faults

    def carry_out(self):
        try:
            action = self.server.application.plan(self.request)
        except Violation as violation:
            self.refuse(violation)
            return
        if "delay" in self.faults:
            time.sleep(self.faults["delay"].get("ms", 100) / 1000)
        for name in self.server.instead:
            if name in self.faults and not self.faults[name].get("carry"):
                self.instead(name, self.faults.pop(name))
                return
        try:
            action(self)
        except Violation as violation:
            self.refuse(violation)

    def refuse(self, violation):
        what = f"{self.request.method} {hide(self.request.target)}" if self.request else "-"
        self.server.violation(f"{what}: {violation}")
        if self.is_begun:
            self.drop("cut")
        self.faults = {}
        try:
            self.respond(violation.status, violation.body, violation.content_type)
        except Dropped:
            self.keep = False


def hide(target):
    return re.sub(r"(signature=)[^&]*", r"\1*", target)


class Server:
    def __init__(self, application, port=0, tls=None, log=None, violations=None):
        self.application = application
        self.instead = standin_faults.INSTEAD + tuple(application.faults_of_its_own)
        self.faults = standin_faults.Faults(tuple(application.faults_of_its_own) +
                                            tuple(application.faults_in_streams))
        self.log_path, self.violations_path = log, violations
        self.lock = threading.Lock()
        self.violations = []
        self.requests = self.connections = 0
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.tls = None
        if tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*tls)
            self.tls.set_alpn_protocols(["http/1.1"])

    def write(self, path, line):
        if path:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line + "\n")

    def log(self, line):
        with self.lock:
            self.requests += 1
            self.write(self.log_path, line)

    def violation(self, line):
        with self.lock:
            self.violations.append(line)
            self.write(self.violations_path, line)

    def accept(self, sock):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(KEEP_ALIVE)
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True, suppress_ragged_eofs=True)
        except OSError:
            sock.close()
            return
        with self.lock:
            self.connections += 1
        try:
            Connection(self, sock).serve()
        finally:
            with self.lock:
                self.connections -= 1

    def serve_forever(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.accept, args=(sock,), daemon=True).start()
