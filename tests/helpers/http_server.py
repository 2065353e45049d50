#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 servers on 127.0.0.1 that answer well and badly, with TLS and without, and a proxy.

    http_server.py DIRECTORY

The first line of output is "http PORT tls PORT self PORT expired PORT name PORT proxy PORT". With TLS
there are a server whose certificate is good for 127.0.0.1, localhost and example.test where
DIRECTORY/ca.pem is believed, and others: signed by itself, expired, of another name. The certificates
are made in DIRECTORY by openssl. It ends at the end of its input.

What an answer is like is said by the path; what comes after the last argument only makes it another
path, whose requests are counted apart:

    /echo               the request as JSON: method, path, headers, body, connection, nth on it
    /count/PATH         how often /PATH was asked for
    /status/N[/AFTER]   status N, with Retry-After: AFTER seconds; "+AFTER": as a date; "-": without one
    /until/K/N[/AFTER]  so K times, 0: a reset; after that 200
    /reset              a reset in place of an answer
    /cut                a reset in the middle of the body
    /short              closed before Content-Length
    /chunk-cut          closed before the last chunk
    /bad-chunk          a chunk whose length is none
    /stale              an answer; the next request on that connection is not answered but closed
    /mute               no answer
    /silent             the beginning of an answer
    /slow/MS/N          N bytes, MS milliseconds before each
    /garbage            no HTTP
    /raw                status 101, and from then on what is sent comes back
    /big/N              N bytes
    /endless            a body without end
    /redirect/N/URL     status N, Location: URL (percent-decoded)
    /headers/N/SIZE     N headers of SIZE bytes
    /named/NAME/VALUE   one header (percent-decoded)
    /hints              status 100 and 103, then 200
    /early/N            status N before the body of the request was read
    /sink               how long the body of the request was, and its SHA-256
    /proxied            what the proxy was asked for

The proxy knows CONNECT alone: denied.test gets 403, all others are the TLS server with the good
certificate.
"""
import email.utils
import hashlib
import json
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

DIRECTORY = sys.argv[1]
LOCK = threading.Lock()
COUNTS = {}
PROXIED = []
CONNECTIONS = [0]
PORTS = {}
BLOCK = bytes(range(256)) * 256


class Over(Exception):
    """The connection is at its end."""


def reset(sock):
    """Closes it so that the peer gets a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # beneath TLS, which would say goodbye
    os.close(sock.detach())
    raise Over


def split_path(path):
    return [urllib.parse.unquote(part) for part in path.split("?")[0].split("/")[1:]]


