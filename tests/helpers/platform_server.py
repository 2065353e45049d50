#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in of the workspace proxy ("platform") on 127.0.0.1: strict with its client, bad on demand.

    platform_server.py --dir DIR [--port N] [--log FILE] [--violations FILE] [--token TOKEN]
                       [--stdin] [--sidecar] [--tls CERT KEY] [--lease-ttl SECONDS]
                       [--strict-close] [--own-checkpoint] [--clock-ahead SECONDS]

The first line of its output is "PORT n". Both route families are served, and the exec socket at the
same port. Commands really run, each sandbox in a directory tree of its own below DIR. Exit status 77:
no mount namespace can be made here.

A request that is not exactly right is answered with 400, and named in a line of --violations. --log has
a line for each request (STATUS METHOD PATH), one for each command started (EXEC n SHA256-OF-COMMAND) and
one for each socket that ended (CLOSE n HOW). A token other than TOKEN is answered with 401 and is no
violation.

    --stdin           a binary frame that begins with 0 is standard input
    --sidecar         each sandbox has an instanceUrl, with GET /health and POST /exec
    --strict-close    a client that leaves a socket without a close frame breaks the rules
    --own-checkpoint  a checkpoint has to be called by the id of its sandbox

For tests:

    POST /__test/faults  [{"match": REGEX, "fault": NAME, "times": 1, "skip": 0, "params": {}}, ...]
                         in place of the rules there were. REGEX is looked for in "METHOD PATH", or in
                         "WS PATH" for a handshake; times -1 is for ever. The names are in
                         platform_faults.py and platform_spoil.py.
    POST /__test/kill    {"sandbox": ID}: it died, and is answered with 410
    POST /__test/drop    {"sandbox": ID}: its sockets are cut
    GET  /__test/state   sandboxes, checkpoints, templates, rules left, counts
