# SPDX-License-Identifier: Apache-2.0
"""RFC 6455, the server's side: the opening handshake, frames in and frames out.

What comes in is held to the letter. What goes out can be spoiled: see the members that shape it.
"""
import base64
import binascii
import codecs
import hashlib
import os
import random
import struct
import threading
import time

from platform_http import Deviation, Gone, Late

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MESSAGE_MAX = 16 << 20


class Failure(Exception):
    """The client broke the protocol; code is what it is told."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def accept_key(value):
    return base64.b64encode(hashlib.sha1(value.encode() + GUID).digest()).decode()


def words(request, name):
    return [word.strip() for value in request.values(name) for word in value.split(",")]


def check_handshake(request):
    """The key and the protocols that are offered."""
    if request.method != "GET" or request.body:
        raise Deviation("the handshake is not a GET without a body")
    if [word.lower() for word in words(request, "upgrade")] != ["websocket"]:
        raise Deviation("the upgrade header is not 'websocket'")
    if "upgrade" not in [word.lower() for word in words(request, "connection")]:
        raise Deviation("the connection header has no 'upgrade'")
    if request.header("sec-websocket-version") != "13":
        raise Deviation("the websocket version is not 13")
    key = request.header("sec-websocket-key") or ""
    try:
        size = len(base64.b64decode(key, validate=True))
    except binascii.Error:
        size = 0
    if size != 16 or len(key) != 24:
        raise Deviation("the websocket key is not 16 bytes in base64")
    protocols = words(request, "sec-websocket-protocol")
    if "" in protocols or len(set(protocols)) != len(protocols):
        raise Deviation("an offered subprotocol is empty or offered twice")
    return key, protocols


def close_code(code):
    return code in range(1000, 1004) or code in range(1007, 1015) or code in range(3000, 5000)


class WebSocket:
    def __init__(self, stream):
        self.stream = stream
        self.lock = threading.Lock()
        self.masked = self.fragmented = False
        self.rsv = 0
        self.sent_close = False
        self.got_close = None
        self.last_mask = None
        self.pings, self.pong = [], threading.Event()

    # out

    def frame(self, opcode, payload=b"", fin=True):
        head = bytes([(0x80 if fin else 0) | self.rsv | opcode])
        flag, size = 0x80 if self.masked else 0, len(payload)
        if size < 126:
            head += bytes([flag | size])
        elif size < 65536:
            head += struct.pack("!BH", flag | 126, size)
        else:
            head += struct.pack("!BQ", flag | 127, size)
        if self.masked:
            mask = os.urandom(4)
            payload = mask + unmask(payload, mask)
        return head + payload

    def fragments(self, opcode, payload):
        """The message in fragments of one to three bytes, with a ping after some."""
        data, start = b"", 0
        while True:
            size = random.randint(1, 3)
            last = start + size >= len(payload)
            data += self.frame(opcode, payload[start:start + size], last)
            start, opcode = start + size, CONTINUATION
            if last:
                return data
            if random.random() < 0.3:
                data += self.new_ping()

    def new_ping(self):
        payload = os.urandom(random.randint(0, 8))
        self.pings.append(payload)
        self.pong.clear()
        return self.frame(PING, payload)

    def raw(self, data):
        with self.lock:
            if self.sent_close:
                raise Gone
            if not self.fragmented:
                return self.stream.send(data)
            while data:
                size = random.randint(1, 1500)
                self.stream.send(data[:size])
                data = data[size:]
        return None

    def message(self, opcode, payload):
        if self.fragmented:
            self.raw(self.fragments(opcode, payload))
        else:
            self.raw(self.frame(opcode, payload))

    def text(self, payload):
        self.message(TEXT, payload.encode())

    def binary(self, payload):
        self.message(BINARY, payload)

    def ping(self):
        self.raw(self.new_ping())

    def await_pong(self, seconds):
        return not self.pings or self.pong.wait(seconds)

    def close(self, code=1000, reason=""):
        with self.lock:
            if not self.sent_close:
                self.sent_close = True
                payload = b"" if code is None else struct.pack("!H", code) + reason.encode()[:120]
                self.stream.send(self.frame(CLOSE, payload))

    # in

    def read_frame(self, deadline):
        first, second = self.stream.read(2, deadline)
        fin, opcode, size = bool(first & 0x80), first & 15, second & 0x7F
        if first & 0x70:
            raise Failure(1002, "a reserved bit is set")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise Failure(1002, f"opcode {opcode} is reserved")
        if not second & 0x80:
            raise Failure(1002, "a frame is not masked")
        if opcode >= CLOSE and (not fin or size > 125):
            raise Failure(1002, "a control frame is fragmented or too long")
        if size == 126:
            size = struct.unpack("!H", self.stream.read(2, deadline))[0]
            least = 126
        elif size == 127:
            size = struct.unpack("!Q", self.stream.read(8, deadline))[0]
            least = 65536
        else:
            least = 0
        if size < least:
            raise Failure(1002, "a length is not in its shortest form")
        if size > MESSAGE_MAX:
            raise Failure(1009, "a frame is too large")
        mask = self.stream.read(4, deadline)
        if mask == self.last_mask:
            raise Failure(1002, "two frames have the same masking key")
        self.last_mask = mask
        return fin, opcode, unmask(self.stream.read(size, deadline), mask)

    def control(self, opcode, payload):
        if opcode == PING:
            with self.lock:
                if not self.sent_close:
                    self.stream.send(self.frame(PONG, payload))
        elif opcode == PONG:
            if self.pings and payload == self.pings[-1]:
                self.pong.set()
            elif payload not in self.pings:
                raise Failure(1002, "a pong answers no ping of ours")
        else:
            self.peer_closes(payload)

    def peer_closes(self, payload):
        code = None
        if payload:
            if len(payload) == 1:
                raise Failure(1002, "a close frame has half a code")
            code = struct.unpack("!H", payload[:2])[0]
            if not close_code(code):
                raise Failure(1002, f"close code {code} may not be sent")
            try:
                payload[2:].decode("utf-8")
            except UnicodeError as error:
                raise Failure(1007, "the reason of a close frame is not UTF-8") from error
        self.got_close = code or 1005
        try:
            self.close(code)
        except (Gone, Late):
            pass

    def receive(self, seconds=None):
        """The next message as (opcode, bytes), or None when the client closed in good order."""
        deadline = time.monotonic() + (seconds or 86400)
        kind, data, decoder = None, bytearray(), None
        while True:
            fin, opcode, payload = self.read_frame(deadline)
            if opcode >= CLOSE:
                self.control(opcode, payload)
                if self.got_close is not None:
                    return None
                continue
            if (opcode == CONTINUATION) != (kind is not None):
                raise Failure(1002, "a continuation without a start, or a start within a message")
            if kind is None:
                kind = opcode
                decoder = codecs.getincrementaldecoder("utf-8")() if kind == TEXT else None
            data += payload
            if len(data) > MESSAGE_MAX:
                raise Failure(1009, "a message is too large")
            if decoder:
                try:
                    decoder.decode(payload, fin)
                except UnicodeError as error:
                    raise Failure(1007, "a text message is not UTF-8") from error
            if fin:
                return kind, bytes(data)


def unmask(payload, mask):
    size = len(payload)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")
