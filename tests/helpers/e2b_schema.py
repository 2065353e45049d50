# SPDX-License-Identifier: Apache-2.0
"""What the JSON of each E2B request may hold, for the stand-in.

A shape is a type, [shape] for a list, {"*": shape} for a map with any names, {"name": shape, "name!":
shape} for an object (! = required, nothing else allowed), or a function that returns what is wrong.
"""
import base64
import binascii
import json
import re

UINT32 = 1 << 32


class Wrong(Exception):
    """The JSON is not what it should be."""


def unique(pairs):
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(f"member '{name}' twice")
    return dict(pairs)


def no_constant(text):
    raise Wrong(f"{text} is not JSON")


def parse(data):
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Wrong(f"not JSON: {error}") from error


def check(shape, value, where="body"):
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise Wrong(f"{where} is not an array")
        for number, item in enumerate(value):
            check(shape[0], item, f"{where}[{number}]")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise Wrong(f"{where} is not an object")
        check_object(shape, value, where)
    elif isinstance(shape, type):
        # A bool is an int to Python and not to JSON
        if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            raise Wrong(f"{where} is not of type {shape.__name__}")
        if shape is str and re.search("[\ud800-\udfff]", value):
            raise Wrong(f"{where} has half a surrogate pair")
    elif fault := shape(value):
        raise Wrong(f"{where} {fault}")


def check_object(shape, value, where):
    for name, item in value.items():
        inner = shape.get("*", shape.get(name, shape.get(name + "!")))
        if inner is None:
            raise Wrong(f"{where} has an unknown member '{name}'")
        check(inner, item, f"{where}.{name}")
    for name in shape:
        if name.endswith("!") and name[:-1] not in value:
            raise Wrong(f"{where} has no '{name[:-1]}'")


def whole(low, high):
    def judge(value):
        if not isinstance(value, int) or isinstance(value, bool):
            return "is not an integer"
        return None if low <= value <= high else f"is not in {low}..{high}"
    return judge


def base64_bytes(value):
    if not isinstance(value, str):
        return "is not a string of base64"
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return "is not padded standard base64"
    return None if base64.b64encode(decoded).decode() == value else "is not canonical base64"


def text(value):
    return None if isinstance(value, str) and value else "is not a text, or empty"


def one_of(*names):
    return lambda value: None if value in names else f"is none of {', '.join(names)}"


def exactly_one(shape):
    def judge(value):
        try:
            check(shape, value, "")
        except Wrong as error:
            return str(error).strip()
        return None if len(value) == 1 else f"must have exactly one of {', '.join(shape)}"
    return judge


# The control plane.

SECONDS = int
NETWORK = {
    "allowOut": [text], "denyOut": [text], "allowPublicTraffic": bool, "maskRequestHost": str,
    "httpsPorts": [whole(1, 65535)], "rules": {"*": [{"transform": {"headers": {"*": str}}}]},
    "egressProxy": {"address!": text, "username": str, "password": str},
}
NEW_SANDBOX_V2 = {
    "templateID!": text, "timeout": SECONDS, "metadata": {"*": str}, "envVars": {"*": str},
    "allow_internet_access": bool, "network": NETWORK, "autoPause": bool, "autoPauseMemory": bool,
    "autoResume": {"enabled!": bool}, "mcp": {"*": lambda value: None}, "iam": {"*": lambda value: None},
    "volumeMounts": [{"name!": text, "path!": text}],
}
NEW_SANDBOX = {**NEW_SANDBOX_V2, "secure": bool}
CONNECT_V2 = {"timeout": SECONDS, "memory": bool}
CONNECT = {"timeout!": SECONDS, "memory": bool}
RESUME = {"timeout": SECONDS, "autoPause": bool, "memory": bool}
PAUSE = {"memory": bool}
TIMEOUT = {"timeout!": SECONDS}
REFRESHES = {"duration": whole(0, 3600)}
NETWORK_UPDATE = {**NETWORK, "allow_internet_access": bool}
FORK = {"timeout": SECONDS, "count": whole(1, 100)}
SNAPSHOT = {"name": text}
NEW_TEMPLATE = {"name!": text, "tags": [text], "cpuCount": whole(1, 64), "memoryMB": whole(1, 1 << 20),
                "minFreeDiskMb": whole(0, 1 << 20)}
STEP = {"type!": one_of("RUN", "COPY", "WORKDIR", "USER", "ENV"), "args": [str], "force": bool,
        "filesHash": text}
BUILD = {"fromImage": text, "fromTemplate": text, "fromImageRegistry": {"*": lambda value: None},
         "startCmd": str, "readyCmd": str, "force": bool, "steps": [STEP]}
PUBLIC = {"public!": bool}

# process.Process

PID = whole(1, UINT32 - 1)
SELECTOR = exactly_one({"pid": PID, "tag": text})
SIZE = {"cols!": whole(1, 65535), "rows!": whole(1, 65535)}
PROCESS = {
    "Start": {
        "process!": {"cmd!": text, "args": [str], "envs": {"*": str}, "cwd": text},
        "pty": {"size!": SIZE}, "tag": text, "stdin": bool,
    },
    "Connect": {"process!": SELECTOR},
    "List": {},
    "SendInput": {"process!": SELECTOR,
                  "input!": exactly_one({"stdin": base64_bytes, "pty": base64_bytes})},
    "CloseStdin": {"process!": SELECTOR},
    "SendSignal": {"process!": SELECTOR, "signal!": one_of("SIGNAL_SIGKILL", "SIGNAL_SIGTERM")},
    "Update": {"process!": SELECTOR, "pty": {"size!": SIZE}},
}

# filesystem.Filesystem

WATCH = {"path!": str, "recursive": bool, "includeEntry": bool, "allowNetworkMounts": bool}
FILESYSTEM = {
    "Stat": {"path!": str},
    "ListDir": {"path!": str, "depth": whole(0, UINT32 - 1)},
    "MakeDir": {"path!": str},
    "Move": {"source!": str, "destination!": str},
    "Remove": {"path!": str},
    "WatchDir": WATCH,
    "CreateWatcher": WATCH,
    "GetWatcherEvents": {"watcherId!": text},
    "RemoveWatcher": {"watcherId!": text},
}
STREAMS = ("Start", "Connect", "WatchDir")
