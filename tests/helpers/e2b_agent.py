# SPDX-License-Identifier: Apache-2.0
"""The first process of a sandbox of the stand-in: makes its namespaces, starts and signals processes.

    e2b_agent.py FD ROOT ACCOUNTS MODE

ROOT becomes the root directory, with the programs of this machine read-only in it. MODE is "root", or
"mapped" for a user who is made root of a user namespace. FD is a SOCK_SEQPACKET socket to the stand-in;
when that closes the agent ends, and with it, being the init of a PID namespace, all of the sandbox.

    {"op": "spawn", "n": N} and file descriptors: a description, then 0, 1 and 2
    {"op": "signal", "pid": P, "sig": S, "group": BOOL}
    {"op": "all", "sig": S}

    {"op": "ready"} and the root directory; {"op": "failed", "why": TEXT}
    {"op": "spawned", "n": N, "pid": P}; {"op": "exit", "pid": P, "status": S}
"""
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
import termios

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x4000000, 0x10000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PROGRAMS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc")
KERNEL = ("dev", "sys")
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind, flags):
    check(LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None),
          f"mount {target}")


def make_readonly(target):
    # In a user namespace a remount must keep the flags that the mount has
    have = os.statvfs(target).f_flag
    keep = 0
    for flag, name in ((MS_NOSUID, "ST_NOSUID"), (MS_NODEV, "ST_NODEV"), (MS_NOEXEC, "ST_NOEXEC")):
        if have & getattr(os, name):
            keep |= flag
    mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | keep)


def make_root(root, accounts):
    # Nothing may be mounted before this: it would show up outside, where ROOT gets removed
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount(root, root, "", MS_BIND | MS_REC)
    for name in PROGRAMS + KERNEL:
        source, target = f"/{name}", f"{root}/{name}"
        if os.path.islink(source):
            if not os.path.islink(target):
                os.symlink(os.readlink(source), target)
        elif os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
            mount(source, target, "", MS_BIND | MS_REC)
            if name in PROGRAMS:
                make_readonly(target)
    for name in ("passwd", "group"):
        mount(f"{accounts}/{name}", f"{root}/etc/{name}", "", MS_BIND)
    os.makedirs(f"{root}/proc", exist_ok=True)
    try:
        mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:
        # A container hides parts of its /proc and then forbids a new one
        mount("/proc", f"{root}/proc", "", MS_BIND | MS_REC)
    os.chroot(root)
    os.chdir("/")


def start(spec, fds):
    """The child: becomes the program."""
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number, inheritable=True)
    # What came over the socket would be inherited as it is, and outlive the command's own
    os.closerange(3, 65536)
    if spec["pty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(0o022)
    os.chdir(spec["cwd"])
    if spec["uid"] is not None:
        os.setgroups([])
        os.setgid(spec["uid"])
        os.setuid(spec["uid"])
    # Not execvpe: that imports a module, of which there may be no file in this root
    places = [""] if "/" in spec["cmd"] else [p + "/" for p in spec["env"].get("PATH", "").split(":")]
    for place in places:
        try:
            os.execve(place + spec["cmd"], [spec["cmd"], *spec["args"]], spec["env"])
        except (FileNotFoundError, NotADirectoryError):
            continue
    os.write(2, f"/bin/sh: 0: exec: {spec['cmd']}: not found\n".encode())
    os._exit(127)


def spawn(message, fds):
    with os.fdopen(fds[0], "rb") as file:
        file.seek(0)
        spec = json.loads(file.read())
    pid = os.fork()
    if pid == 0:
        status = 126
        try:
            start(spec, fds[1:])
        except OSError as error:
            os.write(2, f"/bin/sh: 0: {spec['cmd']}: {error.strerror}\n".encode())
        finally:
            os._exit(status)
    for fd in fds[1:]:
        os.close(fd)
    return {"op": "spawned", "n": message["n"], "pid": pid}


def send(sock, message, fds=()):
    socket.send_fds(sock, [json.dumps(message).encode()], list(fds))


def send_signal(message):
    try:
        if message["op"] == "all":
            os.kill(-1, message["sig"])
        elif message["group"]:
            os.killpg(message["pid"], message["sig"])
        else:
            os.kill(message["pid"], message["sig"])
    except ProcessLookupError:
        pass


def reap(sock):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        send(sock, {"op": "exit", "pid": pid, "status": status})


def serve(sock):
    wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    send(sock, {"op": "ready"}, [root])
    while True:
        ready, _, _ = select.select([sock, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            reap(sock)
        if sock in ready:
            data, fds, _, _ = socket.recv_fds(sock, 65536, 8, socket.MSG_CMSG_CLOEXEC)
            if not data:
                return
            message = json.loads(data)
            if message["op"] == "spawn":
                send(sock, spawn(message, fds))
            else:
                send_signal(message)


def main():
    fd, root, accounts, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    sock = socket.socket(fileno=fd)
    sock.set_inheritable(False)
    uid, gid = os.getuid(), os.getgid()
    try:
        flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS
        check(LIBC.unshare(flags | (CLONE_NEWUSER if mode == "mapped" else 0)), "unshare")
        if mode == "mapped":
            for path, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                with open(f"/proc/self/{path}", "w", encoding="ascii") as file:
                    file.write(text)
        socket.sethostname("e2b.local")
        pid = os.fork()
        if pid == 0:
            make_root(root, accounts)
            serve(sock)
            os._exit(0)
    except OSError as error:
        send(sock, {"op": "failed", "why": str(error)})
        os._exit(1)
    sock.close()
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
