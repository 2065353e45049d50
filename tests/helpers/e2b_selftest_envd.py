# SPDX-License-Identifier: Apache-2.0
"""The data plane's part of e2b_selftest, and the faults."""
import base64
import hashlib
import subprocess
import tempfile
import time

from e2b_selftest import Case, Client, Control, Violations


class Processes(Case):
    def test_as_recorded(self):
        sandbox = self.create(envVars={"A": "1", "B": "1"})
        answer = self.run_command(sandbox, "echo out; sleep 0.05; echo err >&2")
        self.assertEqual(answer.headers["content-type"], "application/connect+json")
        (_, start), *rest = answer.envelopes()
        self.assertGreater(start["event"]["start"]["pid"], 0)
        self.assertEqual(rest, [(0, {"event": {"data": {"stdout": "b3V0Cg=="}}}),
                                (0, {"event": {"data": {"stderr": "ZXJyCg=="}}}),
                                (0, {"event": {"end": {"exited": True, "status": "exit status 0"}}}),
                                (2, {})])
        answer = self.run_command(sandbox, "exit 3").envelopes()
        self.assertEqual(answer[-2][1]["event"]["end"], {"exitCode": 3, "exited": True,
                                                         "status": "exit status 3",
                                                         "error": "exit status 3"})
        answer = self.run_command(sandbox, "true", Authorization="Basic Z2hvc3Q6")
        self.assertEqual((answer.status, answer.envelopes()), (200, [(2, {"error": {
            "code": "unauthenticated", "message": "invalid username: 'ghost'"}})]))
        answer = self.stream(sandbox, "Connect", {"process": {"pid": 999999}})
        self.assertEqual(answer.envelopes(), [(2, {"error": {
            "code": "not_found", "message": "process with pid 999999 not found"}})])
        answer = self.rpc(sandbox, "SendSignal", {"process": {"pid": 999999}, "signal": "SIGNAL_SIGKILL"})
        self.assertEqual((answer.status, answer.body),
                         (404, b'{"code":"not_found","message":"process with pid 999999 not found"}'))
        request = {"process": {"cmd": "env", "envs": {"B": "2"}, "cwd": "/tmp"}, "stdin": False}
        lines = self.output(self.stream(sandbox, "Start", request)).decode().split()
        for line in ("A=1", "B=2", "HOME=/home/user", "USER=user", "E2B_SANDBOX=true"):
            self.assertIn(line, lines)
        request["process"]["cwd"] = "/nope"
        self.assertEqual(self.stream(sandbox, "Start", request).envelopes(), [(2, {"error": {
            "code": "invalid_argument", "message": "cwd '/nope' does not exist"}})])
        answer = self.run_command(sandbox, "id -un; pwd", Authorization="Basic cm9vdDo=")
        self.assertIn(b"/root\n", self.output(answer))
        answer = self.stream(sandbox, "Start", {"process": {"cmd": "nope"}, "stdin": False}).envelopes()
        self.assertEqual(answer[-2][1]["event"]["end"]["exitCode"], 127)

    def test_input_and_signals(self):
        sandbox = self.create()
        client = self.begin(sandbox, {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "cat"]},
                                      "tag": "t"})
        pid = self.next(client)["event"]["start"]["pid"]
        self.assertEqual(self.rpc(sandbox, "List", {}).json(), {"processes": [
            {"config": {"cmd": "/bin/bash", "args": ["-l", "-c", "cat"]}, "pid": pid, "tag": "t"}]})
        second = self.begin(sandbox, {"process": {"tag": "t"}}, "Connect")
        self.assertEqual(self.next(second), {"event": {"start": {"pid": pid}}})
        self.assertEqual(self.rpc(sandbox, "SendInput", {"process": {"pid": pid}, "input": {
            "stdin": "aGkK"}}).body, b"{}")
        for stream in (client, second):
            self.assertEqual(self.next(stream), {"event": {"data": {"stdout": "aGkK"}}})
        self.assertEqual(self.rpc(sandbox, "CloseStdin", {"process": {"pid": pid}}).body, b"{}")
        for stream in (client, second):
            self.assertTrue(self.next(stream)["event"]["end"]["exited"])
            self.assertEqual(self.next(stream), {})
        late = self.stream(sandbox, "Connect", {"process": {"pid": pid}}).envelopes()
        self.assertEqual([list(m.get("event", m)) for _, m in late], [["start"], ["end"], []])
        client = self.begin(sandbox, {"process": {"cmd": "sleep", "args": ["100"]}})
        pid = self.next(client)["event"]["start"]["pid"]
        client.sock.close()
        time.sleep(0.1)
        second = self.begin(sandbox, {"process": {"pid": pid}}, "Connect")
        self.next(second)
        self.rpc(sandbox, "SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGTERM"})
        self.assertEqual(self.next(second), {"event": {"end": {
            "exitCode": -1, "status": "signal: terminated", "error": "signal: terminated"}}})

    def test_terminal(self):
        sandbox = self.create()
        client = self.begin(sandbox, {"process": {"cmd": "/bin/bash", "args": ["-i", "-l"], "envs": {
            "TERM": "dumb", "PS1": ""}}, "pty": {"size": {"cols": 80, "rows": 24}}})
        pid = self.next(client)["event"]["start"]["pid"]
        self.assertEqual(self.rpc(sandbox, "SendInput", {"process": {"pid": pid}, "input": {
            "stdin": "aGkK"}}).status, 500)
        self.rpc(sandbox, "Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 100, "rows": 30}}})
        text = base64.b64encode(b"stty size; tty; exit 5\n").decode()
        self.rpc(sandbox, "SendInput", {"process": {"pid": pid}, "input": {"pty": text}})
        seen = b""
        while "data" in (event := self.next(client)["event"]):
            seen += base64.b64decode(event["data"]["pty"])
        self.assertIn(b"30 100\r\n", seen)
        self.assertIn(b"/dev/pts/", seen)
        self.assertEqual(event["end"]["exitCode"], 5)

    def test_deadline(self):
        sandbox = self.create()
        begun = time.monotonic()
        answer = self.run_command(sandbox, "echo x; exec sleep 100", 0.5)
        self.assertLess(time.monotonic() - begun, 2)
        self.assertEqual(answer.envelopes()[-1], (2, {"error": {
            "code": "deadline_exceeded", "message": "context deadline exceeded"}}))
        time.sleep(0.1)
        self.assertEqual(self.rpc(sandbox, "List", {}).json(), {})

    def test_pause_and_death(self):
        sandbox = self.create()
        request = {"process": {"cmd": "/bin/bash", "args": ["-c",
                                                            "while date +%N >> t; do sleep 0.02; done"]}}
        client = self.begin(sandbox, request)
        pid = self.next(client)["event"]["start"]["pid"]
        time.sleep(0.2)
        self.assertEqual(self.api("POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {}).status, 204)
        with self.assertRaises(EOFError):
            self.next(client)
        root = self.admin("GET", "state").json()["sandboxes"]
        path = [s["root"] for s in root if s["sandboxID"] == sandbox["sandboxID"]][0] + "/home/user/t"
        with open(path, encoding="ascii") as file:
            file.read()
            time.sleep(0.2)
            self.assertEqual(file.read(), "")
            for method in ("List", "Stat"):
                answer = self.rpc(sandbox, method, {"path": "/"} if method == "Stat" else {})
                self.assertEqual((answer.status, answer.json()), (502, {
                    "sandboxId": sandbox["sandboxID"], "message": "The sandbox was not found", "code": 502}))
            self.assertEqual(self.api("POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {}).status,
                             201)
            time.sleep(0.2)
            self.assertNotEqual(file.read(), "")
        self.assertEqual(self.rpc(sandbox, "List", {}).json()["processes"][0]["pid"], pid)
        client = self.begin(sandbox, {"process": {"pid": pid}}, "Connect")
        self.next(client)
        self.assertEqual(self.admin("POST", "kill", {"sandbox": sandbox["sandboxID"]}).status, 200)
        with self.assertRaises(EOFError):
            self.next(client)
        self.assertEqual(self.client.send("GET", "/health", self.head(sandbox)).status, 502)
        self.assertEqual(self.api("GET", f"/sandboxes/{sandbox['sandboxID']}").status, 404)

    def test_much_output(self):
        sandbox = self.create()
        answer = self.run_command(sandbox, "head -c 4000000 /dev/zero", 30)
        self.assertEqual(len(self.output(answer)), 4000000)


class Files(Case):
    def test_rpc(self):
        sandbox = self.create()
        answer = self.rpc(sandbox, "MakeDir", {"path": "/tmp/d/e/f"}).json()["entry"]
        self.assertEqual((answer["name"], answer["type"], answer["mode"], answer["permissions"],
                          answer["owner"]),
                         ("f", "FILE_TYPE_DIRECTORY", 493, "drwxr-xr-x", "user"))
        answer = self.rpc(sandbox, "MakeDir", {"path": "/tmp/d/e/f"})
        self.assertEqual((answer.status, answer.body), (409,
                                                        b'{"code":"already_exists","message":"directory '
                                                        b'already exists: /tmp/d/e/f"}'))
        self.output(self.run_command(sandbox, "cd /tmp/d; printf hello > file; ln -s /tmp/d/e link; "
                                     "ln -s nowhere broken; touch empty; chmod 600 empty"))
        entries = {e["name"]: e for e in self.rpc(sandbox, "ListDir",
                                                  {"path": "/tmp/d", "depth": 2}).json()["entries"]}
        self.assertEqual(sorted(entries), ["broken", "e", "empty", "f", "file", "link"])
        self.assertEqual((entries["link"]["type"], entries["link"]["permissions"],
                          entries["link"]["symlinkTarget"]),
                         ("FILE_TYPE_DIRECTORY", "Lrwxrwxrwx", "/tmp/d/e"))
        self.assertNotIn("type", entries["broken"])
        self.assertNotIn("size", entries["empty"])
        self.assertEqual((entries["file"]["size"], entries["empty"]["mode"]), ("5", 384))
        moved = self.rpc(sandbox, "Move", {"source": "/tmp/d/file", "destination": "/tmp/d/g/new"}).json()
        self.assertEqual(moved, self.rpc(sandbox, "Stat", {"path": "/tmp/d/g/new"}).json())
        self.assertEqual(self.rpc(sandbox, "Stat", {"path": "/etc/passwd"}).json()["entry"]["owner"],
                         self.rpc(sandbox, "Stat", {"path": "/etc/group"}).json()["entry"]["owner"])
        self.assertEqual(self.rpc(sandbox, "Remove", {"path": "/usr/bin"}).status, 403)
        self.assertEqual(self.rpc(sandbox, "MakeDir", {"path": "/dev/x"}).status, 403)
        for _ in range(2):
            self.assertEqual(self.rpc(sandbox, "Remove", {"path": "/tmp/d"}).body, b"{}")
        for method, message in (("Stat", "file not found: lstat /tmp/d: no such file or directory"),
                                ("ListDir", "path not found: lstat /tmp/d: no such file or directory")):
            answer = self.rpc(sandbox, method, {"path": "/tmp/d"})
            self.assertEqual((answer.status, answer.json()), (404,
                                                              {"code": "not_found", "message": message}))
        answer = self.rpc(sandbox, "Move", {"source": "/tmp/d", "destination": "/tmp/z"}).json()
        self.assertEqual(answer["message"],
                         "source file not found: rename /tmp/d /tmp/z: no such file or directory")

    def test_no_way_out(self):
        sandbox = self.create()
        with tempfile.NamedTemporaryFile() as outside:
            self.output(self.run_command(sandbox, f"ln -s {outside.name} l; ln -s ../../../../../.. up"))
            self.assertEqual(self.client.send("GET", "/files?path=l", self.head(sandbox)).status, 404)
            name = outside.name.replace("/", "%2F")
            self.assertEqual(self.client.send("GET", f"/files?path=up{name}", self.head(sandbox)).status,
                             404)

    def upload(self, sandbox, target, body, content_type="application/octet-stream", **more):
        return self.client.send("POST", target, self.head(sandbox,
                                                          **{"Content-Type": content_type, **more}), body)

    def test_http(self):
        sandbox = self.create()
        form = b""
        for name, content in (("dir1/a b.txt", b"h\xc3\xa9llo"), ("/tmp/m/2", b"\0\xff\r\n--"), ("e", b"")):
            form += (f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                     "Content-Type: application/octet-stream\r\n\r\n").encode() + content + b"\r\n"
        answer = self.upload(sandbox, "/files", form + b"--b--\r\n", "multipart/form-data; boundary=b")
        self.assertEqual(answer.json(), [{"name": "a b.txt", "path": "/home/user/dir1/a b.txt",
                                          "type": "file"},
                                         {"name": "2", "path": "/tmp/m/2", "type": "file"},
                                         {"name": "e", "path": "/home/user/e", "type": "file"}])
        self.assertEqual(answer.headers["content-type"], "text/plain; charset=utf-8")
        answer = self.client.send("GET", "/files?path=%2Ftmp%2Fm%2F2", self.head(sandbox))
        self.assertEqual((answer.body, answer.headers["content-disposition"]), (b"\0\xff\r\n--",
                                                                                'inline; filename="2"'))
        answer = self.client.send("GET", "/files?path=%2Ftmp%2Fm%2F2",
                                  self.head(sandbox, Range="bytes=1-2"))
        self.assertEqual((answer.status, answer.body), (206, b"\xff\r"))
        big = bytes(range(256)) * 40000
        self.assertEqual(self.upload(sandbox, "/files?path=big", big).status, 200)
        self.assertEqual(self.client.send("GET", "/files?path=big", self.head(sandbox)).body, big)
        answer = self.client.send("GET", "/files?path=%2Fnope", self.head(sandbox))
        self.assertEqual((answer.status, answer.body), (404,
                                                        b'{"code":404,"message":"path \'/nope\' does not exist"}'))
        answer = self.client.send("GET", "/files?path=%2Fhome%2Fuser", self.head(sandbox))
        self.assertEqual((answer.status, answer.body), (400,
                                                        b'{"code":400,"message":"path \'/home/user\' is a '
                                                        b'directory"}'))
        self.assertEqual(self.upload(sandbox, "/files?path=%2Ftmp", b"x").status, 400)
        self.assertEqual(self.client.send("GET", "/files?path=a&username=ghost",
                                          self.head(sandbox)).status, 401)
        answer = self.upload(sandbox, "/files?path=meta", b"x", **{"X-Metadata-Kind": "a"})
        if answer.status == 200:
            self.assertEqual(self.rpc(sandbox, "Stat", {"path": "meta"}).json()["entry"]["metadata"],
                             {"kind": "a"})
        self.assertEqual(self.client.send("GET", "/health", self.head(sandbox)).status, 204)
        self.assertIn("mem_total", self.client.send("GET", "/metrics", self.head(sandbox)).json())
        self.assertEqual(self.client.send("GET", "/envs", self.head(sandbox)).json()["E2B_SANDBOX"], "true")
        self.assertIn(b"Name:", self.client.send("GET", "/files?path=%2Fproc%2F1%2Fstatus",
                                                 self.head(sandbox)).body)

    def test_signed(self):
        sandbox = self.create()
        self.upload(sandbox, "/files?path=%2Ftmp%2Fsu", b"signed")

        def target(operation, expiration=None):
            text = f"/tmp/su:{operation}::{sandbox['envdAccessToken']}" + (f":{expiration}" if expiration else "")
            value = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            value = value.replace("/", "%2F").replace("+", "%2B")
            return f"/files?path=%2Ftmp%2Fsu&signature=v1_{value}" + (
                f"&signature_expiration={expiration}" if expiration else "")

        head = {"User-Agent": "x"}
        self.assertEqual(self.client.send("GET", target("read"), head).body, b"signed")
        self.assertEqual(self.client.send("GET", target("write"), head).status, 401)
        self.assertEqual(self.client.send("GET", target("read", int(time.time()) - 5), head).status, 401)
        self.assertEqual(self.client.send("GET", target("read", int(time.time()) + 50), head).status, 200)
        # the signature is looked at first: of another file, of another end, without its end
        late = target("read", int(time.time()) + 50)
        for wrong in (late.replace("su&", "other&"), late.replace("expiration=", "expiration=9"),
                      late.partition("&signature_expiration")[0], late.replace("v1_", "v1_A"),
                      late.replace("&signature=", "&username=root&signature=")):
            answer = self.client.send("GET", wrong, head)
            self.assertEqual((answer.status, answer.json()["message"]), (401, "invalid signature"))
        written = self.client.send("POST", target("write"),
                                   {**head, "Content-Type": "application/octet-stream"}, b"again")
        self.assertEqual((written.status, self.client.send("GET", late, head).body), (200, b"again"))
        self.client.send("GET", late, {**head, "X-Access-Token": sandbox["envdAccessToken"]})
        self.assertRegex(self.take_violations()[0], "a token beside a signature")

    def test_watch(self):
        sandbox = self.create()
        self.rpc(sandbox, "MakeDir", {"path": "/tmp/w"})
        client = self.begin(sandbox, {"path": "/tmp/w", "recursive": True, "includeEntry": True},
                            "WatchDir")
        self.assertEqual(self.next(client), {"start": {}})
        self.run_command(sandbox,
                         "cd /tmp/w; echo x > n; mkdir sub; sleep 0.2; echo y > sub/n2; mv n m; rm m")
        seen = set()
        while ("m", "EVENT_TYPE_REMOVE") not in seen:
            event = self.next(client)["filesystem"]
            seen.add((event["name"], event["type"]))
            if event["type"] in ("EVENT_TYPE_REMOVE", "EVENT_TYPE_RENAME"):
                self.assertNotIn("entry", event)
        for event in (("n", "EVENT_TYPE_CREATE"), ("n", "EVENT_TYPE_WRITE"),
                      ("sub/n2", "EVENT_TYPE_CREATE"),
                      ("n", "EVENT_TYPE_RENAME"), ("m", "EVENT_TYPE_CREATE")):
            self.assertIn(event, seen)
        watcher = self.rpc(sandbox, "CreateWatcher", {"path": "/tmp/w"}).json()
        self.run_command(sandbox, "touch /tmp/w/later; sleep 0.3")
        events = self.rpc(sandbox, "GetWatcherEvents", watcher).json()["events"]
        self.assertEqual(events[0], {"name": "later", "type": "EVENT_TYPE_CREATE"})
        self.assertEqual(self.rpc(sandbox, "RemoveWatcher", watcher).body, b"{}")


class Faults(Case):
    def meet(self, name, **more):
        self.faults([{"match": ".", "fault": name, **more}])

    def get(self):
        client = Client(self.port)
        try:
            return client.send("GET", "/v2/sandboxes", {"X-API-Key": "x", "User-Agent": "x"})
        finally:
            client.sock.close()

    def test_rules(self):
        self.faults([{"match": "^GET /v2", "fault": "status", "code": 429, "headers": {"Retry-After": "1"},
                      "skip": 1,
                      "times": 2}])
        answers = [self.get() for _ in range(4)]
        self.assertEqual([a.status for a in answers], [200, 429, 429, 200])
        self.assertEqual(answers[1].headers["retry-after"], "1")
        self.assertEqual(self.admin("GET", "faults").json()[0]["hits"], 2)
        self.assertEqual(self.admin("POST", "faults", [{"fault": "nope"}]).status, 400)

    def test_plain(self):
        for name, more, ended in (("reset_before", {}, "reset"), ("reset_before", {"early": True}, "reset"),
                                  ("reset_after", {}, "reset"), ("cut_after", {}, "eof"),
                                  ("reset_mid", {"n": 1}, "reset"), ("cut_mid", {"n": 1}, "eof"),
                                  ("bad_length", {}, "eof")):
            self.meet(name, **more)
            self.assertEqual(self.get().ended, ended, name)
        self.meet("redirect", location="http://127.0.0.1:1/x", code=307)
        self.assertEqual(self.get().headers["location"], "http://127.0.0.1:1/x")
        self.meet("garbage_json")
        self.assertEqual(self.get().body, b'{"code": ')
        self.meet("wrong_type")
        self.assertEqual(self.get().headers["content-type"], "text/html")
        self.meet("oversized", mib=3)
        self.assertEqual(len(self.get().body), (3 << 20) + 4)
        self.meet("eof_framing")
        self.assertEqual(self.get().ended, "eof")
        self.meet("garbage")
        with self.assertRaises((ValueError, IndexError)):
            self.get()
        self.meet("expire", code=410)
        self.assertEqual(self.get().status, 410)
        self.meet("slow", rate=400)
        begun = time.monotonic()
        self.api("GET", "/sandboxes/inope")
        self.assertGreater(time.monotonic() - begun, 0.1)
        self.meet("close_after")
        answer = self.api("GET", "/v2/sandboxes")
        self.assertEqual((answer.status, answer.headers["connection"]), (200, "keep-alive"))
        self.assertEqual(self.client.sock.recv(1), b"")
        self.meet("hang")
        client = Client(self.port)
        client.sock.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            client.send("GET", "/v2/sandboxes", {"X-API-Key": "x", "User-Agent": "x"})
        client.sock.close()
        self.test_carried()

    def test_carried(self):
        count = len(self.get().json())
        for name in ("reset_before", "reset_after"):
            self.faults([{"match": "^POST", "fault": name}])
            client = Client(self.port)
            answer = client.send("POST", "/v2/sandboxes", {"X-API-Key": "x", "User-Agent": "x",
                                                           "Content-Type":
                                 "application/json"}, b'{"templateID":"base"}')
            self.assertEqual(answer.ended, "reset")
            client.sock.close()
        self.assertEqual(len(self.get().json()), count + 1)

    def test_streams(self):
        sandbox = self.create()

        def run(name, command="echo out", **more):
            self.meet(name, **more)
            client = Client(self.port)
            try:
                return self.run_command(sandbox, command, client=client)
            finally:
                client.sock.close()

        self.assertEqual([f for f, _ in run("no_trailer").envelopes()], [0, 0, 0])
        self.assertEqual([f for f, _ in run("double_trailer").envelopes()], [0, 0, 0, 2, 2])
        self.assertEqual(run("trailer_error", code="unavailable", message="m").envelopes()[1:],
                         [(2, {"error": {"code": "unavailable", "message": "m"}})])
        self.assertEqual([f for f, _ in run("trailer_error", after=None).envelopes()], [0, 0, 0, 2])
        self.assertEqual(run("start_not_first").envelopes()[0], (0, {"event": {"keepalive": {}}}))
        events = [m for _, m in run("keepalive", "sleep 0.5", ms=100).envelopes()]
        self.assertGreater(events.count({"event": {"keepalive": {}}}), 3)
        self.assertEqual(self.output(run("split")), b"out\n")
        self.assertEqual(run("bad_envelope", kind="flag").envelopes()[1][0], 1)
        self.assertIn(b"\0\x80\0\0\0{", run("bad_envelope", kind="huge").body)
        self.assertEqual(run("bad_envelope").ended, "ok")
        self.assertEqual(run("wrong_type").headers["content-type"], "text/html")
        self.assertEqual(run("reset_mid", n=40).ended, "reset")
        self.assertEqual(run("reset_after").ended, "reset")
        self.assertEqual(run("eof_framing").envelopes()[-1], (2, {}))
        self.assertGreater(len(run("oversized", mib=2).body), 2 << 20)
        self.assertIn(b'{"event": ', run("garbage_json").body)
        self.assertEqual([list(m.get("event", m)) for _, m in run("no_end").envelopes()],
                         [["start"], ["data"], []])
        end = run("snake").envelopes()[-2][1]["event"]["end"]
        self.assertEqual((end["exit_code"], "unknown_member" in end), ("0", True))
        self.meet("snake")
        entry = self.rpc(sandbox, "Stat", {"path": "/home/user"}).json()["entry"]
        self.assertEqual((entry["mode"], "modified_time" in entry), ("493", True))
        self.meet("status", code=404)
        self.assertEqual(self.rpc(sandbox, "List", {}).json()["code"], "not_found")
        self.meet("expire", real=True)
        self.assertEqual(self.rpc(sandbox, "List", {}).status, 502)
        self.assertEqual(self.api("GET", f"/sandboxes/{sandbox['sandboxID']}").status, 404)


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        cls.keys = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        pair = [cls.keys.name + "/cert", cls.keys.name + "/key"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out",
                        pair[0],
                        "-keyout", pair[1]], check=True, stderr=subprocess.DEVNULL)
        cls.options = ("--tls", *pair)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.keys.cleanup()

    def setUp(self):
        pass

    def tearDown(self):
        self.assertEqual(self.take_violations(), [])

    def curl(self, *args):
        return subprocess.run(["curl", "-sS", "--cacert", self.keys.name + "/cert", *args], check=False,
                              stdout=subprocess.PIPE).stdout

    def test_https(self):
        url = f"https://localhost:{self.port}"
        self.assertEqual(self.curl("-H", "X-API-Key: x", url + "/v2/sandboxes"), b"[]")


__all__ = ["Control", "Violations", "Processes", "Files", "Faults", "Tls"]
