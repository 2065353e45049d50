# SPDX-License-Identifier: Apache-2.0
"""The exec socket: a lease opens it, init_exec starts the command, an exit frame ends it."""
import signal
import threading
import time

import platform_check as check
from platform_faults import PLAIN, Answer
from platform_http import Deviation, Gone, Late, error
from platform_spoil import Spoiler
from platform_state import SUBPROTOCOL
from platform_ws import BINARY, TEXT, Failure, WebSocket, accept_key, check_handshake

INIT_SECONDS, DRAIN_SECONDS, CLOSE_SECONDS, MOMENT = 30, 1.0, 5, 0.3


class Session:
    def __init__(self, server, stream, sandbox, rule, where):
        self.server, self.sandbox, self.where = server, sandbox, where
        self.ws = WebSocket(stream)
        self.lock = threading.Lock()
        self.process = None
        self.number = 0
        # we left; nothing more is said; the exit was told; the command goes on without a client
        self.dropped = self.muted = self.finished = self.keep = self.reset = False
        self.left = threading.Event()
        self.stdin_open = True
        self.stdin, self.stdin_ready = [], threading.Condition()
        self.spoiler = Spoiler(self, rule)

    def violation(self, what):
        self.server.journal.violation(self.where, what)

    def drop(self, reset=False):
        """The connection ends without a word; the command goes on."""
        self.dropped = self.muted = self.keep = True
        self.reset = reset
        self.ws.stream.dead = True

    def abandon(self):
        self.drop()

    # from the client

    def run(self):
        try:
            self.spoiler.opened()
            self.begin()
            while (message := self.ws.receive()) is not None:
                if not self.finished:
                    self.take(*message)
            how = f"closed {self.ws.got_close}"
        except (Failure, Deviation) as failure:
            self.violation(str(failure))
            how = "failed"
            self.fail(getattr(failure, "code", 1008), str(failure))
        except (Gone, Late):
            how = "left by us" if self.dropped else "dropped"
            if self.finished and not self.dropped and self.server.strict_close:
                self.violation("the client left without a close frame")
        self.leave(how)

    def fail(self, code, reason):
        try:
            self.ws.close(code, reason)
        except (Gone, Late):
            pass

    def leave(self, how):
        self.left.set()
        self.server.journal.closed(self.number, how)
        self.put(None)
        if self.process and not self.keep and not self.finished:
            self.muted = True
            threading.Timer(MOMENT, self.process.kill).start()
        with self.sandbox.lock:
            self.sandbox.sessions.discard(self)
        self.ws.stream.close(reset=self.reset, clean=not self.dropped)

    def begin(self):
        message = self.ws.receive(INIT_SECONDS)
        if message is None or self.muted:
            raise Gone
        if message[0] != TEXT:
            raise Deviation("the first message is not text")
        value = check.parse(message[1], "init_exec")
        check.INIT(value, "init_exec")
        data = value["data"]
        self.number = self.server.journal.command(data["command"])
        try:
            self.process = self.sandbox.start(data["command"], data.get("cwd"), data.get("env"))
        except OSError as problem:
            self.ws.binary(b"\x03" + f"sh: {problem.strerror}\n".encode())
            threading.Thread(target=self.end, args=(126,), daemon=True).start()
            return
        if self.process is None:
            self.drop()
            raise Gone
        pumps = [threading.Thread(target=self.pump, args=(stream, number), daemon=True)
                 for stream, number in ((self.process.child.stdout, 1), (self.process.child.stderr, 3))]
        try:
            self.spoiler.started()
        finally:
            for pump in pumps:
                pump.start()
            threading.Thread(target=self.feed, daemon=True).start()
            threading.Thread(target=self.finish, args=(pumps,), daemon=True).start()

    def take(self, kind, data):
        if kind == BINARY:
            if not self.server.stdin:
                raise Deviation("a binary frame, and this server takes no standard input")
            if not data or data[0] != 0:
                raise Deviation("a binary frame that does not begin with 0")
            if not self.stdin_open:
                raise Deviation("standard input after stdin_close")
            self.put(data[1:])
            return
        value = check.parse(data, "frame")
        kind = value.get("type") if isinstance(value, dict) else None
        if kind == "stdin_close":
            check.STDIN_CLOSE(value, "frame")
            if not self.stdin_open:
                raise Deviation("stdin_close is sent twice")
            self.stdin_open = False
            self.put(None)
        elif kind == "signal":
            check.SIGNAL(value, "frame")
            if self.process:
                self.process.signal(signal.Signals["SIG" + value["data"]["signal"]])
        else:
            raise Deviation(f"a frame of type '{kind}'")

    def put(self, data):
        with self.stdin_ready:
            self.stdin.append(data)
            self.stdin_ready.notify()

    def feed(self):
        while True:
            with self.stdin_ready:
                self.stdin_ready.wait_for(lambda: self.stdin)
                data = self.stdin.pop(0)
            self.process.feed(data)
            if data is None:
                return

    # to the client

    def pump(self, stream, number):
        while data := self.process.read(stream):
            if self.muted:
                continue
            try:
                with self.lock:
                    if not self.finished:
                        self.spoiler.output(number, data)
            except (Gone, Late):
                self.muted = True

    def finish(self, pumps):
        self.process.ended.wait()
        end = time.monotonic() + DRAIN_SECONDS
        for pump in pumps:
            # a command that left something behind is over all the same
            pump.join(max(0.0, end - time.monotonic()) if not self.ws.fragmented else None)
        self.end(self.process.code)
        for pump in pumps:
            pump.join()
        self.process.close()

    def end(self, code):
        if self.muted:
            if self.ws.sent_close and not self.left.wait(CLOSE_SECONDS):
                self.ws.stream.dead = True
            return
        try:
            if not self.ws.await_pong(CLOSE_SECONDS) and not self.left.is_set():
                self.violation("no pong for a ping")
            with self.lock:
                self.finished = True
                self.spoiler.exit(code)
        except (Gone, Late):
            return
        if not self.left.wait(self.spoiler.patience(CLOSE_SECONDS)):
            self.ws.stream.dead = True


