# SPDX-License-Identifier: Apache-2.0
"""How an exec socket goes wrong: the ws_ faults, each at its place in the life of a session.

The handshake: ws_refuse (code, headers, body, raw as for status), ws_bad_accept (accept),
ws_wrong_subprotocol (protocol), ws_no_subprotocol, ws_extension, ws_split (byte for byte), ws_early
(frames along with the answer), ws_hang (and then nothing at all).

The end: ws_drop_before_init, ws_drop_after_init (the command goes on; no output), ws_drop_mid (after
bytes of output, or at its exit; torn: within a frame), ws_drop_exit (all output, no exit), each with rst
(reset), close and reason (a close frame), wait (seconds before), kill (the command too); ws_no_exit
(code, reason of the close frame), ws_bad_exit (variant of BAD_EXITS, or text), ws_after_exit (output and
another exit after the exit), ws_no_close (nothing for seconds after the exit).

Frames, before the output or, with when "end", before the exit: ws_bad_utf8, ws_huge_frame (length),
ws_continuation_first, ws_control_long (bytes), ws_control_fragmented, ws_opcode (opcode),
ws_long_length, ws_bad_close (payload "1000 half", "1005", "999", "utf8"). All along: ws_masked, ws_rsv.
A client has to bear: ws_fragment, ws_ping (count), ws_unknown (texts, bytes, empty false).
"""
import json
import os
import random
import struct
import time

from platform_http import Gone
from platform_ws import BINARY, CLOSE, CONTINUATION, PING, TEXT

# After these answers the client must say no more.
BAD_HANDSHAKE = ("ws_bad_accept", "ws_wrong_subprotocol", "ws_extension")
UNKNOWN_TEXTS = ('{"type":"hello","data":{"a":1}}', '{"type":"progress","data":null}', '{"type":"x"}',
                 '{"type":"exited","data":{"exit_code":7}}', '{"data":{"exit_code":7}}')
UNKNOWN_BYTES = (0, 2, 4, 9, 127, 255)
BAD_EXITS = {"no_data": '{"type":"exit"}', "empty": '{"type":"exit","data":{}}',
             "null": '{"type":"exit","data":{"exit_code":null}}',
             "string": '{"type":"exit","data":{"exit_code":"0"}}',
             "float": '{"type":"exit","data":{"exit_code":0.5}}',
             "huge": '{"type":"exit","data":{"exit_code":99999999999999999999}}',
             "negative": '{"type":"exit","data":{"exit_code":-1}}',
             "bool": '{"type":"exit","data":{"exit_code":true}}',
             "data_list": '{"type":"exit","data":[0]}', "list": '[{"type":"exit"}]',
             "not_json": '{"type":"exit","data":{"exit_code":0}', "blank": ""}