class Handler(socketserver.StreamRequestHandler):
    def setup(self):
        if self.server.context:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        super().setup()
        with LOCK:
            CONNECTIONS[0] += 1
            self.connection_id = CONNECTIONS[0]
        self.nth = 0
        self.is_stale = False

    def handle(self):
        try:
            while self.one_request():
                pass
        except (Over, OSError, ValueError):
            pass

    def finish(self):
        try:
            super().finish()
        except OSError:
            pass

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def answer(self, status, body=b"", headers=(), kind="application/json"):
        lines = [f"HTTP/1.1 {status} Because", f"Content-Length: {len(body)}",
                 f"Content-Type: {kind}; charset=utf-8", f"X-Request-Id: req-{self.nth}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if self.method == "HEAD":
            body = b""
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def one_request(self):
        # TLS where there is none: some servers say so
        if self.rfile.peek(1)[:1] == b"\x16":
            self.send(b"HTTP/1.1 400 TLS\r\nContent-Length: 0\r\n\r\n")
            return False
        line = self.rfile.readline(65536).decode("latin-1")
        if not line:
            return False
        self.nth += 1
        self.method, self.path, _ = line.split(" ")
        self.headers = []
        while (line := self.rfile.readline(65536).decode("latin-1")) not in ("\r\n", "\n", ""):
            name, _, value = line.partition(":")
            self.headers.append((name, value.strip()))
        self.lower = {name.lower(): value for name, value in self.headers}
        with LOCK:
            COUNTS[self.path] = COUNTS.get(self.path, 0) + 1
        if self.is_stale:
            return False
        parts = split_path(self.path)
        method = getattr(self, "do_" + parts[0].replace("-", "_"), None)
        if not method:
            self.read_body()
            self.answer(404, b'{"message": "no such path"}')
            return True
        return method(*parts[1:]) is not False

    def body_pieces(self):
        if self.lower.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.lower.get("content-length", "0"))
        while left > 0:
            piece = self.rfile.read(min(left, 65536))
            if not piece:
                raise Over
            left -= len(piece)
            yield piece

    def read_body(self):
        return b"".join(self.body_pieces())

    # --- good ones

    def do_echo(self, *_):
        body = self.read_body()
        self.answer(200, json.dumps({
            "method": self.method, "path": self.path, "headers": self.headers,
            "body": body.decode("latin-1"), "connection": self.connection_id,
            "nth": self.nth}).encode())

    def do_count(self, *_):
        with LOCK:
            n = COUNTS.get(self.path[len("/count"):], 0)
        self.answer(200, str(n).encode())

    def do_proxied(self, *_):
        with LOCK:
            body = json.dumps(PROXIED).encode()
        self.answer(200, body)

    def do_sink(self, *_):
        digest = hashlib.sha256()
        n = 0
        for piece in self.body_pieces():
            digest.update(piece)
            n += len(piece)
        self.answer(200, f"{n} {digest.hexdigest()}".encode())

    def do_big(self, size, *_):
        self.read_body()
        left = int(size)
        self.send(f"HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n".encode())
        while left > 0:
            self.wfile.write(BLOCK[:min(left, len(BLOCK))])
            left -= len(BLOCK)
        self.wfile.flush()

    def do_named(self, name, value, *_):
        self.read_body()
        self.answer(200, b"{}", [(name, value)])

    def do_hints(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        self.answer(200, b"{}")

    # --- failures in good form

    def do_status(self, status, after="-", *_):
        self.read_body()
        headers = []
        if after.startswith("+"):
            date = email.utils.formatdate(time.time() + int(after), usegmt=True)
            headers = [("Retry-After", date)]
        elif after != "-":
            headers = [("Retry-After", after)]
        self.answer(int(status), json.dumps({"message": "status " + status}).encode(), headers)

    def do_until(self, times, status, after="-", *_):
        with LOCK:
            n = COUNTS[self.path]
        if n > int(times):
            self.read_body()
            self.answer(200, b'"at last"')
        elif status == "0":
            self.do_reset()
        else:
            self.do_status(status, after)

    def do_redirect(self, status, *_):
        self.read_body()
        self.answer(int(status), b"{}", [("Location", self.path.split("/", 3)[3].replace("%20", " "))])

    def do_early(self, status, *_):
        self.answer(int(status), b'"early"')
        for _ in self.body_pieces():
            pass

    # --- bad ones

    def do_reset(self, *_):
        reset(self.request)

    def do_cut(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        time.sleep(0.05)
        reset(self.request)

    def do_short(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nX-Request-Id: shortened\r\n\r\n0123456789")
        return False

    def do_chunk_cut(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        return False

    def do_bad_chunk(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n")
        return False

    def do_stale(self, *_):
        self.read_body()
        self.answer(200, b"{}")
        self.is_stale = True

    def do_mute(self, *_):
        self.read_body()
        self.rfile.read(1)

    def do_silent(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        self.rfile.read(1)

    def do_slow(self, pause_ms, size, *_):
        self.read_body()
        self.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(int(size)):
            time.sleep(int(pause_ms) / 1000)
            self.send(b"x")

    def do_garbage(self, *_):
        self.read_body()
        self.send(b"\x00\x01SSH-2.0-no HTTP at all\r\n" * 20)
        return False

    def do_raw(self, *_):
        self.send(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        while data := self.rfile.read1(65536):
            self.send(data)
        return False

    def do_endless(self, *_):
        self.read_body()
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            self.send(b"10000\r\n" + BLOCK + b"\r\n")

    def do_headers(self, count, size, *_):
        self.read_body()
        self.answer(200, b"{}", [(f"X-Filler-{i}", "f" * int(size)) for i in range(int(count))])


class Proxy(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline(65536).decode("latin-1").strip()
        headers = []
        while (header := self.rfile.readline(65536).decode("latin-1").strip()) != "":
            headers.append(header)
        with LOCK:
            PROXIED.append([line, headers])
        words = line.split(" ")
        if words[0] != "CONNECT" or words[1].startswith("denied.test:"):
            self.wfile.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", PORTS["tls"])) as there:
            self.wfile.write(b"HTTP/1.1 200 Connected\r\nX-Of-The-Proxy: yes\r\n\r\n")
            back = threading.Thread(target=pump, args=(there, self.request), daemon=True)
            back.start()
            pump(self.request, there)
            back.join()


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler, context=None):
        super().__init__(("127.0.0.1", 0), handler)
        self.context = context

    def handle_error(self, request, client_address):
        pass


def openssl(*arguments, text=None):
    subprocess.run(["openssl", *arguments], cwd=DIRECTORY, input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates():
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj",
            "/CN=test authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl("req", "-x509", *key, "-keyout", "self.key", "-out", "self.pem", "-days", "2", "-subj",
            "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    ours = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:example.test\n"
    for name, days, extensions in (("tls", "2", ours), ("expired", "-1", ours),
                                   ("name", "2", "subjectAltName=DNS:other.test\n")):
        openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        with open(os.path.join(DIRECTORY, name + ".ext"), "w", encoding="ascii") as file:
            file.write(extensions)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", days, "-extfile", name + ".ext", "-out", name + ".pem")


def main():
    make_certificates()
    servers = {"http": Server(Handler)}
    for name in ("tls", "self", "expired", "name"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(DIRECTORY, name + ".pem"),
                                os.path.join(DIRECTORY, name + ".key"))
        servers[name] = Server(Handler, context)
    servers["proxy"] = Server(Proxy)
    for name, server in servers.items():
        PORTS[name] = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*(f"{name} {port}" for name, port in PORTS.items()), flush=True)
    sys.stdin.read()


main()
