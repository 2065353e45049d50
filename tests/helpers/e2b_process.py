# SPDX-License-Identifier: Apache-2.0
"""process.Process of the E2B stand-in: programs that really run."""
import base64
import fcntl
import os
import posixpath
import pty
import signal
import struct
import termios
import threading
import time

import e2b_connect
from e2b_connect import RpcError
from e2b_sandbox import IS_ROOT, USERS

KEEPALIVE = {"event": {"keepalive": {}}}
PIPE_CHUNK, PTY_CHUNK = 32768, 16384
KEPT = 30
SIGNALS = {"SIGNAL_SIGKILL": signal.SIGKILL, "SIGNAL_SIGTERM": signal.SIGTERM}


def resize(fd, size):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size["rows"], size["cols"], 0, 0))


def end_event(status):
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        text = f"exit status {code}"
        if code == 0:
            return {"exited": True, "status": text}
        return {"exitCode": code, "exited": True, "status": text, "error": text}
    text = "signal: " + signal.strsignal(os.WTERMSIG(status)).lower()
    text += " (core dumped)" if os.WCOREDUMP(status) else ""
    return {"exitCode": -1, "status": text, "error": text}


class Process:
    def __init__(self, sandbox, request, user):
        self.sandbox = sandbox
        self.config = request["process"]
        self.pty = request.get("pty")
        self.tag = request.get("tag")
        self.has_stdin = request.get("stdin", True) and not self.pty
        self.user = user
        self.pid = None
        self.lock = threading.RLock()
        self.input_lock = threading.Lock()
        self.input = None
        self.streams = []
        self.status = None
        self.status_known = threading.Event()
        self.end = None
        self.ended = None

    def working_directory(self):
        tree, home = self.sandbox.tree, USERS[self.user][1]
        cwd = self.config.get("cwd") or self.sandbox.template.workdir or home
        cwd = posixpath.normpath(posixpath.join(home, cwd))
        try:
            if tree.is_directory(cwd):
                return cwd
        except OSError:
            pass
        raise RpcError("invalid_argument", f"cwd '{cwd}' does not exist")

    def start(self, seconds, stream=None):
        spec = {"cmd": self.config["cmd"], "args": self.config.get("args", []),
                "cwd": self.working_directory(),
                "env": {**self.sandbox.environment(self.user), **self.config.get("envs", {})},
                "uid": USERS[self.user][0] if IS_ROOT else None, "pty": bool(self.pty)}
        outputs, theirs = self.open_files()
        try:
            self.sandbox.agent.spawn(self, spec, theirs[:3])
        finally:
            for fd in set(theirs):
                os.close(fd)
        self.sandbox.processes[self.pid] = self
        if self.sandbox.state == "paused":
            # The pause came in between
            self.sandbox.agent.signal_all(signal.SIGSTOP)
        if stream:
            self.add(stream)
        readers = [threading.Thread(target=self.read, args=(fd, kind), daemon=True) for fd, kind in outputs]
        for thread in readers:
            thread.start()
        threading.Thread(target=self.finish, args=(readers,), daemon=True).start()
        if seconds is not None:
            timer = threading.Timer(seconds, self.kill)
            timer.daemon = True
            timer.start()

    def open_files(self):
        """What we read from, as pairs, and the program's 0, 1 and 2."""
        if self.pty:
            master, slave = pty.openpty()
            if IS_ROOT:
                os.fchown(slave, USERS[self.user][0], -1)
            resize(master, self.pty["size"])
            self.input = master
            return [(master, "pty")], [slave, slave, slave]
        out, their_out = os.pipe2(os.O_CLOEXEC)
        err, their_err = os.pipe2(os.O_CLOEXEC)
        if self.has_stdin:
            their_in, self.input = os.pipe2(os.O_CLOEXEC)
        else:
            their_in = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        if IS_ROOT:
            # /dev/stdout can be opened by name
            for fd in (their_out, their_err) + ((their_in,) if self.has_stdin else ()):
                os.fchown(fd, USERS[self.user][0], -1)
        return [(out, "stdout"), (err, "stderr")], [their_in, their_out, their_err]

    def add(self, stream):
        """Another client, who sees what comes from now on."""
        with self.lock:
            stream.put({"event": {"start": {"pid": self.pid}}})
            if self.end is None:
                self.streams = [s for s in self.streams if not s.is_closed] + [stream]
            else:
                stream.put({"event": {"end": self.end}})
                stream.finish()

    def publish(self, event):
        with self.lock:
            streams = list(self.streams)
        for stream in streams:
            stream.put({"event": event})

    def read(self, fd, kind):
        while True:
            try:
                data = os.read(fd, PTY_CHUNK if kind == "pty" else PIPE_CHUNK)
            except OSError:
                data = b""
            if not data:
                break
            self.publish({"data": {kind: e2b_connect.b64(data)}})
        if kind != "pty":
            os.close(fd)

    def exited(self, status):
        """From the agent; must not wait."""
        self.status = status
        self.status_known.set()

    def finish(self, readers):
        for thread in readers:
            thread.join()
        # No status comes when the whole sandbox ends
        while not self.status_known.wait(0.5):
            if self.sandbox.processes.get(self.pid) is not self:
                return
        with self.lock:
            self.end = end_event(self.status)
            self.ended = time.monotonic()
            streams = list(self.streams)
        for stream in streams:
            stream.put({"event": {"end": self.end}})
            stream.finish()
        self.close_input()
        self.forget_old()

    def forget_old(self):
        processes = self.sandbox.processes
        for pid, process in list(processes.items()):
            if process.ended is not None and time.monotonic() - process.ended > KEPT:
                processes.pop(pid, None)

    def signal(self, number):
        if self.status is None and self.sandbox.agent:
            self.sandbox.agent.signal(self.pid, number, self.sandbox.world.signal_group)

    def kill(self):
        if self.sandbox.processes.get(self.pid) is self and self.sandbox.state in ("running", "paused"):
            self.signal(signal.SIGKILL)

    def write(self, data):
        with self.input_lock:
            if self.input is None:
                raise RpcError("internal", "error writing to stdin: stdin not enabled or closed")
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self.input, view):]
            except OSError as error:
                raise RpcError("internal", f"error writing to stdin: {error.strerror.lower()}") from error

    def close_input(self):
        with self.input_lock:
            if self.input is not None:
                os.close(self.input)
                self.input = None

    def listed(self):
        config = {"cmd": self.config["cmd"]}
        for name in ("args", "envs", "cwd"):
            if self.config.get(name):
                config[name] = self.config[name]
        return {"config": config, "pid": self.pid, **({"tag": self.tag} if self.tag else {})}


