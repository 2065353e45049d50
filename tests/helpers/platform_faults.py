# SPDX-License-Identifier: Apache-2.0
"""Misbehaviour on demand: the rules a test sets, and the faults of plain HTTP answers."""
import json
import os
import re
import threading
import time

from platform_http import Gone, Response, error

# faults that are carried out where the answer is made, not around it
DEEP = ("lease_expired", "lease_410", "template_pending", "template_failed", "instance_unreachable",
        "checkpoint_skipped", "checkpoint_coalesced", "destroyed", "sidecar_drop",
        "sidecar_no_exit", "sidecar_no_newline", "sidecar_bad_lines")
# faults of a socket after its handshake began
SOCKET = ("ws_bad_accept", "ws_wrong_subprotocol", "ws_no_subprotocol", "ws_extension", "ws_split",
          "ws_early", "ws_drop_before_init", "ws_drop_after_init", "ws_drop_mid", "ws_no_exit", "ws_drop_exit",
          "ws_masked", "ws_rsv", "ws_bad_utf8", "ws_huge_frame", "ws_fragment", "ws_ping",
          "ws_continuation_first", "ws_control_long", "ws_control_fragmented", "ws_opcode",
          "ws_long_length", "ws_bad_close", "ws_bad_exit", "ws_unknown", "ws_after_exit", "ws_hang",
          "ws_no_close")


class Rule:
    """match, fault, times, skip, params, as a test gave them"""

    def __init__(self, value):
        if not isinstance(value, dict) or set(value) - {"match", "fault", "times", "skip", "params"}:
            raise ValueError("a rule has match, fault, times, skip and params")
        self.match = re.compile(value.get("match", ""))
        self.fault = value.get("fault")
        self.times, self.skip = value.get("times", 1), value.get("skip", 0)
        self.params = value.get("params") or {}
        if self.fault not in DEEP + SOCKET and self.fault not in PLAIN:
            raise ValueError(f"no fault is called '{self.fault}'")
        if not isinstance(self.times, int) or not isinstance(self.skip, int):
            raise ValueError("times and skip are whole numbers")

    def state(self):
        return {"match": self.match.pattern, "fault": self.fault, "times": self.times,
                "skip": self.skip, "params": self.params}


class Faults:
    def __init__(self):
        self.lock = threading.Lock()
        self.rules = []
        self.taken = 0

    def set(self, values):
        if not isinstance(values, list):
            raise ValueError("the rules are not a list")
        rules = [Rule(value) for value in values]
        with self.lock:
            self.rules = rules

    def take(self, subject):
        """The first rule that matches and is neither waiting nor used up; times -1 is for ever."""
        with self.lock:
            for rule in self.rules:
                if not rule.match.search(subject) or rule.times == 0:
                    continue
                if rule.fault.startswith("ws_") and not subject.startswith("WS "):
                    continue
                if rule.skip > 0:
                    rule.skip -= 1
                    continue
                if rule.times > 0:
                    rule.times -= 1
                self.taken += 1
                return rule
        return None

    def state(self):
        with self.lock:
            return [rule.state() for rule in self.rules]


class Answer:
    """One answer about to go out: carry() does what was asked and gives the true response."""

    def __init__(self, stream, request, carry, base):
        self.stream, self.request, self.carry, self.base = stream, request, carry, base
        self.params = request.fault.params
        self.status = "-"

    def send(self, response, close=False):
        self.status = response.status
        self.stream.send(response.encode(close))
        return not close

    def write(self, data):
        """Bytes as they are, and the end of the connection."""
        self.stream.send(data)
        return False


def status(answer):
    """code, headers {}, body (JSON), raw (text), carry (do what was asked all the same)"""
    params = answer.params
    if params.get("carry"):
        answer.carry()
    code = params.get("code", 503)
    response = error(code, f"fault {code}", params.get("type"))
    if "raw" in params:
        response = Response(code, raw=params["raw"].encode())
    elif "body" in params:
        response = Response(code, params["body"])
    response.headers = list(params.get("headers", {}).items())
    response.content_type = params.get("content_type", response.content_type)
    return answer.send(response, params.get("close", False))


def refuse(answer):
    """As status, for a handshake: 403."""
    answer.params = {"code": 403, **answer.params}
    return status(answer)


def reset_before(answer):
    answer.stream.close(reset=True)
    raise Gone


def reset_after(answer):
    answer.carry()
    answer.stream.close(reset=True)
    raise Gone


def cut(answer, reset):
    data = answer.carry().encode()
    answer.stream.send(data[:answer.params.get("bytes", len(data) - 5)])
    time.sleep(0.1)
    answer.stream.close(reset=reset, clean=False)
    raise Gone


