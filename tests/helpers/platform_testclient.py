# SPDX-License-Identifier: Apache-2.0
"""A plain client for platform_selftest.py: HTTP calls, and a WebSocket that checks what it gets."""
import base64
import hashlib
import http.client
import json
import os
import socket
import struct
import urllib.parse

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Closed(Exception):
    """The socket ended without an exit frame."""


class Bad(Exception):
    """The server broke the protocol."""


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def definition(*operations, family=None):
    value = {"schemaVersion": 1, "operations": [{"method": method, "args": args}
                                                for method, *args in operations]}
    return {**value, "family": family} if family else value


def http_call(port, method, path, value=None, headers=None, tls=None, chunked=False):
    """Status, header fields, body (decoded where it is JSON)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    if tls:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=tls)
    body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    fields = {"authorization": "Bearer tok.en", "host": f"127.0.0.1:{port}"}
    if body is not None:
        fields["content-type"] = "application/json"
    fields.update(headers or {})
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, field in fields.items():
            if field is not None:
                connection.putheader(name, field)
        if chunked:
            connection.putheader("transfer-encoding", "chunked")
            connection.endheaders(iter([body[:5], body[5:]]), encode_chunked=True)
        else:
            if body is not None or method == "POST":
                connection.putheader("content-length", str(len(body or b"")))
            connection.endheaders(body)
        response = connection.getresponse()
        data = response.read()
        try:
            answer = json.loads(data)
        except ValueError:
            answer = data
        return response.status, response.headers, answer
    finally:
        connection.close()


class Socket:
    def __init__(self, lease, tls=None, protocols=None, more=""):
        url = urllib.parse.urlsplit(lease["wsEndpoint"])
        self.sock = socket.create_connection((url.hostname, url.port), timeout=20)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname=url.hostname)
        self.file = self.sock.makefile("rb")
        self.codes, self.texts, self.pinged = [], [], 0
        self.out = {1: b"", 3: b""}
        key = base64.b64encode(os.urandom(16)).decode()
        offered = protocols or f"{lease['subprotocol']}, {lease['jwt']}"
        self.sock.sendall((f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n"
                           "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                           f"Sec-WebSocket-Key: {key}\r\n{more}Sec-WebSocket-Protocol: {offered}\r\n"
                           "\r\n").encode())
        self.status = int((self.file.readline().split() or [0, 0])[1])
        self.fields = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(": ")
            self.fields[name.lower()] = value
        if self.status != 101:
            return
        digest = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        self.good = (self.fields.get("sec-websocket-accept") == digest and
                     "sec-websocket-extensions" not in self.fields and
                     self.fields.get("sec-websocket-protocol") in (lease["subprotocol"], None))

    def cut(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.file.close()
        self.sock.close()

    def frame(self, opcode, payload, fin=True, masked=True, rsv=0):
        head = bytes([(0x80 if fin else 0) | rsv | opcode])
        flag = 0x80 if masked else 0
        if len(payload) < 126:
            head += bytes([flag | len(payload)])
        elif len(payload) < 65536:
            head += struct.pack("!BH", flag | 126, len(payload))
        else:
            head += struct.pack("!BQ", flag | 127, len(payload))
        if masked:
            mask = os.urandom(4)
            payload = mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.sock.sendall(head + payload)

    def text(self, value):
        self.frame(1, json.dumps(value).encode())

    def binary(self, data):
        self.frame(2, data)

    def init(self, command, close=True, **more):
        self.text({"type": "init_exec", "data": {"command": command, **more}})
        if close:
            self.text({"type": "stdin_close"})

    def exactly(self, size):
        data = self.file.read(size)
        if len(data) < size:
            raise Closed("end of the connection")
        return data

    def read_frame(self):
        first, second = self.exactly(2)
        size = second & 0x7F
        least = 0
        if size == 126:
            size, least = struct.unpack("!H", self.exactly(2))[0], 126
        elif size == 127:
            size, least = struct.unpack("!Q", self.exactly(8))[0], 65536
        opcode, fin = first & 15, bool(first & 0x80)
        if first & 0x70 or second & 0x80 or size < least or size > 1 << 24:
            raise Bad("reserved bits, a mask or a length")
        if opcode not in (0, 1, 2, 8, 9, 10) or (opcode >= 8 and (not fin or size > 125)):
            raise Bad("an opcode or a control frame")
        return opcode, fin, self.exactly(size)

    def message(self):
        kind, data = None, b""
        while True:
            opcode, fin, payload = self.read_frame()
            if opcode == 9:
                self.pinged += 1
                self.frame(10, payload)
                continue
            if opcode == 8:
                if len(payload) == 1:
                    raise Bad("half a close code")
                code = struct.unpack("!H", payload[:2])[0] if payload else 1005
                if payload and (code < 1000 or code in (1004, 1005, 1006)):
                    raise Bad("a close code")
                payload[2:].decode()
                self.frame(8, payload[:2])
                return 8, code
            if (opcode == 0) != (kind is not None):
                raise Bad("a continuation")
            kind = kind or opcode
            data += payload
            if fin:
                return kind, data.decode() if kind == 1 else data

    def step(self):
        """The exit code, once it came."""
        kind, data = self.message()
        if kind == 8:
            self.codes.append(data)
            raise Closed(f"close {data}")
        if kind == 1:
            self.texts.append(data)
            value = json.loads(data)
            if isinstance(value, dict) and value.get("type") == "exit":
                code = value["data"]["exit_code"]
                if type(code) is not int or not 0 <= code < 256:
                    raise Bad("an exit code")
                return code
        elif data and data[0] in self.out:
            self.out[data[0]] += data[1:]
        return None

    def output(self):
        while not self.out[1]:
            self.step()
        return self.out[1]

    def until_exit(self):
        try:
            while (code := self.step()) is None:
                pass
        except ConnectionError as error:
            raise Closed(str(error)) from error
        return code, self.out[1], self.out[3]

    def ended(self):
        """The close code, or 0 where the connection just ended."""
        try:
            while True:
                kind, data = self.message()
                if kind == 8:
                    return data
        except (Closed, ConnectionError):
            return 0


def exec_once(sock, command, **more):
    assert sock.status == 101 and sock.good, sock.status
    sock.init(command, **more)
    result = sock.until_exit()
    if sock.ended() != 1000:
        raise Bad("no close after the exit")
    sock.cut()
    return result
