# SPDX-License-Identifier: Apache-2.0
"""The tests of platform_selftest.py that make the stand-in misbehave, and those of the socket's rules."""
import http.client
import json
import socket as sockets
import threading
import time

from platform_testclient import Bad, Closed, exec_once, http_call

LOST = (OSError, http.client.HTTPException)


def raises(what, function, *args, **more):
    try:
        function(*args, **more)
    except what:
        return True
    return False


def test_http_faults(server):
    box = server.create()["id"]
    path = f"/sandbox/{box}"
    get = lambda: server.call("GET", path)
    server.fault("GET .*/sandbox/", "status", times=2, skip=1, code=503, headers={"Retry-After": "3"})
    assert [get()[0] for _ in range(4)] == [200, 503, 503, 200]
    server.fault("GET", "status", code=429, headers={"Retry-After": "3"}, body={"a": 1})
    answer = get()
    assert (answer[0], answer[1]["retry-after"], answer[2]) == (429, "3", {"a": 1})
    server.fault("GET", "status", code=502, raw="<html>", content_type="text/html")
    assert get()[2] == b"<html>"
    for fault, more in (("reset_before", {}), ("reset_mid", {"bytes": 30}), ("reset_mid", {}), ("short", {}),
                        ("garbage", {}), ("oversized", {"mode": "headers", "bytes": 1 << 20})):
        server.fault("GET", fault, **more)
        assert raises(LOST, get), fault
        assert get()[0] == 200
    server.fault("GET", "reset_before")
    assert raises(ConnectionResetError, get)
    server.fault("POST /v1/railway/projects/proj%201/sandbox", "ws_hang")
    server.create("unharmed")
    server.fault("POST", "reset_after")
    assert raises(LOST, server.create, "hidden")
    assert server.test("state")["sandboxes"][-1]["key"] == "hidden"
    server.fault("POST", "status", code=500, carry=True)
    assert raises(AssertionError, server.create, "hidden too")
    assert server.test("state")["sandboxes"][-1]["key"] == "hidden too"
    server.fault("GET", "garbage_json")
    assert isinstance(get()[2], bytes)
    server.fault("GET", "wrong_type")
    assert get()[2]["id"] == ["x"]
    server.fault("GET", "patch", set={"status": "odd"}, drop=["id"])
    assert get()[2]["status"] == "odd"
    server.fault("GET", "wrong_type", root=[1])
    assert get()[2] == [1]
    server.fault("GET", "redirect", code=307)
    assert get()[1]["location"].endswith("/__test/trap")
    for mode in ("body", "chunked"):
        server.fault("GET", "oversized", mode=mode, bytes=1 << 20)
        assert get()[0] == 200
    for fault in ("chunked", "no_length"):
        server.fault("GET", fault)
        assert get()[2]["id"] == box, fault
    server.fault("GET", "interim")
    # this library takes it for the answer
    assert get()[0] == 103
    server.fault("GET", "slow", delay=0.3, chunk=50, interval=0.01)
    start = time.monotonic()
    assert get()[2]["id"] == box and time.monotonic() - start > 0.3
    server.fault("GET", "hang", seconds=0.3)
    assert raises(LOST, get)
    server.fault("GET", "instance_unreachable")
    assert get()[2]["instanceUrl"].startswith("http://127")
    server.fault("POST", "template_pending", retryAfterMs=9)
    assert server.create("early")["templatePending"] == {"templateId": "tpl-early", "retryAfterMs": 9}
    server.fault("GET", "destroyed")
    assert get()[2]["destroyedAt"]
    server.clean()
    http_call(server.port, "GET", "/__test/trap", None, {})
    assert "with the access token" in server.violations()[0]
    assert http_call(server.port, "POST", "/__test/faults", [{"fault": "none"}], {})[0] == 400


