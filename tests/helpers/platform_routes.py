# SPDX-License-Identifier: Apache-2.0
"""The routes of the workspace proxy, in both families: what each takes, and what it does."""
import re
import threading
import time
import urllib.parse

import platform_check as check
from platform_http import Deviation, Response, error
from platform_state import SUBPROTOCOL, stamp

LEGACY_MAX = 1 << 20


class Call:
    """One request at a route, with the names in its path decoded."""

    def __init__(self, server, request, provider, project, identity):
        self.server, self.world, self.request = server, server.world, request
        self.provider, self.project, self.identity = provider, project, identity
        self.value = request.value

    def sandbox(self):
        """The sandbox of the path, or the error that says why not."""
        found = self.world.find(self.identity, self.project, self.provider)
        if found is None or found.status == "deleted":
            return None, error(404, "no such sandbox")
        if found.status != "running":
            return None, error(410, "the sandbox is gone")
        return found, None


def view(call, sandbox):
    value = sandbox.view()
    if call.request.has_fault("instance_unreachable"):
        value["instanceUrl"] = call.request.fault.params.get("url", call.server.nowhere)
    if call.request.has_fault("destroyed"):
        value["destroyedAt"] = stamp(time.time())
    return value


def create(call):
    sandbox = call.world.create(call.value, call.project, call.provider)
    value = view(call, sandbox)
    if call.request.has_fault("template_pending"):
        value["templatePending"] = {"templateId": "tpl-early", "retryAfterMs": 100,
                                    **call.request.fault.params}
    elif sandbox.pending:
        value["templatePending"] = sandbox.pending
    return Response(201, value)


def look(call):
    sandbox, problem = call.sandbox()
    return problem or Response(200, view(call, sandbox))


def delete(call):
    sandbox, problem = call.sandbox()
    if problem:
        return problem
    sandbox.end("deleted")
    return Response(204)


def lease(call):
    sandbox, problem = call.sandbox()
    if problem:
        return problem
    fault = call.request.fault
    if call.request.has_fault("lease_410"):
        return error(410, "the sandbox is gone")
    expires = time.time() + call.world.lease_ttl
    shown = stamp(expires)
    if call.request.has_fault("lease_expired"):
        shown, expires = odd_expiry(fault.params.get("expiresAt", "past"))
    made = call.world.mint(sandbox, expires)
    return Response(200, {"provider": sandbox.provider, "sandboxId": sandbox.id,
                          "providerResourceId": sandbox.resource, "jwt": made.jwt,
                          "wsEndpoint": call.server.socket_url(sandbox), "subprotocol": SUBPROTOCOL,
                          "expiresAt": shown})


def odd_expiry(kind):
    if isinstance(kind, (int, float)):
        return stamp(time.time() + kind), time.time() + kind
    return {"past": stamp(time.time() - 3600), "null": None, "garbage": "tomorrow at noon",
            "number": 12345, "empty": ""}[kind], None


def own_name(call, sandbox):
    """A capture goes under the sandbox's own id, and never over its seed."""
    name = call.value["id"]
    if name != sandbox.key and name == sandbox.asked.get("seedCheckpointName"):
        raise Deviation("the checkpoint would be written over the seed")
    if name != sandbox.key and call.server.own_checkpoint:
        raise Deviation("the checkpoint's id is not that of the sandbox")
    return name


def capture(call):
    sandbox, problem = call.sandbox()
    if problem:
        return problem
    name = own_name(call, sandbox)
    for status in ("skipped", "coalesced"):
        if call.request.has_fault(f"checkpoint_{status}"):
            return Response(200, {"checkpointName": name, "status": status})
    return Response(200, {"checkpointName": name, "status": call.world.capture(sandbox, name)})


def forget(call):
    sandbox = call.world.find(call.identity, call.project, call.provider)
    if sandbox is None:
        return error(404, "no such sandbox")
    if call.world.forget(call.project, own_name(call, sandbox)):
        return Response(204)
    return error(404 if sandbox.status == "running" else 410, "no such checkpoint")


def odd_template(call, template):
    if call.request.has_fault("template_pending"):
        return {"status": "pending", **template.pending(), **call.request.fault.params}
    if call.request.has_fault("template_failed"):
        return {"status": "failed", "templateId": template.id,
                "error": call.request.fault.params.get("error", "the build failed")}
    return template.view()


def build(call):
    value = call.value
    template = call.world.templates.build(call.project, value["environmentId"],
                                          value["templateDefinition"],
                                          value.get("templateBuildEnvs", {}))
    return Response(200, odd_template(call, template))


