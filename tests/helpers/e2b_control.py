# SPDX-License-Identifier: Apache-2.0
"""The control plane of the E2B stand-in: the REST API that makes and lists sandboxes."""
import base64
import binascii
import datetime
import ipaddress
import os
import re
import shutil
import time
import urllib.parse

import e2b_schema
import e2b_templates
from e2b_errors import ControlError
from e2b_sandbox import when
from standin_http import Violation

ALL_TRAFFIC = "0.0.0.0/0"
DOMAIN = re.compile(r"(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+", re.IGNORECASE)
V1_DEFAULT, V2_DEFAULT = 15, 300
LONGEST = 24 * 3600


class Call:
    """A checked request: what was asked, decoded."""

    def __init__(self, world, request, query, body, names):
        self.world, self.request, self.query, self.body, self.names = world, request, query, body, names

    def sandbox(self):
        sandbox_id = self.names["id"]
        sandbox = self.world.get(sandbox_id)
        if not sandbox:
            raise ControlError(404,
                               f'Sandbox "{sandbox_id}" doesn\'t exist or you don\'t have access to it')
        return sandbox


def timeout_of(value):
    if value <= 0:
        raise ControlError(400, "Timeout must be greater than 0")
    if value > LONGEST:
        raise ControlError(400, f"Timeout cannot be greater than {LONGEST // 3600} hours")
    return value


def check_network(network):
    def is_address(text):
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            return False
        return True

    for text in network.get("denyOut", []):
        if not is_address(text):
            raise ControlError(400, f"invalid denied CIDR {text}")
    domains = [text for text in network.get("allowOut", []) if not is_address(text)]
    for text in domains:
        if not DOMAIN.fullmatch(text):
            raise ControlError(400, f"invalid allowed address or domain {text}")
    if domains and ALL_TRAFFIC not in network.get("denyOut", []):
        raise ControlError(400, "domains in allowOut need all traffic in denyOut")


def create(call, default, secure):
    wanted = dict(call.body)
    wanted["timeout"] = timeout_of(wanted.get("timeout", default))
    wanted["secure"] = secure or wanted.get("secure", False)
    if wanted.get("autoPauseMemory") is False:
        if not wanted.get("autoPause"):
            raise ControlError(400, "autoPauseMemory needs autoPause")
        if wanted.get("autoResume", {}).get("enabled"):
            raise ControlError(400, "autoPauseMemory excludes autoResume")
    network = wanted.get("network", {})
    check_network(network)
    if network.get("allowPublicTraffic") is False and not wanted["secure"]:
        raise ControlError(400, "a sandbox without public traffic must be secure")
    template = call.world.template(wanted["templateID"])
    if not template:
        raise ControlError(404, f"template '{wanted['templateID']}' not found")
    sandbox = call.world.create(template, wanted)
    e2b_templates.start_template_command(sandbox)
    return 201, sandbox.short()


def create_v2(call):
    return create(call, V2_DEFAULT, True)


def create_v1(call):
    return create(call, V1_DEFAULT, False)


# Lists

FORM_SAFE = re.compile(r"[A-Za-z0-9%*._+~!'()=&-]*")


def decode_metadata(value):
    """Pairs of a filter, which is encoded three deep; `value` was decoded once."""
    pairs = {}
    whole = urllib.parse.unquote(value, errors="strict")
    for text in (value, whole):
        if not FORM_SAFE.fullmatch(text):
            raise e2b_schema.Wrong("query metadata is not encoded three deep")
    for part in whole.split("&"):
        name, equals, text = part.partition("=")
        if not equals or not name or "=" in text:
            raise e2b_schema.Wrong("query metadata is not a form of pairs")
        pairs[urllib.parse.unquote(name, errors="strict")] = urllib.parse.unquote(text, errors="strict")
    return pairs