def lease_of(server, request, protocols):
    """The lease and what speaks against it."""
    if len(protocols) != 2 or protocols[0] != SUBPROTOCOL:
        raise Deviation("the offered subprotocols are not those of the lease")
    with server.world.lock:
        lease = server.world.leases.get(protocols[1])
    if lease is None:
        raise Deviation("the second subprotocol is no lease's jwt")
    if request.target != server.socket_path(lease.sandbox):
        raise Deviation("the lease is for another endpoint")
    if complaint := lease.complaint():
        raise Deviation(complaint)
    return lease


def answer(key, rule):
    """The head of the answer to a good handshake."""
    fault = rule.fault if rule else None
    accept, protocol, more = accept_key(key), SUBPROTOCOL, ""
    if fault == "ws_bad_accept":
        accept = rule.params.get("accept", accept_key(key[::-1]))
    elif fault == "ws_wrong_subprotocol":
        protocol = rule.params.get("protocol", "other-exec.v9")
    elif fault == "ws_extension":
        more = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    if fault != "ws_no_subprotocol":
        more += f"Sec-WebSocket-Protocol: {protocol}\r\n"
    return ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n{more}\r\n").encode()


def refuse(server, stream, request, response):
    server.journal.request(response.status, "WS", request.target)
    stream.send(response.encode(close=True))


def serve(server, stream, request):
    where = f"WS {request.path}"
    try:
        check.hosts(request, server.port)
        key, protocols = check_handshake(request)
        for name, _ in request.headers:
            if name == "authorization" or name in check.OURS:
                raise Deviation(f"header '{name}' is sent to the socket's host")
        with server.lock:
            if key in server.keys:
                raise Deviation("a websocket key is used again")
            server.keys.add(key)
        lease = lease_of(server, request, protocols)
    except Deviation as deviation:
        server.journal.violation(where, str(deviation))
        return refuse(server, stream, request, error(400, str(deviation)))
    rule = request.fault = server.faults.take(f"WS {request.target}")
    if rule and rule.fault == "slow":
        time.sleep(rule.params.get("delay", 1))
    elif rule and rule.fault in PLAIN:
        result = Answer(stream, request, lambda: error(403, "refused"), server.base)
        server.journal.request(f"fault:{rule.fault}", "WS", request.target)
        return PLAIN[rule.fault](result)
    sandbox = lease.sandbox
    session = Session(server, stream, sandbox, rule, where)
    with sandbox.lock:
        if sandbox.status == "running":
            sandbox.sessions.add(session)
    if session not in sandbox.sessions:
        return refuse(server, stream, request, error(410, "the sandbox is gone"))
    server.journal.request(101, "WS", request.target)
    session.spoiler.handshake(answer(key, rule))
    return session.run()
