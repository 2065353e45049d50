#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in of the E2B service on one port of 127.0.0.1, strict, and able to misbehave.

    e2b_server.py --dir DIR [--port N] [--log FILE] [--violations FILE] [--api-key KEY[,KEY]]
                  [--template NAME[,NAME]] [--domain NAME] [--tls CERT KEY] [--signal-group]
                  [--build-wait MS] [--clock-ahead SECONDS]

"PORT n" is its first line on stdout. Control plane and data plane are told apart by their paths; the
sandbox is named by E2b-Sandbox-Id. Commands really run, in namespaces of their own, with DIR/ID as their
root directory (DIR/ID/home/user is /home/user), the programs of this machine in it. That needs root or
user namespaces; without them the exit status is 77.

A request that the real service would not get from a good client is answered with 400 and is a line of
the violations file. A line of the log is METHOD TARGET STATUS; in place of, or after, the status
"reset", "cut", "hang" or "closed" (by the client) say how it ended. Without --api-key every key is
right. A signal goes to the started process alone, as upstream; with --signal-group to its group.

For tests, on the same port, unchecked:

    POST /__test/faults[?append]  [{"match": REGEX, "fault": NAME, ...}], see standin_faults and
                                  e2b_connect; and "expire": the sandbox is gone, as a proxy says it
                                  (code 502 or 410; "real" also ends it)
    GET  /__test/faults           the rules, with how often each was met
    POST /__test/kill             {"sandbox": ID}: it died
    POST /__test/expire           {"sandbox": ID}: its time is over
    GET  /__test/state            sandboxes, processes, counts
