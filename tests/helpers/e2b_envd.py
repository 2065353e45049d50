# SPDX-License-Identifier: Apache-2.0
"""The data plane of the E2B stand-in: checks what comes for a sandbox's envd and carries it out."""
import base64
import binascii
import json
import os
import re
import struct
import time

import e2b_connect
import e2b_files
import e2b_filesystem
import e2b_process
import e2b_schema
import e2b_watch
from e2b_connect import RpcError
from e2b_sandbox import Gone, USERS
from standin_http import Violation

SERVICES = {
    "/process.Process/": (e2b_schema.PROCESS, e2b_process.UNARY, e2b_process.STREAMS),
    "/filesystem.Filesystem/": (e2b_schema.FILESYSTEM, {**e2b_filesystem.UNARY, **e2b_watch.UNARY},
                                e2b_watch.STREAMS),
}
PLAIN = ("/files", "/health", "/metrics", "/envs", "/init", "/files/compose")
KEEPALIVE_SECONDS = 90
STREAM_TYPE = "application/connect+json"


def is_for_envd(request):
    if request.path == "/health":
        return request.header("e2b-sandbox-id") is not None
    return request.path in PLAIN or request.path.startswith(tuple(SERVICES))


def violation(request, text, status=400):
    if request.path.startswith(tuple(SERVICES)):
        return Violation(text, status, json.dumps({"code": "invalid_argument", "message": text}).encode())
    return Violation(text, status)


def check_headers(request, signed):
    def wrong(text):
        return violation(request, text)

    if request.header("x-api-key") is not None:
        raise wrong("the API key was sent to a sandbox")
    if signed:
        # who signs has no need of it, and an address is for those that have it not
        if request.header("x-access-token") is not None:
            raise wrong("a token beside a signature")
        return
    if not re.fullmatch("[a-z0-9]+", request.header("e2b-sandbox-id") or ""):
        raise wrong("no good E2b-Sandbox-Id")
    if not re.fullmatch("[1-9][0-9]{0,4}", request.header("e2b-sandbox-port") or ""):
        raise wrong("no good E2b-Sandbox-Port")
    for name in ("e2b-sandbox-id", "e2b-sandbox-port", "x-access-token", "authorization",
                 "connect-timeout-ms",
                 "connect-protocol-version"):
        if len(request.all(name)) > 1:
            raise wrong(f"header {name} more than once")
    if request.path in PLAIN and request.header("authorization") is not None:
        raise wrong("Authorization is for RPC only")


def find(world, request):
    """The running sandbox that a request is for, its token checked."""
    sandbox = world.get(request.header("e2b-sandbox-id"))
    if not sandbox:
        raise Gone()
    token = request.header("x-access-token")
    if sandbox.token and token is None:
        raise violation(request, "no X-Access-Token")
    if token is not None and token != sandbox.token:
        with world.lock:
            if not sandbox.token or token in [other.token for other in world.sandboxes.values()]:
                raise violation(request, "the token of another sandbox, or one for a sandbox that has none")
        raise e2b_files.FileError(401, "unauthorized access, please provide a valid access token")
    wake(sandbox)
    return sandbox


def wake(sandbox):
    if sandbox.state == "paused" and sandbox.auto_resume:
        sandbox.resume(sandbox.timeout)
    if sandbox.state != "running":
        raise Gone()


def not_found(connection, sandbox_id):
    connection.json(502, {"sandboxId": sandbox_id, "message": "The sandbox was not found", "code": 502})


def guarded(world, request, action):
    """An action that gets the sandbox, and answers for what goes wrong on the way to it."""
    def run(connection):
        sandbox_id = request.header("e2b-sandbox-id") or ""
        try:
            port = request.header("e2b-sandbox-port")
            sandbox = find(world, request)
            if port != "49983":
                connection.json(502, {"sandboxId": sandbox_id, "port": int(port), "code": 502,
                                      "message": "The sandbox is running but port is not open"})
                return
            action(connection, sandbox)
        except Gone:
            if connection.is_begun:
                connection.drop("cut")
            not_found(connection, sandbox_id)
        except e2b_files.FileError as error:
            connection.json(error.status, {"code": error.status, "message": str(error)},
                            [("x-content-type-options", "nosniff")])
    return run


def plan(world, request):
    """Checks a request and returns what carries it out."""
    signed = "signature=" in request.query_text
    check_headers(request, signed)
    if request.path.startswith(tuple(SERVICES)):
        return plan_rpc(world, request)
    if request.path == "/files":
        return plan_files(world, request, signed)
    if request.method != "GET" or request.path not in ("/health", "/metrics", "/envs"):
        raise violation(request, f"no {request.method} {request.path}", 404)
    if request.query_text or request.length:
        raise violation(request, "a query or body where none belongs")
    return guarded(world, request, {"/health": health, "/metrics": metrics,
                                    "/envs": environment}[request.path])


def health(connection, _sandbox):
    connection.respond(204, headers=[("cache-control", "no-store")])


def metrics(connection, sandbox):
    disk = e2b_files.disk_usage(sandbox)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    used = total - os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    connection.json(200, {"ts": int(time.time()), "cpu_count": 2, "cpu_used_pct": 1.5, "mem_total": total,
                          "mem_used": used, "mem_cache": 0, "mem_total_mib": total >> 20,
                          "mem_used_mib": used >> 20, "disk_used": disk.used, "disk_total": disk.total})


