# SPDX-License-Identifier: Apache-2.0
"""The sandboxes of the stand-in: their trees, their agents, and how they end."""
import datetime
import itertools
import json
import os
import random
import secrets
import shutil
import signal
import socket
import string
import subprocess
import sys
import threading
import time

import e2b_tree

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2b_agent.py")
ENVD_VERSION = "0.6.13"
CLIENT_ID = "6532622b"
MOUNT_POINTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "sys", "proc")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IS_ROOT = os.getuid() == 0
USER_ID = 1000 if IS_ROOT else os.getuid()
# The user of a sandbox: who he is outside, where he lives
USERS = {"user": (USER_ID, "/home/user"), "root": (os.getuid(), "/root")}


class Gone(Exception):
    """The sandbox is dead, paused or was never there."""


def when(seconds):
    """RFC 3339 with milliseconds."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def new_id(prefix="i", length=20):
    return prefix + "".join(random.choices(string.ascii_lowercase + string.digits, k=length))


def make_skeleton(root):
    for path, mode in (("home", 0o755), ("home/user", 0o755), ("tmp", 0o1777), ("root", 0o700),
                       ("run", 0o755), ("opt", 0o755), ("srv", 0o755), ("mnt", 0o755), ("var", 0o755),
                       ("var/tmp", 0o1777), ("var/lib", 0o755), ("var/log", 0o755)):
        os.makedirs(f"{root}/{path}", exist_ok=True)
        os.chmod(f"{root}/{path}", mode)
    os.chown(f"{root}/home/user", USER_ID, USER_ID if IS_ROOT else -1)


def copy_tree(source, target):
    os.makedirs(target)
    subprocess.run(["cp", "-a", "--", f"{source}/.", target], check=True)


def remove_tree(root):
    """Never what is mounted in it: in this namespace nothing is, or something is very wrong."""
    for name in MOUNT_POINTS:
        path = f"{root}/{name}"
        if os.path.isdir(path) and not os.path.islink(path) and os.listdir(path):
            raise RuntimeError(f"{path} is not empty, not removing {root}")
    shutil.rmtree(root, ignore_errors=True)


def write_accounts(directory):
    os.makedirs(directory, exist_ok=True)
    lines = ["root:x:0:0:root:/root:/bin/bash", f"user:x:{1000 if IS_ROOT else 0}:"
             f"{1000 if IS_ROOT else 0}::/home/user:/bin/bash", "nobody:x:65534:65534::/:/bin/false"]
    if not IS_ROOT:
        lines = [lines[1], lines[0], lines[2]]
    for name, text in (("passwd", lines), ("group",
                                           [":".join(line.split(":")[:3]) + ":" for line in lines])):
        with open(f"{directory}/{name}", "w", encoding="ascii") as file:
            file.write("\n".join(text) + "\n")


class Agent:
    """The init of a sandbox, from outside."""

    def __init__(self, root, accounts, on_death):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock = ours
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.waiting = {}
        self.running = {}
        self.on_death = on_death
        mode = "root" if IS_ROOT else "mapped"
        self.popen = subprocess.Popen([sys.executable, "-I", "-S", AGENT, str(theirs.fileno()), root,
                                       accounts, mode], pass_fds=[theirs.fileno()],
                                      stdin=subprocess.DEVNULL, start_new_session=True)
        theirs.close()
        ours.settimeout(30)
        data, fds, _, _ = socket.recv_fds(ours, 65536, 8, socket.MSG_CMSG_CLOEXEC)
        message = json.loads(data or b'{"op": "failed", "why": "the agent died"}')
        if message["op"] != "ready":
            self.close()
            raise RuntimeError(f"no sandbox possible here: {message['why']}")
        ours.settimeout(None)
        self.tree = e2b_tree.Tree(fds[0])
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                data = self.sock.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            message = json.loads(data)
            if message["op"] == "spawned":
                process, event = self.waiting.pop(message["n"])
                process.pid = message["pid"]
                self.running[process.pid] = process
                event.set()
            elif message["op"] == "exit" and message["pid"] in self.running:
                self.running.pop(message["pid"]).exited(message["status"])
        self.on_death(self)

    def spawn(self, process, spec, fds):
        number, event = next(self.numbers), threading.Event()
        self.waiting[number] = (process, event)
        description = os.memfd_create("spec")
        with os.fdopen(description, "wb") as file:
            file.write(json.dumps(spec).encode())
            file.flush()
            self.send({"op": "spawn", "n": number}, [file.fileno(), *fds])
        if not event.wait(10):
            raise Gone()

    def send(self, message, fds=()):
        try:
            with self.lock:
                socket.send_fds(self.sock, [json.dumps(message).encode()], list(fds))
        except OSError as error:
            raise Gone() from error

    def signal(self, pid, number, group=False):
        self.send({"op": "signal", "pid": pid, "sig": int(number), "group": group})

    def signal_all(self, number):
        self.send({"op": "all", "sig": int(number)})

    def close(self):
        """All of the sandbox's processes end before this returns."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.popen.wait()
        self.sock.close()


