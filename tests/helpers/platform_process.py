# SPDX-License-Identifier: Apache-2.0
"""Commands of a sandbox: real processes that see a directory tree as /home/user and /tmp.

Each has a mount namespace of its own. /home is covered, so that nothing of the machine's own home
directories shows; the rest of the machine is there as it is.
"""
import os
import signal
import subprocess
import threading
import time

SPARE = next((path for path in ("/mnt", "/media", "/srv", "/opt") if os.path.isdir(path)), "/mnt")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULTS = {"PATH": PATH, "HOME": "/home/user", "USER": "user", "LANG": "C.UTF-8"}
# The tree may lie under /home or /tmp itself, so it is held elsewhere while they are covered.
SETUP = f"""
set -e
mount --bind "$1" {SPARE}
mount -t tmpfs -o mode=755 tmpfs /home
mkdir /home/user
mount --bind {SPARE}/home/user /home/user
mount --bind {SPARE}/tmp /tmp
umount {SPARE}
cd /home/user
cd -- "$2" || exit 1
shift 2
exec env -i "$@"
"""


def unshare_command():
    """How a mount namespace is made here, or None."""
    for words in (["unshare", "-m"], ["unshare", "-Urm"]):
        if os.geteuid() != 0 and words[1] == "-m":
            continue
        try:
            probe = subprocess.run(words + ["mount", "-t", "tmpfs", "tmpfs", "/home"], check=False,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            return None
        if probe.returncode == 0:
            return words
    return None


class Process:
    unshare = ["unshare", "-m"]

    def __init__(self, tree, command, cwd=None, env=None):
        words = [f"{name}={value}" for name, value in {**DEFAULTS, **(env or {})}.items()]
        argv = self.unshare + ["sh", "-c", SETUP, "sh", tree, cwd or "/home/user", *words,
                               "/bin/sh", "-c", command]
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
                                      stderr=subprocess.PIPE, env={"PATH": PATH}, bufsize=0,
                                      start_new_session=True)
        self.lock = threading.Lock()
        self.running = True
        self.code = None
        self.ended = threading.Event()
        threading.Thread(target=self.reap, daemon=True).start()

    def reap(self):
        # The number stays ours until the lock is held: nobody signals a stranger.
        os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)
        with self.lock:
            code = self.child.wait()
            self.running = False
        self.code = code if code >= 0 else 128 - code
        self.ended.set()

    def signal(self, number):
        with self.lock:
            if self.running:
                try:
                    os.killpg(self.child.pid, number)
                except ProcessLookupError:
                    pass

    def kill(self):
        self.signal(signal.SIGKILL)

    def feed(self, data):
        """To its standard input; None ends it. A process that reads no more is no error."""
        try:
            if data is None:
                self.child.stdin.close()
            view = memoryview(data or b"")
            while view:
                view = view[os.write(self.child.stdin.fileno(), view):]
        except (OSError, ValueError):
            pass

    def read(self, stream, size=32768):
        try:
            return os.read(stream.fileno(), size)
        except (OSError, ValueError):
            return b""

    def close(self):
        for stream in (self.child.stdout, self.child.stderr, self.child.stdin):
            try:
                stream.close()
            except OSError:
                pass


def members(name):
    """Every process that sees the tree called name, whatever its group or session is now."""
    mark = f"/{name}/home/user /home/user "
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/mountinfo", encoding="utf-8", errors="replace") as file:
                if mark in file.read():
                    yield int(entry)
        except OSError:
            continue


def kill_members(name):
    for _ in range(100):
        found = list(members(name))
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if not found:
            return
        time.sleep(0.02)


def copy_tree(source, target):
    """A copy that appears under its name when it is whole."""
    part, old = f"{target}.part", f"{target}.old"
    subprocess.run(["rm", "-rf", part, old], check=True)
    # A file that goes away meanwhile is no failure: the sandbox runs on.
    subprocess.run(["cp", "-a", "--reflink=auto", source, part], check=False,
                   stderr=subprocess.DEVNULL)
    if os.path.exists(target):
        os.rename(target, old)
    os.rename(part, target)
    subprocess.run(["rm", "-rf", old], check=True)


def remove_tree(path):
    subprocess.run(["rm", "-rf", path], check=False, stderr=subprocess.DEVNULL)


def new_tree(path):
    os.makedirs(os.path.join(path, "home", "user"))
    os.makedirs(os.path.join(path, "tmp"))
    os.chmod(os.path.join(path, "tmp"), 0o1777)