def reset_mid(answer):
    """bytes: how much of the answer goes out before the reset"""
    return cut(answer, True)


def short(answer):
    """The answer ends before its content-length, in good order."""
    return cut(answer, False)


def slow(answer):
    """delay in seconds before the answer; then pieces of chunk bytes, interval seconds apart"""
    time.sleep(answer.params.get("delay", 1))
    response = answer.carry()
    answer.status = response.status
    data, size = response.encode(), answer.params.get("chunk", 0) or 1 << 30
    while data:
        answer.stream.send(data[:size])
        data = data[size:]
        time.sleep(answer.params.get("interval", 0.05) if data else 0)
    return True


def garbage(answer):
    """bytes of noise where HTTP is expected"""
    return answer.write(os.urandom(answer.params.get("bytes", 200)) + b"\r\n\r\n")


def garbage_json(answer):
    """The true status with a body that is no JSON; body: the text"""
    response = answer.carry()
    response.raw = answer.params.get("body", '{"id": "sbx", "status": ').encode()
    return answer.send(response)


def oversized(answer):
    """mode: body (a string member of bytes), length (announced, not sent), chunked, headers"""
    mode, size = answer.params.get("mode", "body"), answer.params.get("bytes", 64 << 20)
    response = answer.carry()
    answer.status = response.status
    if mode == "length":
        answer.stream.send(response.head(1 << 50) + b"{")
        return hang(answer)
    if mode == "headers":
        response.headers += [(f"X-Filler-{i}", "x" * 8000) for i in range(size // 8000 + 1)]
        return answer.send(response, close=True)
    pieces = size // 65536 + 1
    if mode == "chunked":
        response.headers.append(("Transfer-Encoding", "chunked"))
        answer.stream.send(response.head(None))
        for _ in range(pieces):
            answer.stream.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
        return answer.write(b"0\r\n\r\n")
    members = json.dumps(response.value or {"id": "x"})[:-1].encode() + b', "filler": "'
    answer.stream.send(response.head(len(members) + pieces * 65536 + 2) + members)
    for _ in range(pieces):
        answer.stream.send(b"x" * 65536)
    answer.stream.send(b'"}')
    return True


def wrong_type(answer):
    """set {member: value} and drop [members]; without them each member gets another type"""
    response, params = answer.carry(), answer.params
    value = response.value if isinstance(response.value, dict) else {}
    if "root" in params:
        value = params["root"]
    elif "set" in params or "drop" in params:
        value = {**value, **params.get("set", {})}
        for name in params.get("drop", []):
            value.pop(name, None)
    else:
        value = {name: ["x"] if isinstance(item, (str, int)) else 7 for name, item in value.items()}
    response.value = value
    response.content_type = params.get("content_type", response.content_type)
    return answer.send(response)


def redirect(answer):
    """code, location; by default to a page here whose visit is a violation"""
    location = answer.params.get("location", f"{answer.base}/__test/trap")
    return answer.send(Response(answer.params.get("code", 302), headers=[("Location", location)]))


def hang(answer):
    """No answer, until the client leaves or seconds are over; carry"""
    if answer.params.get("carry"):
        answer.carry()
    end = time.monotonic() + answer.params.get("seconds", 600)
    while time.monotonic() < end and not answer.stream.peer_left():
        time.sleep(0.05)
    return False


def chunked(answer):
    """A good answer in chunks of one byte (no content-length)."""
    response = answer.carry()
    answer.status = response.status
    response.headers.append(("Transfer-Encoding", "chunked"))
    body = b"".join(b"1;x=y\r\n%c\r\n" % byte for byte in response.body())
    answer.stream.send(response.head(None) + body + b"0\r\nX-Trailer: 1\r\n\r\n")
    return True


def no_length(answer):
    """A good answer that ends with the connection."""
    response = answer.carry()
    answer.status = response.status
    return answer.write(response.head(None, close=True) + response.body())


def interim(answer):
    """103 before a good answer."""
    answer.stream.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
    return answer.send(answer.carry())


PLAIN = {"status": status, "reset_before": reset_before, "reset_after": reset_after,
         "reset_mid": reset_mid, "short": short, "slow": slow, "garbage": garbage,
         "garbage_json": garbage_json, "oversized": oversized, "wrong_type": wrong_type,
         "patch": wrong_type, "redirect": redirect, "hang": hang, "chunked": chunked,
         "no_length": no_length, "interim": interim, "ws_refuse": refuse, "sidecar_no_health": status}