def older(call, template):
    value = odd_template(call, template)
    value.pop("retryAfterMs", None)
    if value["status"] == "pending":
        value["status"] = "building" if template.polls else "queued"
    return Response(200, value)


def old_build(call):
    return older(call, call.world.templates.build(call.project, call.value["environmentId"],
                                                  call.value["definition"], {}))


def old_look(call):
    environment = urllib.parse.parse_qs(call.request.query)["environmentId"][0]
    template = call.world.templates.find(call.project, environment, call.identity)
    if template is None:
        return error(404, "no such template")
    template.polls += 1
    return older(call, template)


def run(call):
    """The legacy route: a command from start to end within one request."""
    sandbox, problem = call.sandbox()
    if problem:
        return problem
    value = call.value
    call.server.journal.command(value["command"])
    try:
        process = sandbox.start(value["command"], value.get("cwd"), value.get("env"))
    except OSError as failure:
        return Response(200, {"exitCode": 126, "stdout": "", "stderr": f"sh: {failure.strerror}\n"})
    if process is None:
        return error(410, "the sandbox is gone")
    process.feed(None)
    outputs = [[], []]
    readers = [threading.Thread(target=collect, args=(process, stream, output), daemon=True)
               for stream, output in zip((process.child.stdout, process.child.stderr), outputs)]
    for reader in readers:
        reader.start()
    over = process.ended.wait(value.get("timeoutSec"))
    if not over:
        process.kill()
        process.ended.wait()
    for reader in readers:
        reader.join(1)
    texts = [b"".join(output) for output in outputs]
    result = {"exitCode": process.code if over else None,
              "stdout": texts[0][:LEGACY_MAX].decode("utf-8", "replace"),
              "stderr": texts[1][:LEGACY_MAX].decode("utf-8", "replace"),
              "truncated": any(len(text) > LEGACY_MAX for text in texts), "timedOut": not over}
    return Response(200, result)


def collect(process, stream, output):
    size = 0
    while data := process.read(stream):
        if size <= LEGACY_MAX:
            output.append(data)
        size += len(data)


# method, path after the project, what the body is, what is done
ROUTES = [(method, re.compile(path + r"\Z"), schema, function) for method, path, schema, function in (
    ("POST", r"/sandbox", check.sandbox, create),
    ("POST", r"/sandbox/templates/builds", check.BUILD, build),
    ("GET", r"/sandbox/([^/]*)", None, look),
    ("DELETE", r"/sandbox/([^/]*)", None, delete),
    ("POST", r"/sandbox/([^/]*)/exec-lease", None, lease),
    ("POST", r"/sandbox/([^/]*)/checkpoint", check.CHECKPOINT, capture),
    ("DELETE", r"/sandbox/([^/]*)/checkpoint", check.CHECKPOINT, forget),
    ("POST", r"/sandbox/([^/]*)/exec", check.LEGACY_EXEC, run),
    ("POST", r"/templates", check.OLD_TEMPLATE, old_build),
    ("GET", r"/templates/([^/]*)", None, old_look))]
BASE = re.compile(r"/v1/(?:(railway|e2b)/)?projects/([^/]*)(/.*)\Z")


def query(request, function):
    if function is not old_look:
        if "?" in request.target:
            raise Deviation("there is a query where none is wanted")
        return
    name, _, value = request.query.partition("=")
    if name != "environmentId":
        raise Deviation("the query is not 'environmentId='")
    check.segment(value, "the environmentId of the query")


def find(server, request):
    """What is to be done for a request that is right in every respect."""
    base = BASE.match(request.path)
    if not base:
        raise Deviation("no such route")
    provider, project, rest = base.groups()
    check.segment(project, "the project")
    for method, path, schema, function in ROUTES:
        found = path.match(rest)
        if not found or method != request.method:
            continue
        for part in found.groups():
            check.segment(part, "the id in the path")
        query(request, function)
        check.headers(request, server.port, schema)
        identity = urllib.parse.unquote(found.group(1)) if found.groups() else None
        call = Call(server, request, provider or "railway", urllib.parse.unquote(project), identity)
        return lambda: function(call)
    raise Deviation("no such route")


def token_problem(server, request):
    """A well-formed token that is not ours is no deviation: a test may want it refused."""
    if server.token is None or request.header("authorization") == f"Bearer {server.token}":
        return None
    return error(401, "the access token is not valid")
