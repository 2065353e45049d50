# SPDX-License-Identifier: Apache-2.0
"""Misbehaviour on demand for the stand-ins: rules that say which requests meet which fault.

A rule is {"match": REGEX, "fault": NAME, "times": N, "skip": N, ...parameters}. The regex is searched
in "METHOD TARGET". The first `skip` requests that match are spared, then `times` (1; null for ever) meet
the fault. Rules of different names that match the same request all apply.

Answered instead of the real thing; the request is not carried out unless "carry" is true:

    status        code, body (text or JSON), headers {}, type
    reset_before  RST; with "early" as soon as the head was read
    hang          never answers
    garbage       "text" that is not HTTP, then FIN
    redirect      location, code (302)

Carried out, then answered badly:

    reset_after   RST before the first byte of the answer
    cut_after     FIN before the first byte of the answer
    garbage_json  "body" ('{"code": ') in place of the JSON
    oversized     mib (64) of JSON; with "length" under a Content-Length, else chunked
    wrong_type    the right body as "type" (text/html)
    bad_length    Content-Length is "more" (10) bytes too high, then FIN
    close_after   a right answer, then FIN without having said so
    eof_framing   the body ends with the connection, no length and no chunks
    slow          rate bytes a second
    split         1 to 3 bytes at a time, each in its own segment and chunk
    reset_mid     RST after n bytes of the body
    cut_mid       FIN after n bytes of the body
    delay         ms before it is carried out
    delay_after   ms after it was carried out

Every other name is for the stand-in itself.
"""
import re
import threading
import time

INSTEAD = ("status", "reset_before", "hang", "garbage", "redirect")
KNOWN = INSTEAD + ("reset_after", "cut_after", "garbage_json", "oversized", "wrong_type", "bad_length",
                   "close_after", "eof_framing", "slow", "split", "reset_mid", "cut_mid", "delay",
                   "delay_after")


class Faults:
    """The rules of a server."""

    def __init__(self, more_names=()):
        self.names = set(KNOWN) | set(more_names)
        self.lock = threading.Lock()
        self.rules = []

    def set(self, rules, append=False):
        if not isinstance(rules, list):
            raise ValueError("not a list of rules")
        made = []
        for rule in rules:
            if rule.get("fault") not in self.names:
                raise ValueError(f"no such fault: {rule.get('fault')}")
            left = rule.get("times", 1)
            made.append({"rule": rule, "regex": re.compile(rule.get("match", "")), "left": left,
                         "skip": rule.get("skip", 0), "hits": 0})
        with self.lock:
            self.rules = (self.rules if append else []) + made

    def meet(self, method, target):
        """The faults this request meets, {name: rule}."""
        found = {}
        with self.lock:
            for rule in self.rules:
                name = rule["rule"]["fault"]
                if name in found or not rule["regex"].search(f"{method} {target}"):
                    continue
                if rule["skip"] > 0:
                    rule["skip"] -= 1
                elif rule["left"] is None or rule["left"] > 0:
                    if rule["left"] is not None:
                        rule["left"] -= 1
                    rule["hits"] += 1
                    found[name] = rule["rule"]
        return found

    def state(self):
        with self.lock:
            return [{"rule": r["rule"], "left": r["left"], "skip": r["skip"], "hits": r["hits"]}
                    for r in self.rules]


class Shaper:
    """Cuts the body of an answer into the pieces in which it leaves, and ends it early."""

    def __init__(self, faults):
        self.split = "split" in faults
        self.rate = faults["slow"].get("rate", 100) if "slow" in faults else None
        self.limit = None
        self.ending = None
        for name, ending in (("reset_mid", "reset"), ("cut_mid", "cut")):
            if name in faults:
                self.limit = faults[name].get("n", 10)
                self.ending = ending
        self.count = 0

    def is_over(self):
        return self.limit is not None and self.limit <= 0

    def pieces(self, data):
        data = memoryview(data)
        if self.limit is not None:
            data = data[:max(self.limit, 0)]
            self.limit -= len(data)
        size = 1 << 20
        if self.rate:
            size = max(1, self.rate // 20)
        while data:
            if self.split:
                self.count += 1
                size = 1 + self.count % 3
            yield data[:size]
            if self.rate:
                time.sleep(len(data[:size]) / self.rate)
            data = data[size:]
