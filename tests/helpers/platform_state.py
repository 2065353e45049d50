# SPDX-License-Identifier: Apache-2.0
"""Sandboxes, checkpoints and leases of the stand-in: a directory tree for each of the first two."""
import base64
import datetime
import hashlib
import os
import secrets
import threading
import time

from platform_process import Process, copy_tree, kill_members, new_tree, remove_tree
from platform_templates import Templates

LAST_MINUTE, FRESH = 60, 2
SUBPROTOCOL = "workspace-exec.v1"


def stamp(when):
    moment = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def random_jwt():
    parts = [secrets.token_bytes(size) for size in (27, 60, 32)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


class Lease:
    def __init__(self, sandbox, expires):
        self.sandbox, self.expires = sandbox, expires
        self.jwt = random_jwt()
        self.minted = time.time()
        self.uses = 0

    def complaint(self):
        """A lease is good until a minute before its end; one without a good end is for one call.

        Calls that ran side by side may have shared it, so a young one is not complained of.
        """
        self.uses += 1
        ends = self.expires if isinstance(self.expires, float) else 0
        now = time.time()
        if self.uses > 1 and now > ends - LAST_MINUTE + FRESH and now > self.minted + FRESH:
            return "a lease is used again in its last minute, or without a good expiry"
        return None


class Sandbox:
    def __init__(self, world, asked, project, provider):
        self.id = "sbx-" + secrets.token_hex(8)
        self.resource = "res-" + secrets.token_hex(8)
        self.asked, self.project, self.provider = asked, project, provider
        self.key = asked["id"]
        self.tree = os.path.join(world.dir, self.id)
        self.created = time.time()
        self.status = "running"
        self.source = "base"
        self.template_env, self.pending = {}, None
        self.lock = threading.Lock()
        self.sessions, self.processes = set(), set()
        self.execs = self.leases = 0
        self.sidecar = None

    def start(self, command, cwd, env):
        """A process, or None where the sandbox is no more."""
        with self.lock:
            if self.status != "running":
                return None
            self.execs += 1
            process = Process(self.tree, command, cwd,
                              {**self.template_env, **self.asked["env"], **(env or {})})
            self.processes = {one for one in self.processes if one.running} | {process}
            return process

    def end(self, status):
        """What dies with it: its sockets, its processes, its files."""
        with self.lock:
            if self.status != "running":
                return
            self.status = status
            sessions, processes = list(self.sessions), list(self.processes)
        if self.sidecar:
            self.sidecar.close()
        for session in sessions:
            session.abandon()
        for process in processes:
            process.kill()
            process.ended.wait(5)
        kill_members(self.id)
        remove_tree(self.tree)

    def view(self):
        value = {"id": self.id, "providerResourceId": self.resource, "status": self.status,
                 "createdAt": stamp(self.created), "destroyedAt": None,
                 "instanceUrl": f"http://127.0.0.1:{self.sidecar.port}" if self.sidecar else None}
        return value

    def state(self):
        return {**self.view(), "key": self.key, "project": self.project, "provider": self.provider,
                "environmentId": self.asked["environmentId"], "env": sorted(self.asked["env"]),
                "idleTimeoutMinutes": self.asked.get("idleTimeoutMinutes"),
                "networkIsolation": self.asked.get("networkIsolation"),
                "seedCheckpointName": self.asked.get("seedCheckpointName"), "source": self.source,
                "execs": self.execs, "leases": self.leases, "sockets": len(self.sessions),
                "running": sum(process.running for process in self.processes)}


class World:
    def __init__(self, directory, journal, lease_ttl):
        self.dir, self.journal, self.lease_ttl = directory, journal, lease_ttl
        self.lock, self.creation = threading.Lock(), threading.Lock()
        self.sandboxes, self.leases = {}, {}
        self.checkpoints, self.captures = {}, {}
        self.templates = Templates(directory)
        self.new_sidecar = None

    def find(self, identity, project, provider):
        with self.lock:
            sandbox = self.sandboxes.get(identity)
        return sandbox if sandbox and (sandbox.project, sandbox.provider) == (project, provider) else None

    def by_name(self, name):
        with self.lock:
            found = [one for one in self.sandboxes.values() if name in (one.id, one.key)]
        return found[-1] if found else None

    def create(self, asked, project, provider):
        """The running sandbox of that id, or a new one from its checkpoint, its seed or its template."""
        with self.creation:
            with self.lock:
                for sandbox in self.sandboxes.values():
                    if (sandbox.status, sandbox.project, sandbox.provider,
                            sandbox.key) == ("running", project, provider, asked["id"]):
                        return sandbox
            sandbox = Sandbox(self, asked, project, provider)
            self.furnish(sandbox)
            if self.new_sidecar:
                sandbox.sidecar = self.new_sidecar(sandbox)
            with self.lock:
                self.sandboxes[sandbox.id] = sandbox
            return sandbox

    def furnish(self, sandbox):
        asked, project = sandbox.asked, sandbox.project
        own, seed = (project, sandbox.key), (project, asked.get("seedCheckpointName"))
        with self.lock:
            for word, name in (("checkpoint", own), ("seed", seed)):
                if name in self.checkpoints:
                    sandbox.source = f"{word}:{name[1]}"
                    sandbox.template_env = self.checkpoints[name]["env"]
                    return copy_tree(self.checkpoints[name]["tree"], sandbox.tree)
        if "templateDefinition" in asked:
            wanted = self.templates.build(project, asked["environmentId"], asked["templateDefinition"],
                                          asked.get("templateBuildEnvs", {}))
            if wanted.status == "pending":
                sandbox.pending = wanted.pending()
            usable = self.templates.usable(wanted)
            if usable:
                sandbox.source = f"{'template' if usable is wanted else 'family'}:{usable.id}"
                sandbox.template_env = dict(usable.env)
                return copy_tree(usable.tree, sandbox.tree)
        return new_tree(sandbox.tree)

    def capture(self, sandbox, name):
        """captured, or coalesced with a capture that was under way"""
        full = (sandbox.project, name)
        with self.lock:
            running = self.captures.get(full)
            if running is None:
                self.captures[full] = threading.Event()
        if running:
            running.wait(60)
            return "coalesced"
        try:
            digest = hashlib.sha256(repr(full).encode()).hexdigest()[:16]
            tree = os.path.join(self.dir, f"cp-{digest}")
            copy_tree(sandbox.tree, tree)
            with self.lock:
                self.checkpoints[full] = {"tree": tree, "env": sandbox.template_env,
                                          "captured": stamp(time.time())}
        finally:
            with self.lock:
                self.captures.pop(full).set()
        return "captured"

    def forget(self, project, name):
        with self.lock:
            checkpoint = self.checkpoints.pop((project, name), None)
        if checkpoint:
            remove_tree(checkpoint["tree"])
        return checkpoint is not None

    def mint(self, sandbox, expires):
        lease = Lease(sandbox, expires)
        with self.lock:
            self.leases[lease.jwt] = lease
            sandbox.leases += 1
        return lease

    def state(self):
        with self.lock:
            sandboxes = list(self.sandboxes.values())
            checkpoints = [{"project": name[0], "name": name[1], "captured": value["captured"]}
                           for name, value in self.checkpoints.items()]
        return {"sandboxes": [one.state() for one in sandboxes], "checkpoints": checkpoints,
                "templates": self.templates.state()}

    def end(self):
        # kept for good: nothing new is made any more
        self.creation.acquire()
        with self.lock:
            sandboxes = list(self.sandboxes.values())
        for sandbox in sandboxes:
            sandbox.end("deleted")
        self.templates.end()
        with self.lock:
            trees = [value["tree"] for value in self.checkpoints.values()]
        for tree in trees:
            remove_tree(tree)
