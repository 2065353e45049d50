# SPDX-License-Identifier: Apache-2.0
"""What a client of the workspace proxy may send: header fields, JSON members, template definitions.

Everything else is a Deviation. A checker is called with a value and the place where it stood.
"""
import json
import re

from platform_http import Deviation

SAFE_INTEGER = 2 ** 53 - 1
OPERATIONS_MAX, DEFINITION_MAX, STRING_MAX, ITEMS_MAX, FAMILY_MAX = 256, 256 << 10, 32768, 512, 200
OURS = ("x-acting-user-id", "x-mastra-session-id", "x-mastra-thread-id")
SIGNALS = ("HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CONT", "STOP", "TSTP",
           "WINCH")


def pairs(items):
    names = [name for name, _ in items]
    for name in names:
        if names.count(name) > 1:
            raise Deviation(f"JSON member '{name}' is there twice")
    return dict(items)


def constant(text):
    raise Deviation(f"'{text}' is not JSON")


def parse(data, where="body"):
    try:
        text = data.decode("utf-8") if isinstance(data, (bytes, bytearray)) else data
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError as error:
        raise Deviation(f"{where} is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise Deviation(f"{where} is not JSON") from error
    return value


class Shape:
    """An object with these members and no other; an optional one is left out, never null."""

    def __init__(self, required=None, optional=None):
        self.required, self.optional = required or {}, optional or {}

    def __call__(self, value, where):
        if not isinstance(value, dict):
            raise Deviation(f"{where} is not an object")
        for name in self.required:
            if name not in value:
                raise Deviation(f"{where}.{name} is missing")
        for name, item in value.items():
            checker = self.required.get(name) or self.optional.get(name)
            if checker is None:
                raise Deviation(f"{where}.{name} is unknown")
            checker(item, f"{where}.{name}")


def string(value, where):
    if not isinstance(value, str):
        raise Deviation(f"{where} is not a string")


def text(value, where):
    string(value, where)
    if not value.strip():
        raise Deviation(f"{where} is blank")
    if "\0" in value:
        raise Deviation(f"{where} has a NUL")


def whole(value, where):
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= SAFE_INTEGER:
        raise Deviation(f"{where} is not a positive whole number")


def boolean(value, where):
    if not isinstance(value, bool):
        raise Deviation(f"{where} is not true or false")


def choice(*allowed):
    def check(value, where):
        if value not in allowed or not isinstance(value, type(allowed[0])):
            raise Deviation(f"{where} is not one of {', '.join(map(str, allowed))}")
    return check


def environment(value, where):
    if not isinstance(value, dict):
        raise Deviation(f"{where} is not an object")
    for name, item in value.items():
        if not name or "=" in name or "\0" in name:
            raise Deviation(f"{where} has the name '{name}'")
        string(item, f"{where}.{name}")
        if "\0" in item:
            raise Deviation(f"{where}.{name} has a NUL")


def key(value, where):
    text(value, where)
    if value != value.strip() or len(value) > 1024 or re.search(r"[\x00-\x1f\x7f]", value):
        raise Deviation(f"{where} is no identifier")


def strings(value, where):
    """One string, or a list of at least one."""
    for item in value if isinstance(value, list) else [value]:
        text(item, where)
    if not value:
        raise Deviation(f"{where} is empty")


def packages(value, where):
    if value is not None:
        strings(value, where)


def variables(value, where):
    environment(value, where)
    if not value:
        raise Deviation(f"{where} is empty")


PIP, NPM = Shape(optional={"g": boolean}), Shape(optional={"g": boolean, "dev": boolean})
APT = Shape(optional={"noInstallRecommends": boolean, "fixMissing": boolean})
# method: the least number of arguments, and the check of each
METHODS = {"cpuCount": (1, [whole]), "memoryMB": (1, [whole]), "runCmd": (1, [strings]),
           "setWorkdir": (1, [text]), "setEnvs": (1, [variables, Shape(optional={"ephemeral": boolean})]),
           "aptInstall": (1, [strings, APT]), "pipInstall": (0, [packages, PIP]),
           "npmInstall": (0, [packages, NPM])}


def operation(value, where):
    Shape({"method": choice(*METHODS), "args": lambda item, place: None})(value, where)
    method, args = value["method"], value["args"]
    least, checkers = METHODS[method]
    if not isinstance(args, list) or not least <= len(args) <= len(checkers):
        raise Deviation(f"{where}.args does not suit '{method}'")
    for index, (item, checker) in enumerate(zip(args, checkers)):
        checker(item, f"{where}.args[{index}]")
    if method in ("pipInstall", "npmInstall") and args == [None]:
        raise Deviation(f"{where}.args has a null that no option follows")
    if method == "setEnvs" and len(args) > 1 and args[1].get("ephemeral"):
        raise Deviation(f"{where} has ephemeral variables, which belong to templateBuildEnvs")


def limits(value, where):
    if isinstance(value, str) and len(value) > STRING_MAX:
        raise Deviation(f"{where} has a string of more than {STRING_MAX} characters")
    if isinstance(value, (list, dict)):
        if len(value) > ITEMS_MAX:
            raise Deviation(f"{where} has a collection of more than {ITEMS_MAX} items")
        for item in value.items() if isinstance(value, dict) else value:
            for part in item if isinstance(item, tuple) else (item,):
                limits(part, where)


def family(value, where):
    text(value, where)
    if len(value) > FAMILY_MAX:
        raise Deviation(f"{where} has more than {FAMILY_MAX} characters")


def definition(value, where):
    Shape({"schemaVersion": choice(1), "operations": lambda item, place: None},
          {"family": family})(value, where)
    if isinstance(value["schemaVersion"], bool) or not isinstance(value["operations"], list):
        raise Deviation(f"{where} is no template definition")
    if len(value["operations"]) > OPERATIONS_MAX:
        raise Deviation(f"{where} has more than {OPERATIONS_MAX} operations")
    for index, item in enumerate(value["operations"]):
        operation(item, f"{where}.operations[{index}]")
    limits(value, where)
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    if size > DEFINITION_MAX:
        raise Deviation(f"{where} is larger than {DEFINITION_MAX} bytes")


SANDBOX = Shape({"id": key, "environmentId": key, "env": environment},
                {"seedCheckpointName": key, "templateDefinition": definition,
                 "templateBuildEnvs": environment, "idleTimeoutMinutes": whole,
                 "networkIsolation": choice("ISOLATED", "PRIVATE")})
CHECKPOINT = Shape({"id": key})
BUILD = Shape({"environmentId": key, "templateDefinition": definition},
              {"templateBuildEnvs": environment})
OLD_TEMPLATE = Shape({"environmentId": key, "definition": definition})
LEGACY_EXEC = Shape({"command": text}, {"timeoutSec": whole, "cwd": text, "env": environment})
EXEC = Shape({"command": text}, {"cwd": text, "env": environment})
INIT = Shape({"type": choice("init_exec"), "data": EXEC})
STDIN_CLOSE = Shape({"type": choice("stdin_close")})
SIGNAL = Shape({"type": choice("signal"), "data": Shape({"signal": choice(*SIGNALS)})})


def sandbox(value, where):
    SANDBOX(value, where)
    if "templateBuildEnvs" in value and "templateDefinition" not in value:
        raise Deviation(f"{where}.templateBuildEnvs has no template")


def segment(raw, where):
    """A path segment as encodeURIComponent writes it."""
    if not re.match(r"(?:[A-Za-z0-9\-_.!~*'()]|%[0-9A-Fa-f]{2})+\Z", raw):
        raise Deviation(f"{where} is not a percent-encoded segment")


def hosts(request, port):
    host = request.header("host")
    if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        raise Deviation("the host header names another server")


def headers(request, port, schema):
    """The fields of every request; schema says whether it has a body."""
    hosts(request, port)
    authorization = request.header("authorization")
    if authorization is None or not re.match(r"Bearer [A-Za-z0-9\-._~+/]+=*\Z", authorization):
        raise Deviation("there is no 'authorization: Bearer'")
    for name, value in request.headers:
        if name in OURS:
            request.header(name)
            if not value.strip():
                raise Deviation(f"header '{name}' is blank")
        elif name.startswith("x-mastra-"):
            raise Deviation(f"header '{name}' is unknown")
    content = request.header("content-type")
    if schema is None:
        if request.body:
            raise Deviation("there is a body where none is wanted")
        if content is not None:
            raise Deviation("there is a content-type without a body")
        return
    if content is None or content.lower() != "application/json":
        raise Deviation("the content-type is not application/json")
    request.value = parse(request.body)
    schema(request.value, "body")