def test_lease_faults(server):
    box = server.create()["id"]
    for kind, seen in (("null", None), ("garbage", "tomorrow at noon"), ("number", 12345)):
        server.fault("exec-lease", "lease_expired", expiresAt=kind)
        assert server.lease(box)["expiresAt"] == seen
    server.fault("exec-lease", "lease_expired")
    lease = server.lease(box)
    assert exec_once(server.socket(box, lease), "true")[0] == 0
    time.sleep(2.1)
    assert server.socket(box, lease).status == 400
    assert "last minute" in server.violations()[0]
    server.fault("exec-lease", "lease_410")
    assert server.call("POST", f"/sandbox/{box}/exec-lease")[0] == 410
    lease = server.lease(box)
    for _ in range(3):
        assert exec_once(server.socket(box, lease), "true")[0] == 0
    server.test("kill", {"sandbox": box})
    assert server.socket(box, lease).status == 410
    server.clean()


def test_short_lease(server):
    box = server.create()["id"]
    lease = server.lease(box)
    assert exec_once(server.socket(box, lease), "true")[0] == 0
    time.sleep(3.5)
    assert server.socket(box, lease).status == 400
    assert len(server.violations()) == 1


def test_socket_rules(server):
    from platform_testclient import Socket
    box = server.create()["id"]
    lease = server.lease(box)
    for protocols in ("a, b", lease["subprotocol"], f"{lease['jwt']}, {lease['subprotocol']}",
                      f"{lease['subprotocol']}, {lease['jwt']}, x"):
        assert Socket(lease, protocols=protocols).status == 400
        assert len(server.violations()) == 1
    assert Socket(lease, more="Authorization: Bearer tok.en\r\n").status == 400
    assert Socket({**lease, "wsEndpoint": lease["wsEndpoint"].partition("?")[0]}).status == 400
    assert len(server.violations()) == 2
    init = json.dumps({"type": "init_exec", "data": {"command": "sleep 5"}}).encode()
    wrong = {"unmasked": (1002, lambda one: one.frame(1, init, masked=False)),
             "rsv": (1002, lambda one: one.frame(1, init, rsv=0x40)),
             "utf8": (1007, lambda one: one.frame(1, b"\xff")),
             "continuation": (1002, lambda one: one.frame(0, init)),
             "opcode": (1002, lambda one: one.frame(3, init)),
             "long ping": (1002, lambda one: one.frame(9, b"x" * 126)),
             "half ping": (1002, lambda one: one.frame(9, b"x", fin=False)),
             "close code": (1002, lambda one: one.frame(8, b"\x03\xed")),
             "half code": (1002, lambda one: one.frame(8, b"\x03")),
             "pong": (1002, lambda one: one.frame(10, b"what")),
             "binary first": (1008, lambda one: one.binary(b"\0x")),
             "not json": (1008, lambda one: one.frame(1, b"{")),
             "no command": (1008, lambda one: one.text({"type": "init_exec", "data": {}})),
             "member": (1008, lambda one: one.text({"type": "init_exec",
                                                    "data": {"command": "x", "tty": True}})),
             "null": (1008, lambda one: one.text({"type": "init_exec", "data": {"command": "x", "cwd": None}})),
             "order": (1008, lambda one: one.text({"type": "stdin_close"})),
             "twice": (1008, lambda one: (one.init("sleep 5"), one.text({"type": "stdin_close"}))),
             "two inits": (1008, lambda one: (one.init("sleep 5"), one.frame(1, init))),
             "signal": (1008, lambda one: (one.init("sleep 5"), one.text({"type": "signal",
                                                                         "data": {"signal": 15}}))),
             "stdin": (1008, lambda one: (one.init("sleep 5", close=False), one.binary(b"\0x")))}
    for name, (code, act) in wrong.items():
        one = server.socket(box, lease)
        act(one)
        assert (found := one.ended()) == code, (name, found)
        assert len(complaints := server.violations()) == 1, (name, complaints)
    one = server.socket(box, lease)
    one.frame(1, init[:7], fin=False)
    one.frame(9, b"hello")
    one.frame(0, b"", fin=False)
    one.frame(0, init[7:].replace(b"sleep 5", b"exit 6"))
    assert one.read_frame() == (10, True, b"hello")
    assert one.until_exit()[0] == 6 and one.ended() == 1000
    server.clean()


def commands(server):
    return server.test("state")["commands"]


