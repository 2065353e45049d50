# SPDX-License-Identifier: Apache-2.0
"""The Connect protocol with JSON, and how to get it wrong on demand.

Faults in streams (`at` counts messages from 0, which is the start event; 1 unless told):

    no_trailer       the stream ends without its flag-02 envelope
    double_trailer   two of them
    trailer_error    code, message: the end after `after` (1) messages; null for the usual place
    keepalive        a keepalive after each message and every `ms` (100)
    start_not_first  a keepalive before start
    bad_envelope     kind "short" (length is `more` (100) too high, then the end), "huge" (length 2 GiB, then
                     the end) or "flag" (`flag`, 1, in place of 0), for message `at`
    garbage_json     `body` as message `at`
    oversized        message `at` holds `mib` (64) MiB
    late_trailer     the end comes `ms` (1000) after the last message
    no_end           a process' end event is left out
    snake            snake_case names, numbers as texts, unknown members; in unary answers too
"""
import base64
import collections
import json
import os
import re
import select
import struct
import threading
import time

import standin_http

CODES = {"invalid_argument": 400, "failed_precondition": 400, "out_of_range": 400, "unauthenticated": 401,
         "permission_denied": 403, "not_found": 404, "already_exists": 409, "aborted": 409,
         "resource_exhausted": 429, "canceled": 499, "unknown": 500, "internal": 500, "data_loss": 500,
         "unimplemented": 501, "unavailable": 503, "deadline_exceeded": 504}
FAULTS = ("no_trailer", "double_trailer", "trailer_error", "keepalive", "start_not_first", "bad_envelope",
          "late_trailer", "no_end", "snake")
QUEUE = 64


class RpcError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    def json(self):
        return {"code": self.code, "message": str(self)}