class Sandbox:
    def __init__(self, world, template, wanted):
        self.world = world
        self.id = new_id()
        self.template = template
        self.wanted = wanted
        self.root = os.path.join(world.directory, self.id)
        self.token = secrets.token_hex(32) if wanted.get("secure") else None
        self.metadata = wanted.get("metadata", {})
        self.network = wanted.get("network")
        self.internet = wanted.get("allow_internet_access")
        self.auto_pause = wanted.get("autoPause", False)
        self.auto_resume = wanted.get("autoResume", {}).get("enabled", False)
        self.timeout = wanted["timeout"]
        self.started = time.time()
        self.ends = self.started + self.timeout
        self.state = "running"
        self.lock = threading.RLock()
        self.agent = None
        self.has_memory = True
        self.processes = {}
        self.streams = set()
        self.watchers = {}
        self.logs = []
        self.note("sandbox created")

    def note(self, text):
        self.logs.append({"timestamp": time.time(), "message": text})

    def boot(self):
        self.agent = Agent(self.root, self.world.accounts, self.agent_died)

    def agent_died(self, agent):
        if self.agent is agent and self.state == "running" and not self.world.is_ending:
            self.world.end(self, "its agent died")

    @property
    def tree(self):
        agent = self.agent
        if not agent:
            raise Gone()
        return agent.tree

    def environment(self, user):
        home = USERS[user][1]
        return {"PATH": PATH, "HOME": home, "USER": user, "LOGNAME": user, **self.defaults()}

    def defaults(self):
        return {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": self.id, "E2B_TEMPLATE_ID": self.template.id,
                **self.template.env, **self.wanted.get("envVars", {})}

    def add_stream(self, stream):
        with self.lock:
            if self.state != "running":
                raise Gone()
            self.streams.add(stream)

    def cut_streams(self):
        for stream in list(self.streams):
            stream.cut()

    def shut_down(self):
        """The processes end, the tree stays."""
        self.cut_streams()
        agent, self.agent = self.agent, None
        if agent:
            agent.close()
        self.processes.clear()
        self.watchers.clear()

    def pause(self, memory=True):
        with self.lock:
            self.state = "paused"
            self.has_memory = memory
            self.note("sandbox paused")
            if memory:
                self.cut_streams()
                self.agent.signal_all(signal.SIGSTOP)
            else:
                self.shut_down()

    def resume(self, timeout, memory=True):
        with self.lock:
            if not memory:
                self.shut_down()
            if self.agent:
                self.agent.signal_all(signal.SIGCONT)
            else:
                self.boot()
            self.state = "running"
            self.note("sandbox resumed")
            self.ends = time.time() + timeout

    def short(self):
        answer = {"templateID": self.template.id, "sandboxID": self.id, "clientID": CLIENT_ID,
                  "envdVersion": ENVD_VERSION}
        if self.token:
            answer["envdAccessToken"] = self.token
        return {**answer, "trafficAccessToken": None, "domain": self.world.domain}

    def listed(self):
        answer = {"templateID": self.template.id}
        if self.template.aliases:
            answer["alias"] = self.template.aliases[0]
        answer.update({"sandboxID": self.id, "clientID": CLIENT_ID, "startedAt": when(self.started),
                       "endAt": when(self.ends), "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024,
                       "envdVersion": ENVD_VERSION, "state": self.state})
        if self.metadata:
            answer["metadata"] = self.metadata
        if self.wanted.get("volumeMounts"):
            answer["volumeMounts"] = self.wanted["volumeMounts"]
        return answer

    def detail(self):
        answer = self.listed()
        if self.token:
            answer["envdAccessToken"] = self.token
        answer["domain"] = self.world.domain
        if self.internet is not None:
            answer["allowInternetAccess"] = self.internet
        if self.network is not None:
            answer["network"] = self.network
        answer["lifecycle"] = {"autoResume": self.auto_resume,
                               "onTimeout": "pause" if self.auto_pause else "kill"}
        return answer