def test_socket_faults(server):
    box = server.create()["id"]
    run = lambda: server.run(box, "echo hi; echo no >&2; exit 5")
    good = (5, b"hi\n", b"no\n")
    for fault, params in (("ws_fragment", {}), ("ws_unknown", {}), ("ws_ping", {}), ("ws_early", {}),
                          ("ws_split", {}), ("slow", {"delay": 0.1}), ("ws_no_subprotocol", {})):
        server.fault("^WS /exec/", fault, **params)
        before = commands(server)
        assert run() == good, fault
        assert commands(server) == before + 1
    server.fault("WS", "ws_fragment")
    assert len(server.run(box, "head -c 100000 /dev/zero")[1]) == 100000
    for fault in ("ws_masked", "ws_rsv", "ws_huge_frame", "ws_continuation_first", "ws_control_long",
                  "ws_control_fragmented", "ws_opcode", "ws_long_length", "ws_bad_close"):
        server.fault("WS", fault)
        assert raises(Bad, run), fault
    server.fault("WS", "ws_bad_utf8", when="end")
    assert raises(UnicodeDecodeError, run)
    for fault in ("ws_bad_accept", "ws_wrong_subprotocol", "ws_extension"):
        server.fault("WS", fault)
        before = commands(server)
        one = server.socket(box)
        assert one.status == 101 and not one.good, fault
        one.cut()
        server.clean()
        server.fault("WS", fault)
        one = server.socket(box)
        one.init("true")
        one.ended()
        assert "bad handshake" in server.violations()[0] and commands(server) == before
    server.fault("WS", "ws_refuse")
    assert server.socket(box).status == 403
    server.fault("WS", "reset_before")
    assert raises(LOST, server.socket, box)
    server.clean()


def test_socket_ends(server):
    box = server.create()["id"]
    run = lambda command="echo one; echo two; exit 5": server.run(box, command)
    for fault, params, started in (("ws_drop_before_init", {}, 0), ("ws_drop_before_init", {"close": 1011}, 0),
                                   ("ws_drop_after_init", {}, 1), ("ws_drop_after_init", {"rst": True}, 1),
                                   ("ws_drop_after_init", {"close": 1011}, 1), ("ws_drop_mid", {"bytes": 4}, 1),
                                   ("ws_drop_mid", {"torn": True}, 1), ("ws_drop_mid", {"bytes": 999}, 1),
                                   ("ws_no_exit", {}, 1), ("ws_no_exit", {"code": 1011}, 1),
                                   ("ws_drop_exit", {}, 1)):
        server.fault("WS", fault, **params)
        before = commands(server)
        assert raises((Closed, OSError), run), fault
        assert commands(server) == before + started, (fault, params)
        assert run()[0] == 5
    server.fault("WS", "ws_drop_after_init")
    assert raises((Closed, OSError), run, "sleep 0.3; echo done > ~/ran")
    time.sleep(0.7)
    assert run("cat ~/ran")[1] == b"done\n"
    for variant in ("no_data", "empty", "null", "string", "float", "huge", "negative", "bool", "data_list",
                    "not_json", "blank"):
        server.fault("WS", "ws_bad_exit", variant=variant)
        assert raises((Bad, ValueError, KeyError, TypeError), run), variant
    server.fault("WS", "ws_after_exit")
    one = server.socket(box)
    one.init("echo early")
    assert one.until_exit()[:2] == (0, b"early\n")
    assert one.step() is None and one.out[1] == b"early\nlate output" and one.step() == 99
    server.fault("WS", "ws_no_close", seconds=0.5)
    one = server.socket(box)
    one.init("true")
    start = time.monotonic()
    assert one.until_exit()[0] == 0 and one.ended() == 0 and time.monotonic() - start > 0.4
    server.fault("WS", "ws_hang")
    one = server.socket(box)
    before = commands(server)
    one.init("true")
    one.sock.settimeout(0.5)
    assert raises(TimeoutError, one.step) and commands(server) == before
    one.cut()
    one = server.socket(box)
    one.init("echo x; sleep 9")
    one.output()
    server.test("drop", {"sandbox": box})
    assert raises(Closed, one.until_exit)
    server.clean()