def snake(value, is_map=False):
    """The same message in another of the forms that protobuf's JSON allows."""
    if isinstance(value, dict):
        made = {}
        for name, item in value.items():
            key = name if is_map else re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name)
            made[key] = snake(item, name in ("envs", "metadata"))
        if not is_map:
            made["unknown_member"] = {"of": ["a", "later", 1, None]}
        return made
    if isinstance(value, list):
        return [snake(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def encode(value, faults=()):
    if "snake" in faults:
        if isinstance(value.get("event"), dict) and "end" in value["event"]:
            value = {"event": {"end": {"exitCode": 0, "error": "", **value["event"]["end"]}}}
        return json.dumps(snake(value), indent=1).encode("utf-8", "surrogateescape")
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogateescape")


def envelope(flag, data, length=None):
    return struct.pack(">BI", flag, len(data) if length is None else length) + data


def respond(connection, value):
    connection.respond(200, encode(value, connection.faults), "application/json")


def respond_error(connection, error):
    connection.respond(CODES[error.code], encode(error.json()), "application/json")


class Writer:
    """The answer of a stream."""

    def __init__(self, connection, keepalive):
        self.connection = connection
        self.faults = connection.faults
        self.big = self.faults.pop("oversized", None)
        self.keepalive = keepalive
        self.answer = None
        self.count = 0

    def begin(self):
        if not self.answer:
            self.answer = self.connection.begin(200, [("content-type", "application/connect+json")])

    def ping(self):
        self.answer.write(envelope(0, encode(self.keepalive, self.faults)))

    def stop(self):
        """The body ends here, whatever was promised."""
        self.answer.finish()
        self.connection.keep = False
        raise standin_http.Dropped("done")

    def is_at(self, rule):
        return rule is not None and rule.get("at", 1) == self.count

    def send(self, message):
        self.begin()
        if self.count == 0 and "start_not_first" in self.faults:
            self.ping()
        if "no_end" in self.faults and "end" in message.get("event", ()):
            return
        data = encode(message, self.faults)
        if self.is_at(self.faults.get("garbage_json")):
            data = self.faults["garbage_json"].get("body", '{"event": ').encode()
        if self.is_at(self.big):
            data = encode({"event": {"data": {"stdout": "A" * (self.big.get("mib", 64) << 20)}}})
        bad = self.faults.get("bad_envelope")
        if not self.is_at(bad):
            self.answer.write(envelope(0, data))
        elif bad.get("kind", "short") == "flag":
            self.answer.write(envelope(bad.get("flag", 1), data))
        else:
            length = 1 << 31 if bad.get("kind") == "huge" else len(data) + bad.get("more", 100)
            self.answer.write(envelope(0, data, length))
            self.stop()
        self.count += 1
        if "keepalive" in self.faults:
            self.ping()
        trailer = self.faults.get("trailer_error")
        if trailer and trailer.get("after", 1) == self.count:
            self.end()

    def end(self, error=None):
        self.begin()
        rule = self.faults.get("trailer_error")
        if rule:
            error = RpcError(rule.get("code", "internal"), rule.get("message", "a fault"))
        if "late_trailer" in self.faults:
            time.sleep(self.faults["late_trailer"].get("ms", 1000) / 1000)
        data = envelope(2, encode({"error": error.json()} if error else {}))
        if "no_trailer" not in self.faults:
            self.answer.write(data)
        if "double_trailer" in self.faults:
            self.answer.write(data)
        self.answer.finish()
        raise standin_http.Dropped("done")


class Stream:
    """Messages on their way to one client; whoever puts them waits for a slow one."""

    def __init__(self, keepalive):
        self.keepalive = keepalive
        self.condition = threading.Condition()
        self.items = collections.deque()
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.is_closed = False
        self.is_cut = False
        self.end = None
        self.on_close = []

    def notify(self):
        if not self.is_closed:
            os.eventfd_write(self.wake, 1)

    def put(self, message):
        with self.condition:
            while len(self.items) >= QUEUE and not self.is_closed and not self.is_cut:
                self.condition.wait()
            if not self.is_closed and not self.is_cut:
                self.items.append(message)
                self.notify()

    def finish(self, error=None):
        with self.condition:
            self.end = self.end or (error,)
            self.notify()

    def cut(self):
        with self.condition:
            self.is_cut = True
            self.condition.notify_all()
            self.notify()

    def close(self):
        with self.condition:
            if not self.is_closed:
                self.is_closed = True
                self.condition.notify_all()
                os.close(self.wake)
                for call in self.on_close:
                    call()

    def next(self):
        with self.condition:
            if self.is_cut:
                raise standin_http.Dropped("cut")
            if self.items:
                self.condition.notify_all()
                return self.items.popleft(), False
            return None, self.end is not None

    def pump(self, connection, seconds, interval):
        """Sends until the end, the client's leave or the deadline."""
        writer = Writer(connection, self.keepalive)
        until = time.monotonic() + seconds if seconds is not None else None
        if "keepalive" in connection.faults:
            interval = connection.faults["keepalive"].get("ms", 100) / 1000
        ping = time.monotonic() + interval
        try:
            while True:
                message, is_end = self.next()
                now = time.monotonic()
                if until is not None and now >= until:
                    writer.end(RpcError("deadline_exceeded", "context deadline exceeded"))
                elif message is not None:
                    writer.send(message)
                    ping = time.monotonic() + interval
                elif is_end:
                    writer.end(self.end[0])
                elif writer.answer and now >= ping:
                    writer.ping()
                    ping = now + interval
                else:
                    self.wait(connection, min(ping, until or ping) - now)
        finally:
            self.close()

    def wait(self, connection, seconds):
        ready, _, _ = select.select([connection.sock, self.wake], [], [], max(seconds, 0.001))
        if self.wake in ready:
            os.eventfd_read(self.wake)
        if connection.sock in ready:
            if connection.is_gone():
                raise standin_http.Dropped()
            raise standin_http.Violation("sent more while its stream was running")


def milliseconds(text):
    return int(text) / 1000 if text is not None else None


def b64(data):
    return base64.b64encode(data).decode()
