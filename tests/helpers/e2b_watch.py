# SPDX-License-Identifier: Apache-2.0
"""WatchDir of the E2B stand-in, by inotify."""
import ctypes
import os
import posixpath
import secrets
import select
import struct
import threading

import e2b_connect
import e2b_filesystem

IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 2, 4, 64, 128, 256, 512
IN_ISDIR, IN_ONLYDIR, IN_CLOEXEC = 1 << 30, 1 << 24, 0o2000000
NAMES = ((IN_CREATE | IN_MOVED_TO, "EVENT_TYPE_CREATE"), (IN_MODIFY, "EVENT_TYPE_WRITE"),
         (IN_DELETE, "EVENT_TYPE_REMOVE"), (IN_MOVED_FROM, "EVENT_TYPE_RENAME"),
         (IN_ATTRIB, "EVENT_TYPE_CHMOD"))
ALL = IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
KEEPALIVE = {"keepalive": {}}
LIBC = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Looks at a directory until it is closed; each event goes to `put`."""

    def __init__(self, tree, path, recursive, with_entry, put):
        self.tree, self.path, self.recursive, self.with_entry, self.put = (tree, path, recursive,
                                                                           with_entry,
                                                                           put)
        self.fd = LIBC.inotify_init1(IN_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self.directories = {}
        self.is_closed = False
        self.add("")
        threading.Thread(target=self.run, daemon=True).start()

    def add(self, name, tell=False):
        """Watches the directory `name`, and those in it; tells what was already there."""
        path = posixpath.join(self.path, name) if name else self.path
        try:
            fd = self.tree.open(path, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return
        try:
            number = LIBC.inotify_add_watch(self.fd, f"/proc/self/fd/{fd}".encode(), ALL | IN_ONLYDIR)
        finally:
            os.close(fd)
        if number < 0:
            return
        self.directories[number] = name
        if not self.recursive:
            return
        for child in self.tree.list(path):
            here = posixpath.join(name, child)
            if tell:
                self.tell(here, "EVENT_TYPE_CREATE")
            if e2b_filesystem.stat.S_ISDIR(
                    self.tree.status(posixpath.join(self.path, here), follow=False).st_mode):
                self.add(here, tell)

    def run(self):
        while not self.is_closed:
            ready, _, _ = select.select([self.fd], [], [], 0.2)
            if ready:
                self.read(os.read(self.fd, 65536))
        os.close(self.fd)

    def read(self, data):
        while data:
            number, mask, _, length = struct.unpack_from("iIII", data)
            name = data[16:16 + length].split(b"\0")[0].decode("utf-8", "surrogateescape")
            data = data[16 + length:]
            if number not in self.directories or not name:
                continue
            here = posixpath.join(self.directories[number], name)
            for bits, kind in NAMES:
                if mask & bits:
                    self.tell(here, kind)
            if mask & IN_ISDIR and mask & (IN_CREATE | IN_MOVED_TO) and self.recursive:
                self.add(here, True)

    def tell(self, name, kind):
        event = {"name": name, "type": kind}
        if self.with_entry and kind not in ("EVENT_TYPE_REMOVE", "EVENT_TYPE_RENAME"):
            try:
                event["entry"] = e2b_filesystem.entry(self.tree, posixpath.join(self.path, name))
            except OSError:
                pass
        self.put(event)

    def close(self):
        self.is_closed = True


def begin(sandbox, request, user, put):
    path = e2b_filesystem.expand(request["path"], user)
    e2b_filesystem.require_directory(sandbox.tree, path)
    return Watch(sandbox.tree, path, request.get("recursive", False), request.get("includeEntry", False),
                 put)


def watch_directory(sandbox, request, user, stream, _seconds):
    held = threading.Event()

    def put(event):
        held.wait()
        stream.put({"filesystem": event})

    stream.on_close.append(begin(sandbox, request, user, put).close)
    stream.put({"start": {}})
    held.set()


def create_watcher(sandbox, request, user):
    number, events = secrets.token_hex(8), []
    sandbox.watchers[number] = (begin(sandbox, request, user, events.append), events)
    return {"watcherId": number}


def find(sandbox, request):
    if request["watcherId"] not in sandbox.watchers:
        raise e2b_connect.RpcError("not_found", f"watcher with id {request['watcherId']} not found")
    return sandbox.watchers[request["watcherId"]]


def get_events(sandbox, request, _user):
    _, events = find(sandbox, request)
    found = [events.pop(0) for _ in range(len(events))]
    return {"events": found} if found else {}


def remove_watcher(sandbox, request, _user):
    watch, _ = find(sandbox, request)
    watch.close()
    sandbox.watchers.pop(request["watcherId"], None)
    return {}


STREAMS = {"WatchDir": (watch_directory, KEEPALIVE)}
UNARY = {"CreateWatcher": create_watcher, "GetWatcherEvents": get_events, "RemoveWatcher": remove_watcher}
