# SPDX-License-Identifier: Apache-2.0
"""Template builds: the commands of a definition really run, in a tree that new sandboxes start from.

Packages are not installed: their operations are taken and left alone.
"""
import hashlib
import json
import os
import secrets
import threading

from platform_process import Process, kill_members, new_tree, remove_tree

RETRY_MS = 100
STEP_SECONDS = 120


class Template:
    def __init__(self, directory, identity, definition):
        self.id = f"tpl-{identity[:16]}"
        self.definition = definition
        # the name of a tree is that of its processes too, and another server may know this template
        self.name = f"{self.id}-{secrets.token_hex(4)}"
        self.tree = os.path.join(directory, self.name)
        self.status, self.error = "pending", None
        self.env, self.workdir = {}, "/home/user"
        self.done = threading.Event()
        self.polls = 0

    def resources(self):
        """Family and sizes, by which one template may stand in for another."""
        sizes = {one["method"]: one["args"][0] for one in self.definition["operations"]
                 if one["method"] in ("cpuCount", "memoryMB")}
        return self.definition.get("family"), sizes.get("cpuCount"), sizes.get("memoryMB")

    def run(self, secret):
        try:
            new_tree(self.tree)
            for operation in self.definition["operations"]:
                self.step(operation["method"], operation["args"], secret)
            self.status = "ready"
        except (OSError, RuntimeError) as error:
            self.status, self.error = "failed", str(error)
        kill_members(self.name)
        self.done.set()

    def step(self, method, args, secret):
        if method == "setWorkdir":
            self.workdir = os.path.join(self.workdir, args[0])
            self.command(f"mkdir -p -- '{self.workdir}'", "/", {})
        elif method == "setEnvs":
            self.env.update(args[0])
        elif method == "runCmd":
            for command in args[0] if isinstance(args[0], list) else [args[0]]:
                self.command(command, self.workdir, {**self.env, **secret})

    def command(self, command, cwd, env):
        process = Process(self.tree, command, cwd, env)
        process.feed(None)
        output = []
        for stream in (process.child.stdout, process.child.stderr):
            threading.Thread(target=self.collect, args=(process, stream, output), daemon=True).start()
        if not process.ended.wait(STEP_SECONDS):
            process.kill()
            raise RuntimeError("a build command took too long")
        if process.code != 0:
            tail = b"".join(output)[-300:].decode("utf-8", "replace")
            raise RuntimeError(f"a build command failed with {process.code}: {tail}")

    @staticmethod
    def collect(process, stream, output):
        while data := process.read(stream):
            output.append(data)

    def pending(self):
        return {"templateId": self.id, "retryAfterMs": RETRY_MS}

    def view(self):
        value = {"status": self.status, "templateId": self.id}
        if self.status == "pending":
            value["retryAfterMs"] = RETRY_MS
        if self.error:
            value["error"] = self.error
        return value


class Templates:
    def __init__(self, directory):
        self.dir = directory
        self.lock = threading.Lock()
        self.templates = {}

    def build(self, project, environment, definition, secret):
        """The template of that definition; the first call starts it, the next ones are a look at it."""
        identity = hashlib.sha256(json.dumps([project, environment, definition]).encode()).hexdigest()
        with self.lock:
            template = self.templates.get((project, environment, identity))
            if template:
                template.polls += 1
                return template
            template = Template(self.dir, identity, definition)
            self.templates[(project, environment, identity)] = template
        threading.Thread(target=template.run, args=(secret,), daemon=True).start()
        return template

    def find(self, project, environment, identity):
        with self.lock:
            for name, template in self.templates.items():
                if name[:2] == (project, environment) and template.id == identity:
                    return template
        return None

    def usable(self, wanted):
        """The template itself when it is ready, else another of its family and size, else None."""
        if wanted.status == "ready":
            return wanted
        with self.lock:
            others = list(self.templates.values())
        for other in others:
            if other.status == "ready" and wanted.resources()[0] is not None:
                if other.resources() == wanted.resources():
                    return other
        return None

    def state(self):
        with self.lock:
            return [{**template.view(), "polls": template.polls, "family": template.resources()[0]}
                    for template in self.templates.values()]

    def end(self):
        with self.lock:
            templates = list(self.templates.values())
        for template in templates:
            kill_members(template.name)
            remove_tree(template.tree)