def check_list_query(query):
    if "metadata" in query:
        decode_metadata(query["metadata"])
    for state in query.get("state", "running").split(","):
        if state not in ("running", "paused"):
            raise e2b_schema.Wrong(f"query state: {state}")
    if query.get("order", "desc") not in ("asc", "desc"):
        raise e2b_schema.Wrong(f"query order: {query['order']}")
    for name in ("limit", "start", "end", "cursor", "logsOffset"):
        if not re.fullmatch("-?[0-9]{1,16}", query.get(name, "1")):
            raise e2b_schema.Wrong(f"query {name} is not an integer")


def matching(call, states):
    wanted = decode_metadata(call.query["metadata"]) if "metadata" in call.query else {}
    after = None
    if "startedAfter" in call.query:
        try:
            after = datetime.datetime.fromisoformat(call.query["startedAfter"]).timestamp()
        except ValueError as error:
            raise ControlError(400, "invalid startedAfter") from error
    with call.world.lock:
        found = list(call.world.sandboxes.values())
    return [s for s in found if s.state in states and wanted.items() <= s.metadata.items() and
            (after is None or s.started > after) and
            ("template" not in call.query or s.template.is_called(call.query["template"]))]


def list_v1(call):
    return 200, [s.listed() for s in sorted(matching(call, ("running",)), key=lambda s: -s.started)]


def page(items, call, key, reverse=True):
    """A page of items, sorted; and the token for the next one: where the last of this one stands."""
    limit = int(call.query.get("limit", 100))
    if not 1 <= limit <= 100:
        raise ControlError(400, "limit must be between 1 and 100")
    items = sorted(items, key=key, reverse=reverse)
    if "nextToken" in call.query:
        try:
            text = base64.urlsafe_b64decode(call.query["nextToken"] + "==").decode()
            moment, _, name = text.partition("__")
            last = (float(moment), name)
        except (binascii.Error, ValueError) as error:
            raise ControlError(400, "Invalid next token") from error
        items = [i for i in items if (key(i) < last if reverse else key(i) > last)]
    headers = []
    if len(items) > limit:
        moment, name = key(items[limit - 1])
        token = base64.urlsafe_b64encode(f"{moment!r}__{name}".encode()).decode().rstrip("=")
        headers = [("x-next-token", token)]
    return items[:limit], headers


def list_v2(call):
    found = matching(call, call.query.get("state", "running,paused").split(","))
    shown, headers = page(found, call, lambda s: (s.started, s.id),
                          call.query.get("order", "desc") == "desc")
    running = sum(s.state == "running" for s in found)
    return 200, [s.listed() for s in shown], [("x-total-running", str(running)), *headers]


# One sandbox

def get(call):
    return 200, call.sandbox().detail()


def delete(call):
    sandbox = call.sandbox()
    if not call.world.end(sandbox):
        call.sandbox()
    return 204, None


def connect(call):
    sandbox = call.sandbox()
    timeout = timeout_of(call.body.get("timeout", V2_DEFAULT))
    with sandbox.lock:
        if sandbox.state == "dead":
            call.sandbox()
        if sandbox.state == "running":
            sandbox.ends = max(sandbox.ends, time.time() + timeout)
            return 200, sandbox.short()
        sandbox.resume(timeout, call.body.get("memory", True))
    return 201, sandbox.short()


def resume(call):
    sandbox = call.sandbox()
    timeout = timeout_of(call.body.get("timeout", V1_DEFAULT))
    with sandbox.lock:
        if sandbox.state != "paused":
            raise ControlError(409, f"Sandbox {sandbox.id} is already running")
        sandbox.resume(timeout, call.body.get("memory", True))
        sandbox.auto_pause = call.body.get("autoPause", sandbox.auto_pause)
    return 201, sandbox.short()


def pause(call):
    sandbox = call.sandbox()
    with sandbox.lock:
        if sandbox.state == "paused":
            raise ControlError(409, f"Error pausing sandbox - sandbox '{sandbox.id}' is already paused")
        if sandbox.state == "dead":
            call.sandbox()
        sandbox.pause(call.body.get("memory", True))
    return 204, None