"""
import argparse
import os
import signal
import socket
import ssl
import sys
import threading
import traceback

sys.dont_write_bytecode = True

import platform_exec  # noqa: E402
import platform_process  # noqa: E402
import platform_routes  # noqa: E402
from platform_check import parse  # noqa: E402
from platform_faults import PLAIN, Answer, Faults  # noqa: E402
from platform_http import Deviation, Gone, Late, Listener, Response, error, read_request  # noqa: E402
from platform_journal import Journal  # noqa: E402
from platform_sidecar import Sidecar  # noqa: E402
from platform_state import World  # noqa: E402
import standin_clock  # noqa: E402


class Once:
    """Carries out a request at most once, whatever the fault around it does."""

    def __init__(self, server, request, perform):
        self.server, self.request, self.perform = server, request, perform
        self.response = None

    def __call__(self):
        if self.response is None:
            try:
                self.response = self.perform()
            except Deviation as deviation:
                self.response = self.server.refusal(self.request, deviation)
        return self.response


class Server:
    def __init__(self, options):
        self.token, self.stdin = options.token, options.stdin
        self.strict_close, self.own_checkpoint = options.strict_close, options.own_checkpoint
        self.lock, self.keys = threading.Lock(), set()
        self.journal = Journal(options.log, options.violations)
        self.faults = Faults()
        self.world = World(os.path.realpath(options.dir), self.journal, options.lease_ttl)
        if options.sidecar:
            self.world.new_sidecar = lambda sandbox: Sidecar(self, sandbox)
        # bound and never listened to: a connection to it is refused
        self.closed_port = socket.socket()
        self.closed_port.bind(("127.0.0.1", 0))
        self.nowhere = f"http://127.0.0.1:{self.closed_port.getsockname()[1]}"
        tls = None
        if options.tls:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*options.tls)
            tls.set_alpn_protocols(["http/1.1"])
        self.secure = "s" if tls else ""
        self.listener = Listener(options.port, self.connection, tls)
        self.port = self.listener.port
        self.base = f"http{self.secure}://127.0.0.1:{self.port}"

    def socket_path(self, sandbox):
        return f"/exec/{sandbox.resource}?v=1&region=test"

    def socket_url(self, sandbox):
        return f"ws{self.secure}://127.0.0.1:{self.port}{self.socket_path(sandbox)}"

    def connection(self, stream):
        going = True
        while going:
            try:
                request = read_request(stream)
            except Deviation as deviation:
                self.journal.violation("request", str(deviation))
                stream.send(error(400, str(deviation)).encode(close=True))
                return
            try:
                going = self.exchange(stream, request)
            except (Gone, Late):
                raise
            except Exception:
                # a referee that breaks must not look like a client that passed
                traceback.print_exc()
                self.journal.violation("stand-in", traceback.format_exc())
                return

    def refusal(self, request, deviation):
        self.journal.violation(f"{request.method} {request.path}", str(deviation))
        return error(400, str(deviation))

    def exchange(self, stream, request):
        """One request and its answer; whether the connection goes on."""
        if request.path.startswith("/__test/"):
            return self.control(stream, request)
        if request.values("upgrade") or request.path.startswith("/exec/"):
            platform_exec.serve(self, stream, request)
            return False
        try:
            perform = platform_routes.find(self, request)
        except Deviation as deviation:
            self.journal.request(400, request.method, request.path)
            stream.send(self.refusal(request, deviation).encode())
            return True
        problem = platform_routes.token_problem(self, request)
        if problem:
            self.journal.request(problem.status, request.method, request.path)
            stream.send(problem.encode())
            return True
        carry = Once(self, request, perform)
        fault = request.fault = self.faults.take(f"{request.method} {request.target}")
        close = (request.header("connection") or "").lower() == "close"
        if fault and fault.fault in PLAIN:
            self.journal.request(f"fault:{fault.fault}", request.method, request.path)
            return PLAIN[fault.fault](Answer(stream, request, carry, self.base)) and not close
        response = carry()
        self.journal.request(response.status, request.method, request.path)
        stream.send(response.encode(close))
        return not close

    def control(self, stream, request):
        """What a test asks for; it is not held to the rules of the client."""
        name = request.path.removeprefix("/__test/")
        try:
            value = parse(request.body) if request.body else None
            if name == "faults" and request.method == "POST":
                self.faults.set(value)
            elif name in ("kill", "drop"):
                self.strike(name, value["sandbox"])
            elif name == "trap":
                self.journal.violation(f"{request.method} {request.path}", "a redirect was followed" + (
                    " with the access token" if request.values("authorization") else ""))
            elif name not in ("state", "faults"):
                raise ValueError("no such thing")
        except (Deviation, ValueError, KeyError, TypeError) as problem:
            stream.send(error(400, f"{name}: {problem}").encode())
            return True
        stream.send(Response(200, self.state()).encode())
        return True

    def strike(self, name, identity):
        sandbox = self.world.by_name(identity)
        if sandbox is None:
            raise ValueError("no such sandbox")
        if name == "kill":
            sandbox.end("dead")
            return
        with sandbox.lock:
            sessions = list(sandbox.sessions)
        for session in sessions:
            session.drop()

    def tidy(self):
        try:
            os.rmdir(self.world.dir)
        except OSError:
            # it is not ours alone
            pass

    def state(self):
        journal = self.journal
        return {**self.world.state(), "faults": self.faults.state(), "faultsTaken": self.faults.taken,
                "requests": journal.requests, "commands": journal.commands,
                "violations": journal.violations}


def read_options():
    parser = argparse.ArgumentParser(description="a stand-in of the workspace proxy")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--port", type=int, default=0)
    for name in ("--log", "--violations", "--token"):
        parser.add_argument(name)
    for name in ("--stdin", "--sidecar", "--strict-close", "--own-checkpoint"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    parser.add_argument("--lease-ttl", type=float, default=900)
    standin_clock.add_argument(parser)
    return parser.parse_args()


def main():
    options = read_options()
    standin_clock.set_ahead(options.clock_ahead)
    words = platform_process.unshare_command()
    if words is None:
        print("no mount namespace can be made here", file=sys.stderr)
        return 77
    platform_process.Process.unshare = words
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    os.makedirs(options.dir, exist_ok=True)
    server = Server(options)
    try:
        print(f"PORT {server.port}", flush=True)
        # another thread may have been given the signal, and then nothing wakes this one
        while not over.wait(0.1):
            pass
        server.listener.close()
    finally:
        server.world.end()
        server.tidy()
    return 0


if __name__ == "__main__":
    sys.exit(main())
