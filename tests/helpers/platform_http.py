# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 over a raw socket, from the side of a server that trusts nothing it reads.

Stream is used by two threads at once, one that reads and one that writes. A TLS object does not allow
that, so each call into it is made under a lock and never blocks there.
"""
import email.utils
import json
import re
import select
import socket
import ssl
import struct
import threading
import time

HEAD_MAX = 64 << 10
BODY_MAX = 8 << 20
IDLE = 120.0
TICK = 0.05
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
REASONS = {100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted",
           204: "No Content", 302: "Found", 307: "Temporary Redirect", 400: "Bad Request",
           401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 410: "Gone",
           426: "Upgrade Required", 429: "Too Many Requests", 500: "Internal Server Error",
           502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


class Gone(Exception):
    """The connection is over."""


class Late(Exception):
    """Nothing came in time."""


class Deviation(Exception):
    """The client did what the protocol does not allow."""


class Stream:
    def __init__(self, sock):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.lock = threading.Lock()
        self.buffer = bytearray()
        self.dead = False
        self.closed = False

    def wait(self, events, deadline):
        """Until the socket is ready; in small steps, so that another thread can end the wait."""
        poll = select.poll()
        try:
            poll.register(self.sock, events)
        except ValueError as error:
            raise Gone from error
        while not self.dead:
            if poll.poll(TICK * 1000):
                return
            if time.monotonic() > deadline:
                raise Late
        raise Gone

    def call(self, function, wanted, deadline):
        while not self.dead:
            try:
                with self.lock:
                    return function()
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
                events = wanted
                if isinstance(error, ssl.SSLWantReadError):
                    events = select.POLLIN
                elif isinstance(error, ssl.SSLWantWriteError):
                    events = select.POLLOUT
            except (OSError, ValueError) as error:
                raise Gone from error
            self.wait(events, deadline)
        raise Gone

    def fill(self, deadline):
        try:
            data = self.call(lambda: self.sock.recv(65536), select.POLLIN, deadline)
        except ssl.SSLError as error:
            raise Gone from error
        if not data:
            raise Gone
        self.buffer += data

    def read(self, size, deadline=None):
        deadline = deadline or time.monotonic() + IDLE
        while len(self.buffer) < size:
            self.fill(deadline)
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def line(self, limit, deadline):
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > limit:
                raise Deviation("a line of the head is too long")
            self.fill(deadline)
        data = self.read(end + 1)
        if not data.endswith(b"\r\n"):
            raise Deviation("a line of the head does not end with CR LF")
        return data[:-2]

    def send(self, data, deadline=None):
        deadline = deadline or time.monotonic() + IDLE
        view = memoryview(data)
        while view:
            piece = view[:65536]
            view = view[self.call(lambda: self.sock.send(piece), select.POLLOUT, deadline):]

    def close(self, reset=False, clean=True):
        """Only the thread that owns the connection calls this; others set dead."""
        if self.closed:
            return
        self.closed = True
        try:
            if reset:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif clean and not self.dead:
                self.finish()
            else:
                # TLS is not told, and what was sent has time to arrive before unread bytes reset it
                socket.socket.shutdown(self.sock, socket.SHUT_WR)
                time.sleep(0.1)
        except (OSError, ValueError):
            pass
        self.dead = True
        with self.lock:
            self.sock.close()

    def finish(self):
        """What is still on its way here is read, or the kernel would reset the answer away."""
        if isinstance(self.sock, ssl.SSLSocket):
            try:
                self.sock.unwrap()
            except OSError:
                pass
        self.sock.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + 1
        try:
            while True:
                self.buffer.clear()
                self.fill(deadline)
        except (Gone, Late):
            pass

    def peer_left(self):
        """Is the other end gone? For handlers that have nothing to read."""
        try:
            self.fill(time.monotonic())
        except Late:
            return False
        except Gone:
            return True
        return False


class Request:
    def __init__(self, method, target, headers):
        self.method, self.target, self.headers = method, target, headers
        self.path, _, self.query = target.partition("?")
        self.body = b""
        self.value = None
        self.fault = None

    def values(self, name):
        return [value for key, value in self.headers if key == name]

    def header(self, name):
        values = self.values(name)
        if len(values) > 1:
            raise Deviation(f"header '{name}' is sent {len(values)} times")
        return values[0] if values else None

    def has_fault(self, name):
        return self.fault is not None and self.fault.fault == name


def read_head(stream):
    deadline = time.monotonic() + IDLE
    words = stream.line(HEAD_MAX, deadline).decode("latin-1").split(" ")
    if len(words) != 3 or not TOKEN.match(words[0]) or words[2] != "HTTP/1.1":
        raise Deviation("the request line is not 'METHOD TARGET HTTP/1.1'")
    if not re.match(r"/[!-~]*\Z", words[1]) or "#" in words[1]:
        raise Deviation("the request target is not an absolute path")
    headers, size = [], 0
    while line := stream.line(HEAD_MAX, deadline):
        size += len(line)
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not TOKEN.match(name):
            raise Deviation("a header field has no name")
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise Deviation(f"header '{name}' has a control character")
        if size > HEAD_MAX or len(headers) > 100:
            raise Deviation("the head is too large")
        headers.append((name.lower(), value.strip(" \t")))
    return Request(words[0], words[1], headers)


def read_chunks(stream, deadline):
    body = b""
    while True:
        text = stream.line(1024, deadline).decode("latin-1").partition(";")[0].strip()
        if not re.match(r"[0-9A-Fa-f]{1,8}\Z", text):
            raise Deviation("a chunk has no size")
        size = int(text, 16)
        if len(body) + size > BODY_MAX:
            raise Deviation("the body is too large")
        body += stream.read(size, deadline)
        if size == 0:
            while stream.line(HEAD_MAX, deadline):
                pass
            return body
        if stream.line(2, deadline):
            raise Deviation("a chunk is longer than its size")


def read_request(stream):
    """The next request with its body, or Gone where the client has no more."""
    request = read_head(stream)
    deadline = time.monotonic() + IDLE
    length, coding = request.header("content-length"), request.header("transfer-encoding")
    expect = request.header("expect")
    if length is not None and coding is not None:
        raise Deviation("both a content-length and a transfer-encoding")
    if expect is not None:
        if expect.lower() != "100-continue":
            raise Deviation("an unknown expectation")
        stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if coding is not None:
        if coding.lower() != "chunked":
            raise Deviation("the transfer-encoding is not 'chunked'")
        request.body = read_chunks(stream, deadline)
    elif length is not None:
        if not re.match(r"[0-9]{1,10}\Z", length):
            raise Deviation("the content-length is not a number")
        if int(length) > BODY_MAX:
            raise Deviation("the body is too large")
        request.body = stream.read(int(length), deadline)
    return request


class Response:
    def __init__(self, status, value=None, headers=(), raw=None):
        self.status, self.value, self.headers = status, value, list(headers)
        self.raw = raw
        self.content_type = "application/json"

    def body(self):
        if self.raw is not None:
            return self.raw
        return b"" if self.value is None else json.dumps(self.value).encode()

    def head(self, length, close=False):
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Status')}",
                 f"Date: {email.utils.formatdate(usegmt=True)}"]
        if length is not None and self.status not in (101, 204):
            lines.append(f"Content-Length: {length}")
        if length != 0:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if close:
            lines.append("Connection: close")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def encode(self, close=False):
        body = b"" if self.status == 204 else self.body()
        return self.head(len(body), close) + body


def error(status, message, kind=None):
    kinds = {400: "invalid_request", 401: "authentication_error", 404: "not_found", 410: "not_found"}
    return Response(status, {"error": {"message": message,
                                       "type": kind or kinds.get(status, "internal_error")}})


class Listener:
    """A port of 127.0.0.1; each connection is given to a thread of its own."""

    def __init__(self, port, handler, tls=None):
        self.sock = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self.sock.getsockname()[1]
        self.handler, self.tls = handler, tls
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.connection, args=(sock,), daemon=True).start()

    def connection(self, sock):
        try:
            if self.tls:
                sock.settimeout(10)
                sock = self.tls.wrap_socket(sock, server_side=True)
            stream = Stream(sock)
        except (OSError, ValueError):
            sock.close()
            return
        try:
            self.handler(stream)
        except (Gone, Late):
            pass
        finally:
            stream.close()

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