def environment(connection, sandbox):
    connection.json(200, sandbox.defaults())


# /files

def plan_files(world, request, signed):
    if request.method not in ("GET", "POST"):
        raise violation(request, f"no {request.method} /files", 405)
    try:
        query = e2b_files.query_of(request)
        content_type = request.header("content-type")
        if request.method == "GET":
            if request.length or content_type is not None:
                raise e2b_files.BadUpload("GET with a body or a type")
        elif content_type != "application/octet-stream":
            e2b_files.boundary_of(content_type or "none")
            if request.header("content-encoding") is not None:
                raise e2b_files.BadUpload("Content-Encoding on a form")
        elif request.header("content-encoding") not in (None, "gzip"):
            raise e2b_files.BadUpload(f"Content-Encoding: {request.header('content-encoding')}")
    except (e2b_files.BadUpload, UnicodeDecodeError) as error:
        raise violation(request, str(error)) from error

    def action(connection, sandbox):
        user = query.get("username") or sandbox.template.user
        if user not in USERS:
            raise e2b_files.FileError(401, f"error looking up user '{user}': user: unknown user {user}")
        try:
            if request.method == "GET":
                e2b_files.download(connection, sandbox, query, user)
            else:
                e2b_files.upload(connection, sandbox, query, user)
        except e2b_files.BadUpload as error:
            raise violation(request, str(error)) from error

    def by_signature(connection):
        try:
            operation = "read" if request.method == "GET" else "write"
            sandbox = e2b_files.find_signed(world, operation, query)
            wake(sandbox)
            action(connection, sandbox)
        except Gone:
            not_found(connection, "")
        except e2b_files.FileError as error:
            connection.json(error.status, {"code": error.status, "message": str(error)},
                            [("x-content-type-options", "nosniff")])

    return by_signature if signed else guarded(world, request, action)


# RPC

def plan_rpc(world, request):
    prefix = request.path[:request.path.rindex("/") + 1]
    shapes, unary, streams = SERVICES.get(prefix, ({}, {}, {}))
    method = request.path[len(prefix):]
    if method not in shapes:
        raise violation(request, f"no such method: {request.path}", 404)
    if request.method != "POST" or request.query_text:
        raise violation(request, "an RPC is a POST without a query", 405)
    message = check_message(request, method in streams, shapes[method])
    user = user_of(request)
    seconds = e2b_connect.milliseconds(request.header("connect-timeout-ms"))
    if method in streams:
        interval = int(request.header("keepalive-ping-interval") or KEEPALIVE_SECONDS)
        return guarded(world, request, lambda connection, sandbox: run_stream(
            connection, sandbox, streams[method], message, user, seconds, interval))
    return guarded(world, request, lambda connection, sandbox: run_unary(
        connection, sandbox, unary[method], message, user))


def check_message(request, is_stream, shape):
    def wrong(text):
        return violation(request, text)

    wanted = STREAM_TYPE if is_stream else "application/json"
    if request.header("content-type") != wanted:
        raise violation(request, f"Content-Type {request.header('content-type')}, not {wanted}", 415)
    if request.header("connect-protocol-version") != "1":
        raise wrong("no Connect-Protocol-Version: 1")
    for name, pattern in (("connect-timeout-ms", "[1-9][0-9]{0,9}"),
                          ("keepalive-ping-interval", "[1-9][0-9]{0,5}")):
        value = request.header(name)
        if value is not None and not re.fullmatch(pattern, value):
            raise wrong(f"{name}: {value}")
    if request.header("content-encoding") or request.header("connect-content-encoding"):
        raise wrong("a compressed message")
    data = request.body()
    if is_stream:
        if len(data) < 5:
            raise wrong("no envelope")
        flag, length = struct.unpack(">BI", data[:5])
        if flag != 0 or length != len(data) - 5:
            raise wrong(f"envelope with flag {flag} and length {length} before {len(data) - 5} bytes")
        data = data[5:]
    try:
        message = e2b_schema.parse(data)
        e2b_schema.check(shape, message)
        return message
    except e2b_schema.Wrong as error:
        raise wrong(str(error)) from error


def user_of(request):
    value = request.header("authorization")
    if value is None:
        return None
    word, _, rest = value.partition(" ")
    try:
        name, colon, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise violation(request, "bad Authorization") from error
    if word != "Basic" or not colon or password:
        raise violation(request, "Authorization is not Basic user:")
    return name


def checked_user(sandbox, user):
    user = user or sandbox.template.user
    if user not in USERS:
        raise RpcError("unauthenticated", f"invalid username: '{user}'")
    return user


def run_unary(connection, sandbox, method, message, user):
    try:
        answer = method(sandbox, message, checked_user(sandbox, user))
    except RpcError as error:
        e2b_connect.respond_error(connection, error)
        return
    e2b_connect.respond(connection, answer)


def run_stream(connection, sandbox, method, message, user, seconds, interval):
    call, keepalive = method
    stream = e2b_connect.Stream(keepalive)
    sandbox.add_stream(stream)
    try:
        try:
            call(sandbox, message, checked_user(sandbox, user), stream, seconds)
        except RpcError as error:
            stream.finish(error)
        stream.pump(connection, seconds, interval)
    finally:
        stream.close()
        sandbox.streams.discard(stream)