def running(call):
    sandbox = call.sandbox()
    if sandbox.state != "running":
        raise ControlError(404, f'Sandbox "{sandbox.id}" doesn\'t exist or you don\'t have access to it')
    return sandbox


def set_timeout(call):
    timeout = timeout_of(call.body["timeout"])
    running(call).ends = time.time() + timeout
    return 204, None


def refresh(call):
    sandbox = running(call)
    sandbox.ends = max(sandbox.ends, time.time() + call.body.get("duration", V1_DEFAULT))
    return 204, None


def network(call):
    check_network(call.body)
    sandbox = running(call)
    egress = {name: value for name, value in call.body.items() if name != "allow_internet_access"}
    kept = {name: value for name, value in (sandbox.network or {}).items()
            if name in ("allowPublicTraffic", "maskRequestHost", "httpsPorts")}
    sandbox.network = {**kept, **egress}
    sandbox.internet = call.body.get("allow_internet_access", sandbox.internet)
    return 204, None


def metric(sandbox):
    size = os.sysconf("SC_PAGE_SIZE")
    total = size * os.sysconf("SC_PHYS_PAGES")
    disk = shutil.disk_usage(sandbox.world.directory)
    now = time.time()
    return {"timestamp": when(now), "timestampUnix": int(now), "cpuCount": 2, "cpuUsedPct": 1.5,
            "memUsed": total - size * os.sysconf("SC_AVPHYS_PAGES"), "memTotal": total, "memCache": 0,
            "diskUsed": disk.used, "diskTotal": disk.total}


def metrics(call):
    sandbox = call.sandbox()
    first, last = int(call.query.get("start", 0)), int(call.query.get("end", 1 << 40))
    if first > last:
        raise ControlError(400, "start is after end")
    if sandbox.state != "running" or not first <= time.time() <= last + 1:
        return 200, []
    return 200, [metric(sandbox)]


def all_metrics(call):
    names = call.query.get("sandbox_ids", "").split(",")
    return 200, {"sandboxes": {n: metric(call.world.get(n)) for n in names if call.world.get(n)}}


def logs_v1(call):
    logs = call.sandbox().logs[:int(call.query.get("limit", 1000))]
    lines = [{"timestamp": when(e["timestamp"]), "line": e["message"]} for e in logs]
    return 200, {"logs": lines, "logEntries": [log_entry(e) for e in logs]}


def log_entry(entry):
    return {"timestamp": when(entry["timestamp"]), "level": "info", "message": entry["message"],
            "fields": {}}


def logs_v2(call):
    logs = [e for e in call.sandbox().logs if e["timestamp"] * 1000 >= int(call.query.get("cursor", 0))]
    if call.query.get("direction") == "backward":
        logs.reverse()
    logs = [e for e in logs if call.query.get("search", "") in e["message"]]
    return 200, {"logs": [log_entry(e) for e in logs[:int(call.query.get("limit", 1000))]]}


def fork(call):
    sandbox = running(call)
    wanted = dict(sandbox.wanted)
    wanted["timeout"] = timeout_of(call.body.get("timeout", V2_DEFAULT))
    made = []
    for _ in range(call.body.get("count", 1)):
        made.append({"sandbox": call.world.create(sandbox.template, wanted, sandbox.root).short()})
    return 201, made


