#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the stand-in of E2B does what the recorded service does, sees what is wrong, and misbehaves.

    e2b_selftest.py [TEST...]
"""
import base64
import io
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2b_server.py")
API = {"X-API-Key": "e2b_00", "User-Agent": "selftest"}


class Answer:
    def __init__(self, status, headers, body, ended):
        self.status, self.headers, self.body, self.ended = status, headers, body, ended

    def json(self):
        return json.loads(self.body)

    def envelopes(self):
        data, found = self.body, []
        while data:
            flag, length = struct.unpack(">BI", data[:5])
            found.append((flag, json.loads(data[5:5 + length])))
            data = data[5 + length:]
        return found


class Client:
    """One connection; reads an answer whole and says how it ended: ok, eof or reset."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), 20)
        self.port = port
        self.buffer = b""

    def fill(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError()
        self.buffer += data

    def line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def take(self, size):
        while len(self.buffer) < size:
            self.fill()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def raw(self, data):
        self.sock.sendall(data)
        answer = Answer(0, {}, b"", "ok")
        try:
            self.read(answer)
        except ConnectionResetError:
            answer.ended = "reset"
        except EOFError:
            answer.ended = "eof"
        return answer

    def read(self, answer):
        answer.status = int(self.line().split()[1])
        while line := self.line():
            name, _, value = line.decode().partition(": ")
            answer.headers[name.lower()] = value
        if answer.headers.get("transfer-encoding") == "chunked":
            while size := int(self.line(), 16):
                answer.body += self.take(size)
                self.take(2)
            self.take(2)
        elif "content-length" in answer.headers:
            left = int(answer.headers["content-length"])
            while left > len(answer.body):
                answer.body += self.take(min(max(len(self.buffer), 1), left - len(answer.body)))
        elif answer.status not in (204, 304):
            while True:
                answer.body += self.take(max(len(self.buffer), 1))

    def send(self, method, target, headers, body=None, chunked=False):
        lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        data = b""
        if body is not None and chunked:
            lines.append("Transfer-Encoding: chunked")
            data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        elif body is not None:
            lines.append(f"Content-Length: {len(body)}")
            data = body
        return self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + data)