class Spoiler:
    def __init__(self, session, rule):
        self.session, self.ws = session, session.ws
        self.fault = rule.fault if rule else None
        self.params = rule.params if rule else {}
        self.sent = 0
        self.ws.masked = self.fault == "ws_masked"
        self.ws.fragmented = self.fault == "ws_fragment"
        self.ws.rsv = 0x40 if self.fault == "ws_rsv" else 0

    def leave(self):
        """Drop the connection, by a close frame where a code is given."""
        if "wait" in self.params:
            time.sleep(self.params["wait"])
        if "close" in self.params:
            self.session.muted = self.session.keep = True
            self.ws.close(self.params["close"], self.params.get("reason", ""))
            # the client's answer is still read
            return
        if self.params.get("kill") and self.session.process:
            self.session.process.kill()
        self.session.drop(self.params.get("rst", False))
        raise Gone

    def handshake(self, head):
        stream = self.ws.stream
        if self.fault == "ws_early":
            head += self.ws.new_ping()
            head += self.ws.frame(TEXT, self.durable().encode())
        if self.fault == "ws_split":
            for byte in head:
                stream.send(bytes([byte]))
                time.sleep(0.001)
        else:
            stream.send(head)

    @staticmethod
    def durable():
        return json.dumps({"type": "durable_session", "data": {"name": os.urandom(8).hex()}})

    def opened(self):
        if self.fault in BAD_HANDSHAKE:
            self.expect_silence()
        elif self.fault == "ws_drop_before_init":
            self.leave()
        elif self.fault == "ws_hang":
            self.wait_for_end()

    def expect_silence(self):
        """The client has to go away; a message from it is a violation."""
        if self.ws.receive(self.params.get("seconds", 10)) is not None:
            self.session.violation("the client went on after a bad handshake")
            self.session.drop()
        raise Gone

    def wait_for_end(self):
        while self.ws.receive() is not None:
            pass
        raise Gone

    def started(self):
        if self.fault == "ws_drop_after_init":
            self.session.muted = True
            return self.leave()
        if self.fault != "ws_early":
            self.ws.text(self.durable())
        if self.fault == "ws_unknown":
            self.unknown()
        if self.params.get("when", "start") == "start":
            self.bad_frame()
        return None

    def unknown(self):
        for text in self.params.get("texts", UNKNOWN_TEXTS):
            self.ws.text(text)
        for byte in self.params.get("bytes", UNKNOWN_BYTES):
            self.ws.binary(bytes([byte]) + b"unknown stream")
        self.ws.binary(b"\x01")
        if self.params.get("empty", True):
            self.ws.binary(b"")

    def bad_frame(self):
        ws, raw = self.ws, self.ws.raw
        if self.fault == "ws_bad_utf8":
            raw(ws.frame(TEXT, b'{"type":"note","data":"\xc3\x28 \xed\xa0\x80 \xff"}'))
        elif self.fault == "ws_huge_frame":
            raw(struct.pack("!BBQ", 0x80 | BINARY, 127, self.params.get("length", 1 << 62)) + b"\x01huge")
        elif self.fault == "ws_continuation_first":
            raw(ws.frame(CONTINUATION, b"\x01lost"))
        elif self.fault == "ws_control_long":
            raw(ws.frame(PING, b"p" * self.params.get("bytes", 126)))
        elif self.fault == "ws_control_fragmented":
            raw(ws.frame(PING, b"p", fin=False) + ws.frame(CONTINUATION, b"q"))
        elif self.fault == "ws_opcode":
            raw(ws.frame(self.params.get("opcode", 3), b"\x01what"))
        elif self.fault == "ws_long_length":
            raw(struct.pack("!BBQ", 0x80 | BINARY, 127, 5) + b"\x01long")
        elif self.fault == "ws_bad_close":
            payload = self.params.get("payload", "1000 half")
            raw(ws.frame(CLOSE, {"1000 half": b"\x03", "1005": b"\x03\xed", "999": b"\x03\xe7",
                                 "utf8": b"\x03\xe8\xff"}[payload]))
        elif self.fault == "ws_ping":
            for _ in range(self.params.get("count", 3)):
                ws.ping()

    def output(self, number, data):
        if self.fault == "ws_drop_mid":
            rest = self.params.get("bytes", 1) - self.sent
            self.sent += len(data)
            if rest <= len(data):
                self.torn(number, data[:max(rest, 0)])
                return self.leave()
        elif self.fault == "ws_unknown" and random.random() < 0.5:
            self.ws.binary(b"\x02between")
        return self.ws.binary(bytes([number]) + data)

    def torn(self, number, data):
        """What still goes out before the drop; torn: in a frame that promises more."""
        payload = bytes([number]) + data
        if self.params.get("torn"):
            self.ws.raw(struct.pack("!BBH", 0x80 | BINARY, 126, len(payload) + 1000) + payload)
        elif data:
            self.ws.binary(payload)

    def exit(self, code):
        ws = self.ws
        if self.params.get("when") == "end":
            self.bad_frame()
        if self.fault in ("ws_drop_mid", "ws_drop_exit"):
            # there was less output than was to be let through
            return self.leave()
        if self.fault == "ws_no_exit":
            return ws.close(self.params.get("code", 1000), self.params.get("reason", ""))
        if self.fault == "ws_bad_exit":
            ws.text(self.params.get("text", BAD_EXITS[self.params.get("variant", "no_data")]))
        else:
            ws.text(json.dumps({"type": "exit", "data": {"exit_code": code}}))
        if self.fault == "ws_after_exit":
            ws.binary(b"\x01late output")
            ws.text(json.dumps({"type": "exit", "data": {"exit_code": 99}}))
        if self.fault == "ws_no_close":
            ws.sent_close = True
            return None
        return ws.close(1000)

    def patience(self, seconds):
        return self.params.get("seconds", 30) if self.fault == "ws_no_close" else seconds