ID = r"/sandboxes/(?P<id>[a-z0-9]+(-[a-z0-9]+)?)"
LIST = ("limit", "nextToken", "state", "metadata", "template", "startedAfter", "order")
LOGS = ("cursor", "limit", "direction", "level", "search")
# Method, path, query, shape of the body (None: no body), whether that may be missing, what does it
ROUTES = (
    ("POST", "/v2/sandboxes", (), e2b_schema.NEW_SANDBOX_V2, False, create_v2),
    ("POST", "/sandboxes", (), e2b_schema.NEW_SANDBOX, False, create_v1),
    ("GET", "/v2/sandboxes", LIST, None, True, list_v2),
    ("GET", "/sandboxes", ("metadata",), None, True, list_v1),
    ("GET", "/sandboxes/metrics", ("sandbox_ids",), None, True, all_metrics),
    ("GET", ID, (), None, True, get),
    ("DELETE", ID, (), None, True, delete),
    ("POST", "/v2" + ID + "/connect", (), e2b_schema.CONNECT_V2, False, connect),
    ("POST", ID + "/connect", (), e2b_schema.CONNECT, False, connect),
    ("POST", ID + "/resume", (), e2b_schema.RESUME, False, resume),
    ("POST", ID + "/pause", (), e2b_schema.PAUSE, True, pause),
    ("POST", ID + "/timeout", (), e2b_schema.TIMEOUT, False, set_timeout),
    ("POST", ID + "/refreshes", (), e2b_schema.REFRESHES, True, refresh),
    ("PUT", ID + "/network", (), e2b_schema.NETWORK_UPDATE, False, network),
    ("GET", ID + "/metrics", ("start", "end"), None, True, metrics),
    ("GET", ID + "/logs", ("start", "limit"), None, True, logs_v1),
    ("GET", "/v2" + ID + "/logs", LOGS, None, True, logs_v2),
    ("POST", ID + "/fork", (), e2b_schema.FORK, False, fork),
    *e2b_templates.ROUTES,
)
COMPILED = [(method, re.compile(path), *rest) for method, path, *rest in ROUTES]
ABSENT = re.compile(r"/(volumes|volumecontent|secrets|teams|api-keys|nodes|admin)(/.*)?")


def check_headers(request):
    if request.header("x-api-key") is None or len(request.all("x-api-key")) != 1:
        raise Violation("authorization header is missing", 401)
    for name in ("x-access-token", "e2b-sandbox-id", "e2b-sandbox-port", "authorization",
                 "connect-protocol-version", "connect-timeout-ms", "e2b-traffic-access-token"):
        if request.header(name) is not None:
            raise Violation(f"{name} was sent to the control plane")


def read_query(request, allowed):
    pairs = request.query()
    query = dict(pairs)
    if len(query) != len(pairs):
        raise e2b_schema.Wrong("a query parameter more than once")
    for name in query:
        if name not in allowed:
            raise e2b_schema.Wrong(f"unknown query parameter '{name}'")
    check_list_query(query)
    return query


def read_body(request, shape, may_be_missing):
    content_type = request.header("content-type")
    if shape is None:
        if request.length or content_type is not None:
            raise e2b_schema.Wrong("a body or its type where none belongs")
        return {}
    if not request.length and may_be_missing:
        return {}
    if content_type != "application/json":
        raise e2b_schema.Wrong(f"Content-Type {content_type}, not application/json")
    body = e2b_schema.parse(request.body())
    e2b_schema.check(shape, body)
    return body


def plan(world, request):
    """Checks a request and returns what carries it out."""
    if request.path.startswith(e2b_templates.UPLOAD):
        return e2b_templates.plan_upload(world, request)
    check_headers(request)
    path = urllib.parse.unquote(request.path, errors="strict")
    for method, pattern, allowed, shape, may_be_missing, function in COMPILED:
        match = pattern.fullmatch(path)
        if match and method == request.method:
            break
    else:
        status = 501 if ABSENT.fullmatch(path) else 404
        raise Violation(f"no {request.method} {request.path}", status)
    try:
        query = read_query(request, allowed)
        body = read_body(request, shape, may_be_missing)
    except (e2b_schema.Wrong, UnicodeDecodeError) as error:
        raise Violation(str(error)) from error

    def action(connection):
        try:
            if world.keys and request.header("x-api-key") not in world.keys:
                raise ControlError(401, "Invalid API key")
            status, answer, *headers = function(Call(world, request, query, body, match.groupdict()))
        except ControlError as error:
            status, answer, headers = error.code, {"code": error.code, "message": str(error)}, []
        if answer is None:
            connection.respond(status, headers=headers[0] if headers else ())
        else:
            connection.json(status, answer, headers[0] if headers else ())
    return action