"""
import argparse
import json
import os
import re
import shutil
import signal
import sys
import threading
import traceback

import e2b_connect
import e2b_control
import e2b_envd
import e2b_sandbox
import standin_clock
import standin_http
from standin_http import Violation


class Application:
    faults_in_streams = e2b_connect.FAULTS

    def __init__(self, options):
        self.world = e2b_sandbox.World(options.dir, options.template.split(","), options.domain,
                                       options.api_key.split(",") if options.api_key else [])
        self.world.signal_group = options.signal_group
        self.world.build_wait = options.build_wait / 1000
        self.world.page = e2b_control.page
        self.world.is_tls = bool(options.tls)
        self.options = options
        self.server = None
        self.faults_of_its_own = {"expire": self.expire}

    def start(self, server):
        self.server = server
        self.world.port = server.port
        if not self.world.domain:
            self.world.domain = f"localhost:{server.port}"

    def is_host(self, host):
        name, _, port = host.rpartition(":")
        if re.fullmatch("[0-9]+", port) is None or not name:
            name, port = host, str(443 if self.options.tls else 80)
        if name in ("127.0.0.1", "localhost"):
            return port == str(self.world.port)
        domain = self.world.domain.partition(":")[0]
        return re.fullmatch(r"(api|sandbox|49983-[a-z0-9]+)\." + re.escape(domain), name) is not None

    def plan(self, request):
        is_envd = e2b_envd.is_for_envd(request)

        def wrong(text):
            return e2b_envd.violation(request, text) if is_envd else Violation(text)

        if not self.is_host(request.header("host")):
            raise wrong(f"Host: {request.header('host')}")
        if not request.header("user-agent"):
            raise wrong("no User-Agent")
        if request.header("accept-encoding") is not None:
            raise wrong("Accept-Encoding was sent")
        if request.method in ("GET", "DELETE") and request.length:
            raise wrong(f"{request.method} with a body")
        action = (e2b_envd if is_envd else e2b_control).plan(self.world, request)
        return lambda connection: self.carry_out(connection, action)

    def carry_out(self, connection, action):
        try:
            action(connection)
        except (Violation, standin_http.Dropped):
            raise
        except Exception as error:  # pylint: disable=broad-except
            # A mistake of the stand-in must not look like one of the client's
            traceback.print_exc()
            if connection.is_begun:
                connection.drop("cut")
            connection.json(500, {"code": 500, "message": f"the stand-in failed: {error!r}"})

    def fault_body(self, request, code):
        if request.path.startswith(tuple(e2b_envd.SERVICES)):
            names = [name for name, status in e2b_connect.CODES.items() if status == code]
            text = json.dumps({"code": names[0] if names else "unknown", "message": "a fault"})
            return text.encode(), "application/json"
        return json.dumps({"code": code, "message": "a fault"}).encode(), "application/json; charset=utf-8"

    def expire(self, connection, request, rule):
        match = re.match("/(?:v2/)?sandboxes/([a-z0-9]+)", request.path)
        sandbox_id = match[1] if match else request.header("e2b-sandbox-id") or ""
        sandbox = self.world.get(sandbox_id)
        if rule.get("real") and sandbox:
            self.world.end(sandbox, "expired")
        code = rule.get("code", 502)
        connection.json(code, {"sandboxId": sandbox_id, "message": "The sandbox was not found",
                               "code": code})

    # For tests.

    def control(self, connection, request):
        try:
            status, answer = self.controlled(request)
        except (ValueError, KeyError, AttributeError, re.error) as error:
            status, answer = 400, {"error": repr(error)}
        connection.json(status, answer)

    def controlled(self, request):
        what = f"{request.method} {request.path[len('/__test/'):]}"
        body = json.loads(request.body()) if request.length else None
        if what == "POST faults":
            self.server.faults.set(body, "append" in request.query_text)
            return 200, {"rules": len(self.server.faults.rules)}
        if what == "GET faults":
            return 200, self.server.faults.state()
        if what == "GET state":
            return 200, self.state()
        if what in ("POST kill", "POST expire"):
            sandbox = self.world.get(body["sandbox"])
            if not sandbox:
                return 404, {"error": "no such sandbox"}
            if what == "POST kill":
                self.world.end(sandbox, "died")
            else:
                self.world.expire(sandbox)
            return 200, {}
        return 404, {"error": what}

    def state(self):
        with self.world.lock:
            sandboxes = list(self.world.sandboxes.values())
            templates = [{"templateID": t.id, "aliases": t.aliases, "ready": t.is_ready}
                         for t in self.world.templates]
        shown = [{**s.detail(), "envdAccessToken": None, "root": s.root, "streams": len(s.streams),
                  "processes": [p.listed() for p in list(s.processes.values()) if p.ended is None]}
                 for s in sandboxes]
        server = self.server
        return {"sandboxes": shown, "templates": templates, "dead": self.world.dead,
                "requests": server.requests, "connections": server.connections,
                "violations": server.violations, "faults": server.faults.state()}


def can_sandbox(world):
    """Whether the kernel lets us, tried once."""
    try:
        world.end(world.create(world.templates[0], {"timeout": 60}, hidden=True))
    except RuntimeError as error:
        print(f"e2b_server: {error}", file=sys.stderr)
        return False
    return True


def parse_options():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log")
    parser.add_argument("--violations")
    parser.add_argument("--api-key")
    parser.add_argument("--template", default="base")
    parser.add_argument("--domain")
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--signal-group", action="store_true")
    parser.add_argument("--build-wait", type=int, default=200, help="ms a build waits before it begins")
    standin_clock.add_argument(parser)
    return parser.parse_args()


def main():
    options = parse_options()
    standin_clock.set_ahead(options.clock_ahead)
    os.umask(0o022)
    # Before there are threads: they inherit it, and none of them is stopped in the middle of something
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    application = Application(options)
    if not can_sandbox(application.world):
        application.world.close()
        return 77
    server = standin_http.Server(application, options.port, options.tls, options.log, options.violations)
    application.start(server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"PORT {server.port}", flush=True)
    signal.sigwait(signals)
    application.world.close()
    shutil.rmtree(os.path.join(application.world.directory, "uploads"), ignore_errors=True)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Threads that wait for a client do not hold up the end
    os._exit(status)
