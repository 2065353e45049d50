# SPDX-License-Identifier: Apache-2.0
"""Templates and snapshots of the E2B stand-in; what a build runs, it runs."""
import base64
import fnmatch
import os
import posixpath
import re
import secrets
import shutil
import tarfile
import threading
import time
import uuid

import e2b_connect
import e2b_process
import e2b_schema
from e2b_errors import ControlError
from e2b_sandbox import Gone, Template, USERS, copy_tree, new_id, remove_tree, when
from standin_http import Violation

UPLOAD = "/__upload/"
LOG_PAGE = 100
READY_SECONDS = 20


class BuildFailed(Exception):
    def __init__(self, message, step=None):
        super().__init__(message)
        self.step = step


class Collector(e2b_connect.Stream):
    """A stream nobody pumps: keeps what a process wrote."""

    def __init__(self, line):
        super().__init__({})
        self.line = line
        self.rest = b""
        self.done = threading.Event()
        self.code = None

    def put(self, message):
        event = message["event"]
        for data in event.get("data", {}).values():
            *lines, self.rest = (self.rest + base64.b64decode(data)).split(b"\n")
            for line in lines:
                self.line(line.decode("utf-8", "replace"))
        if "end" in event:
            self.code = event["end"].get("exitCode", 0)

    def finish(self, error=None):
        if self.rest:
            self.line(self.rest.decode("utf-8", "replace"))
        self.done.set()

    def cut(self):
        self.done.set()


def run(sandbox, command, user, env, cwd, line):
    """Shell text in a sandbox, to its end; returns the exit code, None when the sandbox ended."""
    request = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command], "envs": env}, "stdin": False}
    if cwd:
        request["process"]["cwd"] = cwd
    collector = Collector(line)
    sandbox.add_stream(collector)
    try:
        e2b_process.Process(sandbox, request, user).start(None, collector)
        collector.done.wait()
    except e2b_connect.RpcError as error:
        raise BuildFailed(str(error)) from error
    finally:
        sandbox.streams.discard(collector)
        collector.close()
    return collector.code


class Build:
    def __init__(self, template):
        self.id = str(uuid.uuid4())
        self.template = template
        self.status = "waiting"
        self.entries = []
        self.reason = None
        self.wanted = None
        self.step = None

    def log(self, message, level="info"):
        entry = {"timestamp": when(time.time()), "level": level, "message": message}
        if self.step is not None:
            entry["step"] = str(self.step)
        self.entries.append(entry)

    def work(self, world, source):
        time.sleep(world.build_wait)
        self.status = "building"
        self.log("Building template")
        made = Template(self.template.id, self.template.aliases, source.root)
        made.env, made.workdir, made.user = dict(source.env), source.workdir, source.user
        sandbox = None
        try:
            sandbox = world.create(made, {"timeout": 24 * 3600, "metadata": {}}, hidden=True)
            for number, step in enumerate(self.wanted.get("steps", []), 1):
                self.step = number
                self.run_step(sandbox, made, step)
            self.step = None
            self.finish(world, sandbox, made)
        except (BuildFailed, Gone, RuntimeError, OSError) as error:
            self.log(str(error), "error")
            self.reason = {"message": str(error)}
            if self.step is not None:
                self.reason["step"] = str(self.step)
            self.reason["logEntries"] = self.entries[-10:]
            self.status = "error"
        finally:
            if sandbox:
                world.end(sandbox)

    def finish(self, world, sandbox, made):
        made.start_command = self.wanted.get("startCmd", "")
        if made.start_command:
            threading.Thread(target=start_quietly, args=(sandbox, made), daemon=True).start()
        ready = self.wanted.get("readyCmd", "")
        until = time.monotonic() + READY_SECONDS
        while ready and run(sandbox, ready, made.user, made.env, made.workdir, self.log) != 0:
            if time.monotonic() > until:
                raise BuildFailed("the ready command did not succeed")
            time.sleep(0.1)
        sandbox.state = "ending"
        sandbox.shut_down()
        root = os.path.join(world.directory, "templates", self.id)
        copy_tree(sandbox.root, root)
        template = self.template
        template.env, template.workdir, template.user = made.env, made.workdir, made.user
        template.start_command, template.root, template.is_ready = made.start_command, root, True
        self.log("Build finished")
        self.status = "ready"

    def run_step(self, sandbox, made, step):
        kind, args = step["type"], step.get("args", [])
        self.log(f"{kind} {' '.join(args)}")
        user = made.user
        if kind == "RUN":
            user = args[1] if len(args) > 1 and args[1] else user
            if user not in USERS:
                raise BuildFailed(f"invalid username: '{user}'")
            code = run(sandbox, args[0], user, made.env, made.workdir, self.log)
            if code != 0:
                raise BuildFailed(f"failed to run command '{args[0]}': exit status {code}")
        elif kind == "ENV":
            for name, value in zip(args[::2], args[1::2]):
                made.env[name] = value
        elif kind == "WORKDIR":
            path = posixpath.join(made.workdir or USERS[user][1], args[0])
            sandbox.tree.make_directories(posixpath.normpath(path), USERS[user][0])
            made.workdir = posixpath.normpath(path)
        elif kind == "USER":
            if args[0] not in USERS:
                raise BuildFailed(f"invalid username: '{args[0]}'")
            made.user = args[0]
        elif kind == "COPY":
            self.copy(sandbox, made, step, user)

    def copy(self, sandbox, made, step, user):
        source, destination, *more = step["args"]
        owner = more[0] if more and more[0] else user
        archive = self.template.files.get(step.get("filesHash"))
        if not archive:
            raise BuildFailed("the files of a COPY were not uploaded")
        base = posixpath.join(made.workdir or USERS[user][1], destination)
        found = False
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                name = posixpath.normpath(member.name).lstrip("/")
                wanted = posixpath.normpath(source)
                if name == wanted or wanted == "." or fnmatch.fnmatch(name, wanted):
                    inside = name if wanted == "." else ""
                elif name.startswith(wanted + "/"):
                    inside = name[len(wanted) + 1:]
                else:
                    continue
                found = True
                if not inside and destination.endswith("/") and member.isfile():
                    inside = posixpath.basename(name)
                self.put(sandbox.tree, tar, member, posixpath.normpath(posixpath.join(base, inside)),
                         USERS.get(owner, USERS["user"])[0])
        if not found:
            raise BuildFailed(f"no file '{source}' to copy")

    @staticmethod
    def put(tree, tar, member, path, owner):
        if member.isdir():
            tree.make_directories(path, owner)
        elif member.isfile():
            tree.make_directories(posixpath.dirname(path), owner)
            fd, _ = tree.create(path)
            with os.fdopen(fd, "wb") as file:
                shutil.copyfileobj(tar.extractfile(member), file)
                os.fchmod(fd, member.mode & 0o777)
                if os.getuid() == 0:
                    os.fchown(fd, owner, owner)