class Template:
    def __init__(self, template_id, aliases, root):
        self.id = template_id
        self.aliases = aliases
        self.root = root
        self.env = {}
        self.workdir = None
        self.user = "user"
        self.start_command = ""
        self.public = False
        self.is_ready = True
        self.is_snapshot = False
        self.of_sandbox = None
        self.created = time.time()
        self.tags = ["default"]
        self.builds = {}
        self.files = {}

    def is_called(self, name):
        return name in (self.id, *self.aliases) or name in [f"{alias}:{tag}" for alias in self.aliases
                                                            for tag in self.tags]


class World:
    """All there is: sandboxes and templates."""

    def __init__(self, directory, names, domain, keys):
        self.directory = os.path.abspath(directory)
        self.accounts = os.path.join(self.directory, "accounts")
        self.domain = domain
        self.keys = keys
        self.lock = threading.RLock()
        self.sandboxes = {}
        self.hidden = {}
        self.dead = 0
        self.is_ending = False
        os.makedirs(self.directory, exist_ok=True)
        write_accounts(self.accounts)
        base = os.path.join(self.directory, "templates", "base")
        make_skeleton(base)
        self.templates = [Template(name, [name], base) for name in names]
        for template in self.templates:
            template.public = True
        threading.Thread(target=self.watch_time, daemon=True).start()

    def template(self, name, ready=True):
        with self.lock:
            for template in self.templates:
                if template.is_called(name) and (template.is_ready or not ready):
                    return template
        return None

    def create(self, template, wanted, source=None, hidden=False):
        """A new sandbox from a template or from another tree; a hidden one is in no list."""
        sandbox = Sandbox(self, template, wanted)
        copy_tree(source or template.root, sandbox.root)
        try:
            sandbox.boot()
        except RuntimeError:
            remove_tree(sandbox.root)
            raise
        with self.lock:
            (self.hidden if hidden else self.sandboxes)[sandbox.id] = sandbox
        return sandbox

    def get(self, sandbox_id):
        with self.lock:
            return self.sandboxes.get(sandbox_id.partition("-")[0])

    def end(self, sandbox, why="ended"):
        with self.lock:
            if self.hidden.pop(sandbox.id, None) is None:
                if self.sandboxes.pop(sandbox.id, None) is None:
                    return False
                self.dead += 1
        with sandbox.lock:
            sandbox.state = "dead"
            sandbox.note(why)
            sandbox.shut_down()
            remove_tree(sandbox.root)
        return True

    def expire(self, sandbox):
        if sandbox.auto_pause:
            sandbox.pause(sandbox.wanted.get("autoPauseMemory", True))
        else:
            self.end(sandbox, "timeout")

    def watch_time(self):
        while not self.is_ending:
            time.sleep(0.05)
            with self.lock:
                over = [s for s in self.sandboxes.values() if s.state == "running" and s.ends <= time.time()]
            for sandbox in over:
                try:
                    self.expire(sandbox)
                except Gone:
                    self.end(sandbox)

    def close(self):
        self.is_ending = True
        for sandbox in [*self.sandboxes.values(), *self.hidden.values()]:
            self.end(sandbox, "the stand-in ends")
        for name in os.listdir(os.path.join(self.directory, "templates")):
            remove_tree(os.path.join(self.directory, "templates", name))
        for name in ("templates", "accounts"):
            shutil.rmtree(os.path.join(self.directory, name), ignore_errors=True)
