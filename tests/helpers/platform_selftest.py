#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Drives platform_server.py with a client of its own: right requests, wrong ones, and every fault.

    platform_selftest.py [NAME...]     only the tests whose name has one of these words
"""
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from platform_testclient import (Closed, Socket, definition, exec_once, http_call,  # noqa: E402
                                 sha256)

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix="platform-")
# how long commands sleep that are to be killed: nobody else's do
LONG = [1000000 + 3 * os.getpid() + index for index in range(3)]
BASE = "/v1/railway/projects/proj%201"


class Server:
    def __init__(self, *options, tls=False):
        self.dir = tempfile.mkdtemp(dir=WORK)
        self.log, self.bad = f"{self.dir}/log", f"{self.dir}/violations"
        self.tls = None
        command = [sys.executable, f"{HERE}/platform_server.py", "--dir", f"{self.dir}/boxes", "--log",
                   self.log, "--violations", self.bad, "--token", "tok.en", *options]
        if tls:
            self.tls = ssl.create_default_context(cafile=certificate()[0])
            command += ["--tls", *certificate()]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])

    def call(self, method, path, value=None, headers=None, base=BASE, **more):
        return http_call(self.port, method, base + path, value, headers, self.tls, **more)

    def test(self, what, value=None):
        method = "GET" if value is None else "POST"
        status, _, answer = http_call(self.port, method, f"/__test/{what}", value, {}, self.tls)
        assert status == 200, answer
        return answer

    def fault(self, match, fault, times=1, skip=0, **params):
        self.test("faults", [{"match": match, "fault": fault, "times": times, "skip": skip,
                              "params": params}])

    def create(self, name="box", **more):
        status, _, value = self.call("POST", "/sandbox", {"id": name, "environmentId": "env", "env": {},
                                                          **more})
        assert status == 201, value
        return value

    def lease(self, identity):
        status, _, value = self.call("POST", f"/sandbox/{identity}/exec-lease")
        assert status == 200, value
        return value

    def socket(self, identity, lease=None):
        return Socket(lease or self.lease(identity), self.tls)

    def run(self, identity, command, **more):
        return exec_once(self.socket(identity), command, **more)

    def violations(self):
        """What was complained of since the last look."""
        with open(self.bad, "r+", encoding="utf-8") as file:
            lines = file.read().splitlines()
            file.truncate(0)
        return lines

    def lines(self, word):
        with open(self.log, encoding="utf-8") as file:
            return [line.split() for line in file if line.startswith(word)]

    def clean(self):
        found = self.violations()
        assert not found, found

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(20) == 0
        self.child.stdout.close()
        assert not os.path.exists(f"{self.dir}/boxes"), os.listdir(f"{self.dir}/boxes")


def certificate():
    paths = f"{WORK}/cert.pem", f"{WORK}/key.pem"
    if not os.path.exists(paths[0]):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0],
                        "-keyout", paths[1]], check=True, stderr=subprocess.DEVNULL)
    return paths


def test_life(server):
    box = server.create(env={"A": "1"}, networkIsolation="PRIVATE", idleTimeoutMinutes=5)
    assert box["id"] != "box" and box["instanceUrl"] is None and box["destroyedAt"] is None
    assert server.create()["id"] == box["id"]
    assert server.call("GET", f"/sandbox/{box['id']}")[2]["id"] == box["id"]
    assert server.call("GET", f"/sandbox/{box['id']}", base="/v1/projects/proj%201")[0] == 200
    assert server.call("GET", f"/sandbox/{box['id']}", base="/v1/projects/other")[0] == 404
    assert server.call("GET", f"/sandbox/{box['id']}", base="/v1/e2b/projects/proj%201")[0] == 404
    wrong = server.call("GET", "/sandbox/x", headers={"authorization": "Bearer other"})
    assert wrong[0] == 401 and wrong[2]["error"]["type"] == "authentication_error"
    assert server.call("DELETE", f"/sandbox/{box['id']}")[0] == 204
    assert server.call("GET", f"/sandbox/{box['id']}")[0] == 404
    again = server.create()
    server.test("kill", {"sandbox": "box"})
    assert server.call("GET", f"/sandbox/{again['id']}")[0] == 410
    assert server.call("POST", f"/sandbox/{again['id']}/exec-lease")[0] == 410
    assert server.create()["id"] != again["id"]
    server.clean()


def test_exec(server):
    box = server.create(env={"A": "1", "B": "2"})["id"]
    lease = server.lease(box)
    assert lease["wsEndpoint"].startswith("ws") and lease["sandboxId"] == box
    code, out, err = exec_once(server.socket(box, lease),
                               'echo "$A $B $C $HOME"; pwd; echo no >&2; exit 7', env={"B": "3", "C": "x y"})
    assert (code, out, err) == (7, b"1 3 x y /home/user\n/home/user\n", b"no\n"), (code, out, err)
    assert server.run(box, "echo kept > file; echo t > /tmp/t; ls /home")[1] == b"user\n"
    assert server.run(box, "cat file", cwd="/tmp")[0] == 1
    assert server.run(box, "cat ~/file /tmp/t; pwd", cwd="/tmp")[1] == b"kept\nt\n/tmp\n"
    assert server.run(box, "cat")[:2] == (0, b"")
    assert server.run(box, "true", cwd="/nowhere")[0] == 1
    assert server.run(box, "kill -9 $$")[0] == 137
    big = server.run(box, "head -c 3000000 /dev/zero; head -c 100000 /dev/zero >&2")
    assert (len(big[1]), len(big[2])) == (3000000, 100000)
    start = time.monotonic()
    assert server.run(box, f"sleep {LONG[0]} & echo hi")[1] == b"hi\n"
    assert time.monotonic() - start < 3
    assert server.run(box, "x" * 200000)[0] == 126
    assert [line[2] for line in server.lines("EXEC")].count(sha256("cat")) == 1
    socket = server.socket(box)
    socket.init(f"sleep {LONG[1]} & trap '' TERM; echo ready; sleep {LONG[2]}")
    assert socket.output() == b"ready\n"
    state = server.test("state")["sandboxes"][-1]
    assert (state["running"], state["sockets"]) == (1, 1), state
    assert all(running(seconds) for seconds in LONG)
    server.call("DELETE", f"/sandbox/{box}")
    try:
        socket.until_exit()
        raise AssertionError("the socket of a deleted sandbox lived on")
    except Closed:
        pass
    assert not any(running(seconds) for seconds in LONG)
    server.clean()


def running(seconds):
    """Is there a process 'sleep seconds'?"""
    text = b""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                text += file.read() + b"\n"
        except OSError:
            continue
    return b"sleep\0%d\n" % seconds in text.replace(b"\0\n", b"\n")


def test_signal_and_drop(server):
    box = server.create()["id"]
    socket = server.socket(box)
    socket.init(f"echo on; sleep {LONG[0]}")
    socket.output()
    socket.text({"type": "signal", "data": {"signal": "TERM"}})
    assert socket.until_exit()[0] == 143
    socket = server.socket(box)
    socket.init(f"echo on; sleep {LONG[1]}")
    socket.output()
    socket.cut()
    for _ in range(50):
        time.sleep(0.1)
        if not running(LONG[1]):
            break
    assert not running(LONG[1])
    assert server.lines("CLOSE")[-1][2] == "dropped"
    server.clean()


def test_stdin(server):
    box = server.create()["id"]
    socket = server.socket(box)
    socket.init("cat; echo end", close=False)
    data = os.urandom(70000)
    for start in range(0, len(data), 20000):
        socket.binary(b"\0" + data[start:start + 20000])
    socket.text({"type": "stdin_close"})
    assert socket.until_exit()[:2] == (0, data + b"end\n")
    socket = server.socket(box)
    socket.init("cat")
    socket.binary(b"\0late")
    assert socket.ended() == 1008
    assert len(server.violations()) == 1


def test_checkpoints(server):
    box = server.create("one")["id"]
    server.run(box, "echo first > file; mkdir -p a/b; ln -s file link; echo t > /tmp/t")
    answer = server.call("POST", f"/sandbox/{box}/checkpoint", {"id": "one"})
    assert answer[2] == {"checkpointName": "one", "status": "captured"}
    server.run(box, "echo second > file")
    server.call("DELETE", f"/sandbox/{box}")
    again = server.create("one")["id"]
    assert server.run(again, "cat link /tmp/t; ls a")[1] == b"first\nt\nb\n"
    child = server.create("two", seedCheckpointName="one")["id"]
    assert server.run(child, "cat file; echo mine > file")[1] == b"first\n"
    assert server.call("POST", f"/sandbox/{child}/checkpoint", {"id": "two"})[0] == 200
    server.call("DELETE", f"/sandbox/{child}")
    child = server.create("two", seedCheckpointName="one")["id"]
    assert server.run(child, "cat file")[1] == b"mine\n"
    sources = [one["source"] for one in server.test("state")["sandboxes"]][-4:]
    assert sources == ["base", "checkpoint:one", "seed:one", "checkpoint:two"], sources
    assert server.call("DELETE", f"/sandbox/{child}/checkpoint", {"id": "two"})[0] == 204
    assert server.call("DELETE", f"/sandbox/{child}/checkpoint", {"id": "two"})[0] == 404
    for status in ("skipped", "coalesced"):
        server.fault("/checkpoint", f"checkpoint_{status}")
        answer = server.call("POST", f"/sandbox/{child}/checkpoint", {"id": "two"})
        assert answer[2]["status"] == status
    server.clean()
    assert server.call("POST", f"/sandbox/{child}/checkpoint", {"id": "one"})[0] == 400
    assert "seed" in server.violations()[0]


def test_templates(server):
    plan = definition(["cpuCount", 2], ["runCmd", ["echo $SECRET-$E > made", "echo two >> made"]],
                      ["setEnvs", {"E": "env"}], ["runCmd", "echo $E >> made"], family="f")
    body = {"environmentId": "env", "templateDefinition": plan, "templateBuildEnvs": {"SECRET": "s"}}
    for _ in range(50):
        status, _, answer = server.call("POST", "/sandbox/templates/builds", body)
        assert status == 200 and answer["status"] in ("pending", "ready"), answer
        if answer["status"] == "ready":
            break
        assert answer["retryAfterMs"] > 0
        time.sleep(0.05)
    assert answer["status"] == "ready"
    box = server.create("templated", templateDefinition=plan)
    assert "templatePending" not in box
    assert server.run(box["id"], "cat made; echo $E")[1] == b"s-\ntwo\nenv\nenv\n"
    other = definition(["cpuCount", 2], ["runCmd", "sleep 0.5; echo other > made"], family="f")
    box = server.create("other", templateDefinition=other)
    assert box["templatePending"]["templateId"] != answer["templateId"]
    assert server.run(box["id"], "head -n 1 made")[1] == b"s-\n"
    bad = {"environmentId": "env", "templateDefinition": definition(["runCmd", "echo oh; exit 3"])}
    for _ in range(50):
        failed = server.call("POST", "/sandbox/templates/builds", bad)[2]
        if failed["status"] != "pending":
            break
        time.sleep(0.05)
    assert failed["status"] == "failed" and "oh" in failed["error"]
    server.fault("templates/builds", "template_pending", times=2)
    answers = [server.call("POST", "/sandbox/templates/builds", body)[2]["status"] for _ in range(3)]
    assert answers == ["pending", "pending", "ready"]
    server.fault("templates/builds", "template_failed", error="no")
    assert server.call("POST", "/sandbox/templates/builds", body)[2]["error"] == "no"
    old = server.call("POST", "/templates", {"environmentId": "env 1", "definition": plan})[2]
    assert old["status"] == "queued"
    time.sleep(0.5)
    assert server.call("GET", f"/templates/{old['templateId']}?environmentId=env%201")[2]["status"] == "ready"
    server.clean()


def test_legacy_exec(server):
    box = server.create(env={"A": "a"})["id"]
    path = f"/sandbox/{box}/exec"
    answer = server.call("POST", path, {"command": "echo $A$B; exit 4", "env": {"B": "b"}, "cwd": "/"})[2]
    assert (answer["exitCode"], answer["stdout"], answer["timedOut"]) == (4, "ab\n", False)
    answer = server.call("POST", path, {"command": "echo x; sleep 9", "timeoutSec": 1})[2]
    assert (answer["exitCode"], answer["stdout"], answer["timedOut"]) == (None, "x\n", True)
    server.clean()


def wrong_requests(box):
    good = {"id": "w", "environmentId": "env", "env": {}}
    post = ("POST", "/sandbox")
    many = definition(*[["cpuCount", 1]] * 257)
    for change in ({"env": None}, {"env": {"A": 1}}, {"more": 1}, {"id": ""}, {"id": 7},
                   {"idleTimeoutMinutes": None}, {"idleTimeoutMinutes": 0}, {"idleTimeoutMinutes": True},
                   {"networkIsolation": "OPEN"}, {"seedCheckpointName": " "},
                   {"templateBuildEnvs": {"A": "b"}}, {"templateDefinition": None},
                   {"templateDefinition": many}, {"templateDefinition": definition(["fly", 1])},
                   {"templateDefinition": definition(["runCmd", "x" * 32769])},
                   {"templateDefinition": definition(["runCmd", ["x"] * 513])},
                   {"templateDefinition": definition(*[["runCmd", "x" * 30000]] * 9)},
                   {"templateDefinition": definition(["cpuCount", 1.5])},
                   {"templateDefinition": definition(["setEnvs", {"A": "b"}, {"ephemeral": True}])},
                   {"templateDefinition": definition(["pipInstall", None])},
                   {"templateDefinition": definition(family="x" * 201)}):
        yield *post, {**good, **change}, {}
    for name in good:
        yield *post, {key: value for key, value in good.items() if key != name}, {}
    for raw in (b"", b"{", b"[]", b'{"id":"w","id":"w","environmentId":"e","env":{}}', b"\xff", b"NaN"):
        yield *post, raw, {}
    for headers in ({"authorization": None}, {"authorization": "Basic x"}, {"authorization": "Bearer "},
                    {"content-type": None}, {"content-type": "text/plain"}, {"x-acting-user-id": " "},
                    {"x-mastra-session-id": ""}, {"x-mastra-thread-id": ""}, {"x-mastra-new": "1"},
                    {"host": "elsewhere"}):
        yield *post, good, headers
    yield "GET", f"/sandbox/{box}", None, {"content-type": "application/json"}
    yield "GET", f"/sandbox/{box}", {}, {}
    yield "GET", f"/sandbox/{box}?x=1", None, {}
    yield "GET", "/sandbox/a%2", None, {}
    yield "GET", "/sandbox/", None, {}
    yield "PUT", f"/sandbox/{box}", None, {}
    yield "POST", f"/sandbox/{box}/exec-lease", {}, {}
    yield "POST", f"/sandbox/{box}/checkpoint", {"id": "a", "name": "b"}, {}
    yield "POST", f"/sandbox/{box}/exec", {"command": "x", "timeoutSec": 0.5}, {}
    yield "GET", "/templates/x", None, {}
    yield "GET", "/fs/bucket/x", None, {}


def test_strictness(server):
    box = server.create("strict")["id"]
    for method, path, value, headers in wrong_requests(box):
        status, _, answer = server.call(method, path, value, headers=headers)
        found = server.violations()
        assert status == 400 and answer["error"]["type"] == "invalid_request", (method, path, headers)
        assert len(found) == 1, (method, path, value, found)
    good = {"x-acting-user-id": "u", "x-mastra-session-id": "s", "x-mastra-thread-id": "t"}
    assert server.call("GET", f"/sandbox/{box}", headers=good)[0] == 200
    assert server.call("GET", f"/sandbox/{box}", base="/v1/e2b/projects/proj%201")[0] == 404
    assert server.call("POST", "/sandbox", json.dumps({"id": "w", "environmentId": "e", "env": {}}).encode(),
                       chunked=True)[0] == 201
    server.clean()


def test_tls(server):
    secure = Server(tls=True)
    try:
        box = secure.create(env={"A": "1"})["id"]
        assert secure.lease(box)["wsEndpoint"].startswith("wss://")
        code, out, _ = secure.run(box, "head -c 2000000 /dev/zero; exit 3")
        assert (code, len(out)) == (3, 2000000)
        secure.fault("GET", "reset_mid", bytes=40)
        try:
            secure.call("GET", f"/sandbox/{box}")
            raise AssertionError("an answer that was cut")
        except (OSError, http.client.HTTPException):
            pass
        secure.clean()
    finally:
        secure.end()


def main():
    import platform_selftest_faults as faults
    tests = {name: function for name, function in {**globals(), **vars(faults)}.items()
             if name.startswith("test_")}
    failed = 0
    try:
        for name, function in tests.items():
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            server = Server(*(["--stdin"] if "stdin" in name else []),
                            *(["--sidecar"] if "sidecar" in name else []),
                            *(["--lease-ttl", "61"] if "short_lease" in name else []),
                            *(["--strict-close"] if "strict_close" in name else []))
            start = time.monotonic()
            try:
                function(server)
                print(f"ok   {name} {time.monotonic() - start:.1f}s", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
                import traceback
                traceback.print_exc()
            finally:
                server.end()
    finally:
        shutil.rmtree(WORK)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