def start_quietly(sandbox, template):
    try:
        run(sandbox, template.start_command, template.user, {}, template.workdir, lambda line: None)
    except (BuildFailed, Gone):
        pass


def start_template_command(sandbox):
    if sandbox.template.start_command:
        threading.Thread(target=start_quietly, args=(sandbox, sandbox.template), daemon=True).start()


# Routes

def missing(name):
    return ControlError(404, f"template '{name}' not found")


def template_of(call):
    template = call.world.template(call.names["tid"], ready=False)
    if not template:
        raise missing(call.names["tid"])
    return template


def get_alias(call):
    template = call.world.template(call.names["alias"], ready=False)
    if not template:
        raise missing(call.names["alias"])
    return 200, {"public": template.public, "templateID": template.id}


def request_build(call):
    name, _, tag = call.body["name"].partition(":")
    if not re.fullmatch("[a-z0-9][a-z0-9_./-]*", name):
        raise ControlError(400, f"invalid template name '{name}'")
    tags = call.body.get("tags", []) + ([tag] if tag else [])
    with call.world.lock:
        template = call.world.template(name, ready=False)
        if not template:
            template = Template(new_id("", 20), [name], None)
            template.is_ready = False
            call.world.templates.append(template)
        template.tags = sorted(set(template.tags) | set(tags))
        build = Build(template)
        template.builds[build.id] = build
    return 202, {"templateID": template.id, "buildID": build.id, "public": template.public,
                 "names": template.aliases, "aliases": template.aliases, "tags": tags or ["default"]}


def build_of(call):
    build = template_of(call).builds.get(call.names["bid"])
    if not build:
        raise ControlError(404, f"build '{call.names['bid']}' not found")
    return build


def start_build(call):
    build, body = build_of(call), call.body
    if build.wanted is not None:
        raise ControlError(400, "the build has already been started")
    if ("fromImage" in body) == ("fromTemplate" in body):
        raise ControlError(400, "exactly one of fromImage and fromTemplate is needed")
    for step in body.get("steps", []):
        least = {"RUN": 1, "COPY": 2, "WORKDIR": 1, "USER": 1, "ENV": 2}[step["type"]]
        if len(step.get("args", [])) < least:
            raise ControlError(400, f"a {step['type']} step needs {least} arguments")
    name = body.get("fromTemplate")
    source = call.world.template(name) if name else call.world.templates[0]
    if not source:
        raise missing(name)
    build.wanted = body
    threading.Thread(target=build.work, args=(call.world, source), daemon=True).start()
    return 202, None


def build_status(call):
    build = build_of(call)
    first = int(call.query.get("logsOffset", 0))
    # The state is read first: what was logged before the end is then in this answer or a later one
    status, reason = build.status, build.reason
    entries = build.entries[first:first + min(int(call.query.get("limit", LOG_PAGE)), LOG_PAGE)]
    answer = {"templateID": build.template.id, "buildID": build.id, "status": status,
              "logEntries": entries, "logs": [entry["message"] for entry in entries]}
    if reason:
        answer["reason"] = reason
    return 200, answer