class Case(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="e2b-selftest-")
        cls.violations = cls.directory + "/violations"
        cls.log = cls.directory + "/log"
        cls.server = subprocess.Popen([sys.executable, SERVER, "--dir", cls.directory + "/d", "--log",
                                       cls.log,
                                       "--violations", cls.violations, *cls.options],
                                      stdout=subprocess.PIPE)
        cls.port = int(cls.server.stdout.readline().split()[1])

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        status = cls.server.wait(20)
        cls.server.stdout.close()
        left = os.listdir(cls.directory + "/d")
        shutil.rmtree(cls.directory)
        assert status == 0 and not left, f"status {status}, left: {left}"

    def setUp(self):
        self.client = Client(self.port)
        self.faults([])

    def tearDown(self):
        self.client.sock.close()
        self.assertEqual(self.take_violations(), [])

    def take_violations(self):
        if not os.path.exists(self.violations):
            return []
        with open(self.violations, encoding="utf-8") as file:
            lines = file.read().splitlines()
        os.unlink(self.violations)
        return lines

    def faults(self, rules):
        self.assertEqual(self.admin("POST", "faults", rules).status, 200)

    def admin(self, method, what, body=None):
        client = Client(self.port)
        try:
            return client.send(method, "/__test/" + what, {},
                               None if body is None else json.dumps(body).encode())
        finally:
            client.sock.close()

    def api(self, method, target, body=None, headers=None, raw=None, chunked=True):
        headers = {**API, **(headers or {})}
        if body is not None or raw is not None:
            headers.setdefault("Content-Type", "application/json")
            raw = raw if raw is not None else json.dumps(body, separators=(",", ":")).encode()
        return self.client.send(method, target, headers, raw, chunked)

    def create(self, **more):
        answer = self.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60, **more})
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json()

    def head(self, sandbox, **more):
        head = {"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49983",
                "User-Agent": "selftest",
                "X-Access-Token": sandbox["envdAccessToken"], **more}
        return {name: value for name, value in head.items() if value is not None}

    def rpc(self, sandbox, method, message, client=None, **more):
        package = "process" if method in ("List", "SendInput", "CloseStdin", "SendSignal",
                                          "Update") else "filesystem"
        target = f"/{package}.{package.capitalize()}/{method}"
        head = self.head(sandbox, **{"Content-Type": "application/json", "Connect-Protocol-Version": "1",
                                     **more})
        return (client or self.client).send("POST", target, head, json.dumps(message).encode())

    def stream(self, sandbox, method, message, seconds=None, client=None, **more):
        package = "filesystem.Filesystem" if method == "WatchDir" else "process.Process"
        head = self.head(sandbox, **{"Content-Type": "application/connect+json",
                                     "Connect-Protocol-Version": "1",
                                     "Keepalive-Ping-Interval": "50", **more})
        if seconds:
            head["Connect-Timeout-Ms"] = str(int(seconds * 1000))
        data = json.dumps(message).encode()
        return (client or self.client).send("POST", f"/{package}/{method}", head,
                                            struct.pack(">BI", 0, len(data)) + data)

    def run_command(self, sandbox, command, seconds=20, **more):
        request = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": False}
        return self.stream(sandbox, "Start", request, seconds, **more)

    def output(self, answer, kind="stdout"):
        self.assertEqual(answer.ended, "ok")
        events = [message.get("event", {}).get("data", {}) for _, message in answer.envelopes()]
        return b"".join(base64.b64decode(data[kind]) for data in events if kind in data)

    def begin(self, sandbox, request, method="Start", seconds=None):
        """A stream in its own connection; its envelopes are read one by one."""
        client = Client(self.port)
        self.addCleanup(client.sock.close)
        data = json.dumps(request).encode()
        package = "filesystem.Filesystem" if method == "WatchDir" else "process.Process"
        head = self.head(sandbox, **{"Content-Type": "application/connect+json",
                                     "Connect-Protocol-Version": "1"})
        if seconds:
            head["Connect-Timeout-Ms"] = str(int(seconds * 1000))
        text = [f"POST /{package}/{method} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        text += [f"{k}: {v}" for k, v in head.items()] + [f"Content-Length: {len(data) + 5}", "", ""]
        client.sock.sendall("\r\n".join(text).encode() + struct.pack(">BI", 0, len(data)) + data)
        self.assertEqual(client.line().split()[1], b"200")
        while client.line():
            pass
        return client

    @staticmethod
    def next(client):
        size = int(client.line(), 16)
        data = client.take(size + 2)
        return json.loads(data[5:-2])


class Control(Case):
    def test_as_recorded(self):
        made = self.create(metadata={"suite": "drive", "a b": "x&y=z"}, envVars={"FROM_CREATE": "yes"})
        self.assertEqual(list(made), ["templateID", "sandboxID", "clientID", "envdVersion",
                                      "envdAccessToken",
                                      "trafficAccessToken", "domain"])
        self.assertRegex(made["sandboxID"], "^i[a-z0-9]{20}$")
        self.assertRegex(made["envdAccessToken"], "^[0-9a-f]{64}$")
        sid = made["sandboxID"]
        answer = self.api("POST", f"/sandboxes/{sid}/timeout", {"timeout": 300})
        self.assertEqual((answer.status, answer.body), (204, b""))
        self.assertNotIn("content-length", answer.headers)
        self.assertEqual(self.api("POST", f"/v2/sandboxes/{sid}/connect", {}).json(), made)
        answer = self.api("POST", "/v2/sandboxes/inope/connect", {})
        self.assertEqual(answer.body,
                         b'{"code":404,"message":"Sandbox \\"inope\\" doesn\'t exist or you don\'t '
                         b'have access to it"}')
        self.assertEqual(self.api("POST", f"/sandboxes/{sid}/pause", {}).status, 204)
        detail = self.api("GET", f"/sandboxes/{sid}").json()
        self.assertEqual(list(detail), ["templateID", "alias", "sandboxID", "clientID", "startedAt",
                                        "endAt",
                                        "cpuCount", "memoryMB", "diskSizeMB", "envdVersion", "state",
                                        "metadata",
                                        "envdAccessToken", "domain", "lifecycle"])
        self.assertEqual((detail["state"], detail["lifecycle"]), ("paused", {"autoResume": False,
                                                                             "onTimeout": "kill"}))
        answer = self.api("POST", f"/sandboxes/{sid}/pause", {})
        self.assertEqual(answer.json(), {"code": 409,
                                         "message": f"Error pausing sandbox - sandbox '{sid}' is "
                                         "already paused"})
        self.assertEqual(self.api("POST", f"/v2/sandboxes/{sid}/connect", {"timeout": 60}).status, 201)
        self.assertEqual(len(self.api("GET", f"/sandboxes/{sid}/metrics").json()), 1)
        self.assertEqual(self.api("PUT", f"/sandboxes/{sid}/network",
                                  {"allowOut": ["1.1.1.1"], "denyOut": ["0.0.0.0/0"]}).status, 204)
        self.assertEqual(self.api("GET", f"/sandboxes/{sid}").json()["network"]["allowOut"], ["1.1.1.1"])
        self.assertEqual(self.api("DELETE", f"/sandboxes/{sid}").status, 204)
        self.assertEqual(self.api("DELETE", f"/sandboxes/{sid}").status, 404)
        answer = self.api("POST", "/v2/sandboxes", {"templateID": "missing-template"})
        self.assertEqual(answer.body, b'{"code":404,"message":"template \'missing-template\' not found"}')
        self.assertEqual(self.api("GET", "/templates/aliases/base").body,
                         b'{"public":true,"templateID":"base"}')
        v1 = self.api("POST", "/sandboxes", {"templateID": "base"}).json()
        self.assertNotIn("envdAccessToken", v1)
        v1["envdAccessToken"] = None
        self.assertEqual(self.output(self.run_command(v1, "echo x")), b"x\n")

    def test_lists(self):
        ids = [self.create(metadata={"list": "yes", "a b": "x&y=z"})["sandboxID"] for _ in range(3)]
        self.create(metadata={"list": "no"})
        target = "/v2/sandboxes?metadata=list%3Dyes%26a%252520b%3Dx%252526y%25253Dz&state=running,paused&limit=2"
        first = self.api("GET", target)
        self.assertEqual(first.headers["x-total-running"], "3")
        second = self.api("GET", f"{target}&nextToken={first.headers['x-next-token']}")
        self.assertNotIn("x-next-token", second.headers)
        self.assertEqual([s["sandboxID"] for s in first.json() + second.json()], ids[::-1])
        self.assertEqual(self.api("GET", "/v2/sandboxes?nextToken=zzz").status, 400)
        self.assertEqual(self.api("GET", "/v2/sandboxes?metadata=a%20b%3Dx").status, 400)
        self.assertRegex(self.take_violations()[0], "three deep")

    def test_end_of_time(self):
        kill, pause = self.create(timeout=1), self.create(timeout=1, autoPause=True)
        wake = self.create(timeout=1, autoPause=True, autoResume={"enabled": True})
        time.sleep(1.3)
        self.assertEqual(self.api("GET", f"/sandboxes/{kill['sandboxID']}").status, 404)
        self.assertEqual(self.api("GET", f"/sandboxes/{pause['sandboxID']}").json()["state"], "paused")
        self.assertEqual(self.rpc(pause, "List", {}).status, 502)
        self.assertEqual(self.rpc(wake, "List", {}).status, 200)

    def test_snapshot_and_fork(self):
        made = self.create()
        self.output(self.run_command(made, "echo kept > f"))
        answer = self.api("POST", f"/sandboxes/{made['sandboxID']}/snapshots", {"name": "snap1"})
        self.assertEqual(answer.body, b'{"snapshotID":"snap1:default","names":["snap1"]}')
        of = f"/snapshots?sandboxID={made['sandboxID']}"
        self.assertEqual(self.api("GET", of).body, b'[{"snapshotID":"snap1:default","names":["snap1"]}]')
        again = self.create(templateID="snap1:default")
        self.assertEqual(self.output(self.run_command(again, "cat f")), b"kept\n")
        forked = self.api("POST", f"/sandboxes/{made['sandboxID']}/fork", {}).json()[0]["sandbox"]
        self.assertEqual(self.output(self.run_command(forked, "cat f")), b"kept\n")
        self.assertEqual(self.api("DELETE", "/templates/snap1%3Adefault").status, 204)

    def build(self, **body):
        made = self.api("POST", "/v3/templates", {"name": f"tpl{time.time_ns()}"}).json()
        self.assertEqual(list(made), ["templateID", "buildID", "public", "names", "aliases", "tags"])
        if "archive" in body:
            target = f"/templates/{made['templateID']}/files/abc1"
            url = self.api("GET", target).json()["url"]
            path = url[url.index("/", 8):]
            self.assertEqual(self.client.send("PUT", path, {"User-Agent": "x"},
                                              body.pop("archive")).status, 200)
            self.assertEqual(self.api("GET", target).json(), {"present": True})
        build = f"/templates/{made['templateID']}/builds/{made['buildID']}"
        answer = self.api("POST", "/v2" + build, body)
        self.assertEqual((answer.status, answer.headers["content-length"]), (202, "0"))
        entries, seen = [], []
        while True:
            status = self.api("GET", f"{build}/status?logsOffset={len(entries)}").json()
            entries += status["logEntries"]
            seen += [status["status"]] if status["status"] not in seen else []
            if status["status"] in ("ready", "error") and not status["logEntries"]:
                return made, seen, [entry["message"] for entry in entries], status
            time.sleep(0.02)

    def test_builds(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            member = tarfile.TarInfo("src/one")
            member.size = 3
            tar.addfile(member, io.BytesIO(b"one"))
        steps = [{"type": "ENV", "args": ["A", "1"], "force": False},
                 {"type": "WORKDIR", "args": ["/opt/app"]},
                 {"type": "COPY", "args": ["src", "here", "", ""], "filesHash": "abc1", "force": False},
                 {"type": "RUN", "args": ["seq 250; echo $A > /opt/made; id -un", "root"], "force": False}]
        made, seen, lines, _ = self.build(fromTemplate="base", steps=steps, force=False,
                                          archive=packed.getvalue())
        self.assertEqual(seen, ["waiting", "building", "ready"])
        self.assertIn("250", lines)
        sandbox = self.create(templateID=made["names"][0])
        self.assertEqual(self.output(self.run_command(sandbox, "cat /opt/made here/one; echo $A; pwd")),
                         b"1\none1\n/opt/app\n")
        made, seen, lines, status = self.build(fromImage="debian",
                                               steps=[{"type": "RUN", "args": ["exit 4"]}])
        self.assertEqual(seen[-1], "error")
        self.assertEqual((status["reason"]["message"], status["reason"]["step"]),
                         ("failed to run command 'exit 4': exit status 4", "1"))
        self.assertEqual(self.api("POST", "/v2/sandboxes", {"templateID": made["names"][0]}).status, 404)


class Violations(Case):
    def bad(self, answer, pattern, status=400):
        self.assertEqual(answer.status, status, answer.body)
        lines = self.take_violations()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], pattern)

    def test_control(self):
        body = {"templateID": "base"}
        self.bad(self.api("POST", "/v2/sandboxes", {**body, "secure": True}), "unknown member 'secure'")
        self.bad(self.api("POST", "/v2/sandboxes", {**body, "timeout": "60"}), "timeout is not of type int")
        self.bad(self.api("POST", "/v2/sandboxes", {}), "no 'templateID'")
        self.bad(self.api("POST", "/v2/sandboxes", raw=b'{"templateID":"a","templateID":"b"}'), "twice")
        self.bad(self.api("POST", "/v2/sandboxes", body,
                          {"Content-Type": "application/json; charset=utf-8"}),
                 "Content-Type")
        self.bad(self.api("POST", "/v2/sandboxes", body, {"Accept-Encoding": "gzip"}), "Accept-Encoding")
        self.bad(self.api("POST", "/v2/sandboxes", body, {"X-Access-Token": "x"}), "x-access-token")
        self.bad(self.client.send("GET", "/v2/sandboxes", {"User-Agent": "x"}), "authorization", 401)
        self.bad(self.client.send("GET", "/v2/sandboxes", {"X-API-Key": "x"}), "User-Agent")
        self.bad(self.api("GET", "/v2/sandboxes?stat=running"), "unknown query")
        self.bad(self.api("GET", "/nowhere"), "no GET", 404)
        self.bad(self.api("GET", "/v2/sandboxes?state=running&state=paused"), "more than once")

    def test_http(self):
        host = f"Host: 127.0.0.1:{self.port}\r\n"
        for text, pattern in (("GET /v2/sandboxes HTTP/1.0\r\n" + host, "request line"),
                              ("GET /v2/sandboxes HTTP/1.1\r\n", "no Host"),
                              ("GET /v2/sandboxes HTTP/1.1\r\nHost: a:1\r\n", "Host: a:1"),
                              ("GET /%zz HTTP/1.1\r\n" + host, "escape"),
                              ("GET / HTTP/1.1\r\n" + host + " folded: x\r\n", "header line"),
                              ("POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                               "both")):
            client = Client(self.port)
            self.bad(client.raw(text.encode() + b"\r\n"), pattern)
            client.sock.close()

    def test_envd(self):
        sandbox, other = self.create(), self.create()
        self.bad(self.rpc(sandbox, "List", {}, **{"X-API-Key": "x"}), "API key")
        self.bad(self.rpc(sandbox, "List", {}, **{"X-Access-Token": None}), "no X-Access-Token")
        self.bad(self.rpc(sandbox, "List", {}, **{"X-Access-Token": other["envdAccessToken"]}), "another")
        self.assertEqual(self.rpc(sandbox, "List", {}, **{"X-Access-Token": "no"}).status, 401)
        self.bad(self.rpc(sandbox, "List", {}, **{"E2b-Sandbox-Port": None}), "E2b-Sandbox-Port")
        self.bad(self.rpc(sandbox, "List", {}, **{"Connect-Protocol-Version": None}), "Connect-Protocol")
        self.bad(self.rpc(sandbox, "List", {}, **{"Connect-Timeout-Ms": "1.5"}), "connect-timeout-ms")
        self.bad(self.rpc(sandbox, "List", {}, **{"Content-Type": "application/connect+json"}),
                 "Content-Type", 415)
        self.bad(self.rpc(sandbox, "Stat", {"path": "/", "follow": True}), "unknown member")
        self.bad(self.rpc(sandbox, "SendInput", {"process": {"pid": 1}, "input": {"stdin": "_w"}}),
                 "base64")
        self.bad(self.rpc(sandbox, "List", {}, **{"Authorization": "Basic cm9vdA=="}), "Authorization")
        head = self.head(sandbox, **{"Content-Type": "application/connect+json",
                                     "Connect-Protocol-Version": "1"})
        for data, pattern in ((b"\x01\0\0\0\2{}", "flag 1"), (b"\0\0\0\0\3{}", "length 3"),
                              (b"{}", "envelope")):
            self.bad(self.client.send("POST", "/process.Process/Connect", head, data), pattern)
        self.bad(self.stream(sandbox, "Connect", {"process": {"pid": 1, "tag": "x"}}), "exactly one")
        self.bad(self.client.send("POST", "/files?path=a+b", {**self.head(sandbox), "Content-Type":
                                  "application/octet-stream"}, b"x"), "not escaped")
        form = {**self.head(sandbox), "Content-Type": "multipart/form-data; boundary=b"}
        self.bad(self.client.send("POST", "/files", form, b"--b\r\nx\r\n\r\n\r\n--b--\r\n"), "bad header")
        self.bad(self.client.send("POST", "/init", self.head(sandbox), b"{}"), "no POST /init", 404)


if __name__ == "__main__":
    # By its name: the classes of this file are then those it imports
    unittest.main(module="e2b_selftest_envd")