def find(sandbox, selector, with_ended=False):
    """A process by pid or tag; the newest of a tag."""
    for process in reversed(list(sandbox.processes.values())):
        if process.ended is not None:
            if not with_ended or time.monotonic() - process.ended > KEPT:
                continue
        if process.pid == selector.get("pid") or (process.tag and process.tag == selector.get("tag")):
            return process
    name, value = next(iter(selector.items()))
    raise RpcError("not_found", f"process with {name} {value} not found")


# Streams: called with a stream that the caller pumps.

def start(sandbox, request, user, stream, seconds):
    Process(sandbox, request, user).start(seconds, stream)


def connect(sandbox, request, _user, stream, _seconds):
    find(sandbox, request["process"], True).add(stream)


# Unary.

def list_processes(sandbox, _request, _user):
    running = [p.listed() for p in list(sandbox.processes.values()) if p.ended is None]
    return {"processes": running} if running else {}


def send_input(sandbox, request, _user):
    process = find(sandbox, request["process"])
    kind, data = next(iter(request["input"].items()))
    if kind == "pty" and not process.pty:
        raise RpcError("internal", "error writing to tty: tty not assigned to process")
    if kind == "stdin" and process.pty:
        raise RpcError("internal", "error writing to stdin: the process has a tty")
    process.write(base64.b64decode(data))
    return {}


def close_stdin(sandbox, request, _user):
    process = find(sandbox, request["process"])
    if process.pty:
        raise RpcError("internal", "cannot close the stdin of a process with a tty")
    process.close_input()
    return {}


def send_signal(sandbox, request, _user):
    find(sandbox, request["process"]).signal(SIGNALS[request["signal"]])
    return {}


def update(sandbox, request, _user):
    process = find(sandbox, request["process"])
    if "pty" in request:
        if not process.pty:
            raise RpcError("internal", "tty not assigned to process")
        resize(process.input, request["pty"]["size"])
    return {}


STREAMS = {"Start": (start, KEEPALIVE), "Connect": (connect, KEEPALIVE)}
UNARY = {"List": list_processes, "SendInput": send_input, "CloseStdin": close_stdin,
         "SendSignal": send_signal, "Update": update}