def file_upload(call):
    template, digest = template_of(call), call.names["hash"]
    if digest in template.files:
        return 201, {"present": True}
    scheme = "https" if call.world.is_tls else "http"
    url = f"{scheme}://127.0.0.1:{call.world.port}{UPLOAD}{template.id}/{digest}?ticket={secrets.token_hex(8)}"
    return 201, {"present": False, "url": url}


def plan_upload(world, request):
    """Where the files of a COPY are put: an address of its own kind, with no credential."""
    match = re.fullmatch(UPLOAD + "([a-z0-9]+)/([A-Za-z0-9]+)", request.path)
    if request.method != "PUT" or not match:
        raise Violation(f"no {request.method} {request.path}", 404)
    if request.header("content-length") is None:
        raise Violation("an upload without Content-Length")
    for name in ("x-api-key", "authorization", "x-access-token"):
        if request.header(name) is not None:
            raise Violation(f"{name} was sent with an upload")

    def action(connection):
        template = world.template(match[1], ready=False)
        if not template:
            connection.json(404, {"code": 404, "message": "no such template"})
            return
        path = os.path.join(world.directory, "uploads", f"{template.id}-{match[2]}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        request.file.seek(0)
        with open(path, "wb") as file:
            shutil.copyfileobj(request.file, file)
        if not tarfile.is_tarfile(path):
            raise Violation("an upload that is no tar")
        template.files[match[2]] = path
        connection.respond(200)
    return action


def list_templates(call):
    with call.world.lock:
        templates = [t for t in call.world.templates if not t.is_snapshot]
    return 200, [{"templateID": t.id, "buildID": next(reversed(t.builds), str(uuid.UUID(int=0))),
                  "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "public": t.public,
                  "aliases": t.aliases, "names": t.aliases, "createdAt": when(t.created),
                  "updatedAt": when(t.created), "buildCount": len(t.builds), "envdVersion": "0.6.13",
                  "buildStatus": "ready" if t.is_ready else "building"} for t in templates]


def change_template(call):
    template_of(call).public = call.body["public"]
    return 200, {"names": template_of(call).aliases}


def list_tags(call):
    template = template_of(call)
    build = next(reversed(template.builds), str(uuid.UUID(int=0)))
    return 200, [{"tag": tag, "buildID": build,
                  "createdAt": when(template.created)} for tag in template.tags]


def delete_template(call):
    template = template_of(call)
    with call.world.lock:
        if template not in call.world.templates:
            raise missing(call.names["tid"])
        call.world.templates.remove(template)
    if template.root and os.path.basename(template.root) != "base":
        remove_tree(template.root)
    return 204, None


def snapshot(call):
    sandbox = call.sandbox()
    name = call.body.get("name")
    snapshot_id = f"{name}:default" if name else new_id("", 20) + ":default"
    root = os.path.join(call.world.directory, "templates", f"snapshot-{secrets.token_hex(8)}")
    copy_tree(sandbox.root, root)
    made = Template(snapshot_id, [name] if name else [], root)
    made.env, made.workdir, made.user = sandbox.template.env, sandbox.template.workdir, sandbox.template.user
    made.is_snapshot, made.of_sandbox = True, sandbox.id
    with call.world.lock:
        call.world.templates = [t for t in call.world.templates if t.id != snapshot_id] + [made]
    return 201, {"snapshotID": snapshot_id, "names": made.aliases}


def list_snapshots(call):
    with call.world.lock:
        found = [t for t in call.world.templates if t.is_snapshot]
    if "sandboxID" in call.query:
        found = [t for t in found if t.of_sandbox == call.query["sandboxID"]]
    if "name" in call.query:
        found = [t for t in found if call.query["name"] in t.aliases]
    found, headers = call.world.page(found, call, lambda t: (t.created, t.id))
    return 200, [{"snapshotID": t.id, "names": t.aliases} for t in found], headers


TID = r"/templates/(?P<tid>[^/]+)"
BUILD = TID + r"/builds/(?P<bid>[0-9a-f-]+)"
ROUTES = (
    ("POST", r"/sandboxes/(?P<id>[a-z0-9]+)/snapshots", (), e2b_schema.SNAPSHOT, True, snapshot),
    ("GET", "/snapshots", ("sandboxID", "name", "limit", "nextToken"), None, True, list_snapshots),
    ("GET", r"/templates/aliases/(?P<alias>[^/]+)", (), None, True, get_alias),
    ("POST", "/v3/templates", (), e2b_schema.NEW_TEMPLATE, False, request_build),
    ("GET", TID + r"/files/(?P<hash>[A-Za-z0-9]+)", (), None, True, file_upload),
    ("POST", "/v2" + BUILD, (), e2b_schema.BUILD, False, start_build),
    ("GET", BUILD + "/status", ("logsOffset", "limit", "level"), None, True, build_status),
    ("GET", "/templates", ("teamID",), None, True, list_templates),
    ("GET", "/v2/templates", ("limit", "nextToken"), None, True, list_templates),
    ("PATCH", "/v2" + TID, (), e2b_schema.PUBLIC, False, change_template),
    ("GET", TID + "/tags", (), None, True, list_tags),
    ("DELETE", TID, (), None, True, delete_template),
)