def test_strict_close(server):
    box = server.create()["id"]
    server.run(box, "true")
    one = server.socket(box)
    one.init("true")
    one.until_exit()
    one.cut()
    time.sleep(0.3)
    assert "without a close" in server.violations()[0]
    server.fault("WS", "ws_ping")
    one = server.socket(box)
    one.init("true")
    while True:
        try:
            opcode, _, _ = one.read_frame()
        except Closed:
            break
        if opcode == 8:
            break
    assert "pong" in server.violations()[0]


def sidecar(box, method, path, value=None, headers=None):
    port = int(box["instanceUrl"].rpartition(":")[2])
    return http_call(port, method, path, value, {"authorization": None, **(headers or {})})


def test_sidecar(server):
    box = server.create(env={"A": "a"})
    assert sidecar(box, "GET", "/health")[0] == 200
    run = lambda: sidecar(box, "POST", "/exec", {"command": "echo $A; echo é >&2; exit 3"})[2]
    lines = [json.loads(line) for line in run().splitlines()]
    assert {"type": "stdout", "data": "a\n"} in lines and {"type": "stderr", "data": "é\n"} in lines
    assert lines[-1] == {"type": "exit", "code": 3}
    server.fault("GET /health", "sidecar_no_health")
    assert sidecar(box, "GET", "/health")[0] == 503
    server.fault("POST /exec", "sidecar_no_newline")
    assert run().endswith(b'"code": 3}')
    server.fault("POST /exec", "sidecar_no_exit")
    assert b'"exit"' not in run()
    server.fault("POST /exec", "sidecar_bad_lines")
    assert b"not json\n" in run()
    server.fault("POST /exec", "sidecar_drop")
    assert raises(LOST, run)
    server.clean()
    assert sidecar(box, "POST", "/exec", {"command": "x", "args": []})[0] == 400
    assert len(server.violations()) == 1
    server.call("DELETE", f"/sandbox/{box['id']}")
    assert raises(ConnectionRefusedError, sidecar, box, "GET", "/health")
    server.clean()


def test_at_once(server):
    """Many clients: one sandbox of a name, each command once, nothing mixed up."""
    boxes, results = [], []

    def client(index):
        box = server.create("shared")["id"]
        boxes.append(box)
        code, out, _ = server.run(box, f"head -c 20000 /dev/zero | tr '\\0' {index}; exit {index}")
        results.append((index, code, out == str(index).encode() * 20000))

    threads = [threading.Thread(target=client, args=(index,)) for index in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(boxes)) == 1
    assert sorted(results) == [(index, index, True) for index in range(9)], results
    assert commands(server) == 9
    server.clean()


def test_log(server):
    box = server.create(env={"SECRET": "s3cret"})["id"]
    server.run(box, "echo s3cret", env={"T": "s3cret"})
    for _ in range(50):
        # the socket's end is written after the client's
        if server.lines("CLOSE"):
            break
        time.sleep(0.05)
    with open(server.log, encoding="utf-8") as file:
        text = file.read()
    assert "s3cret" not in text and "tok.en" not in text and server.lease(box)["jwt"] not in text
    assert [line.split()[0] for line in text.splitlines()] == ["201", "200", "101", "EXEC", "CLOSE"], text


def test_raw_http(server):
    """What no library would send."""
    head = b"GET /v1/projects/p/sandbox/x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port
    auth = b"Authorization: Bearer tok.en\r\n"
    for raw in (b"GET / HTTP/1.0\r\n\r\n", b"get\r\n\r\n", b"GET /\n\n", head + b" folded\r\n\r\n",
                head + auth + auth + b"\r\n", head + auth + b"X: \x01\r\n\r\n",
                head + auth + b"Content-Length: -1\r\n\r\n", head + auth + b"Content-Length: 99999999\r\n\r\n",
                head + auth + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
                head + auth + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                head + auth + b"X: " + b"x" * 70000 + b"\r\n\r\n",
                head.replace(b"projects/p/", b"projects//") + auth + b"\r\n"):
        with sockets.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
            sock.sendall(raw)
            assert sock.recv(100).startswith(b"HTTP/1.1 400"), raw[:80]
        assert len(found := server.violations()) == 1, found
    with sockets.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall((head + auth + b"\r\n") * 2)
        time.sleep(0.2)
        assert sock.recv(9999).count(b"HTTP/1.1 404") == 2
    server.clean()
