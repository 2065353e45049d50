# SPDX-License-Identifier: Apache-2.0
"""GET and POST /files of the E2B stand-in, and what signs their URLs."""
import base64
import email.utils
import gzip
import hashlib
import hmac
import mmap
import os
import posixpath
import re
import shutil
import stat
import time

import e2b_filesystem
from e2b_connect import RpcError
from e2b_sandbox import USERS

CHUNK = 1 << 18
PART = re.compile(r'form-data; name="file"(?:; filename="([^"\r\n]*)")?')


class FileError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class BadUpload(Exception):
    """The body is not what the client said."""


def signature(token, path, operation, user, expiration):
    parts = [path, operation, user, token] + ([expiration] if expiration is not None else [])
    digest = hashlib.sha256(":".join(parts).encode("utf-8", "surrogateescape")).digest()
    return "v1_" + base64.b64encode(digest).decode().rstrip("=")


def find_signed(world, operation, query):
    """The live sandbox whose token made the signature."""
    expiration = query.get("signature_expiration")
    with world.lock:
        sandboxes = list(world.sandboxes.values())
    for sandbox in sandboxes:
        if sandbox.token:
            right = signature(sandbox.token, query.get("path", ""), operation, query.get("username", ""),
                              expiration)
            if hmac.compare_digest(right.encode(), query["signature"].encode()):
                if expiration is not None and int(expiration) < time.time():
                    raise FileError(401, "signature is already expired")
                return sandbox
    raise FileError(401, "invalid signature")


def locate(query, user):
    try:
        return e2b_filesystem.expand(query.get("path", ""), user)
    except RpcError as error:
        raise FileError(400, str(error)) from error


def failure(error, path):
    if isinstance(error, FileNotFoundError):
        return FileError(404, f"path '{path}' does not exist")
    if isinstance(error, IsADirectoryError):
        return FileError(400, f"path '{path}' is a directory")
    if isinstance(error, NotADirectoryError):
        return FileError(400, f"error opening file '{path}': not a directory")
    return FileError(500, f"error opening file '{path}': {e2b_filesystem.reason(error)}")


def read_range(text, size):
    """The first byte and the length that a Range asks for; None for all."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", text or "")
    if not match or match[0] == "bytes=-":
        return None
    if not match[1]:
        first = max(size - int(match[2]), 0)
        return (first, size - first)
    first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
    if first >= size or first > last:
        raise FileError(416, "range not satisfiable")
    return first, last - first + 1


def download(connection, sandbox, query, user):
    path = locate(query, user)
    tree = sandbox.tree
    try:
        mode = tree.status(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError()
        if not stat.S_ISREG(mode):
            raise FileError(400, f"path '{path}' is not a regular file")
        fd = tree.open(path, os.O_RDONLY)
    except OSError as error:
        raise failure(error, path) from error
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        name = posixpath.basename(path).replace("\\", "\\\\").replace('"', '\\"')
        # Go's server writes a blank where a header's value has the end of a line
        shown = re.sub("[\r\n]", " ", name.encode().decode("latin-1"))
        headers = [("content-disposition", f'inline; filename="{shown}"'),
                   ("vary", "Accept-Encoding"), ("accept-ranges", "bytes"),
                   ("content-type", "application/octet-stream"),
                   ("last-modified", email.utils.formatdate(status.st_mtime, usegmt=True))]
        part = read_range(connection.request.header("range"), status.st_size)
        if part:
            headers.append(("content-range", f"bytes {part[0]}-{part[0] + part[1] - 1}/{status.st_size}"))
            file.seek(part[0])
            answer, left = connection.begin(206, headers, part[1]), part[1]
        elif status.st_size or status.st_dev == tree.device:
            answer, left = connection.begin(200, headers, status.st_size), status.st_size
        else:
            # procfs knows no sizes
            answer, left = connection.begin(200, headers), None
        while left is None or left > 0:
            data = file.read(CHUNK if left is None else min(CHUNK, left))
            if not data:
                break
            answer.write(data)
            left = None if left is None else left - len(data)
        if left:
            # The file got shorter: the length was promised
            connection.drop("cut")
        answer.finish()


class Upload:
    """Where the bytes of a file are in the body."""

    def __init__(self, name, view):
        self.name = name
        self.view = view


def split_multipart(data, boundary):
    """The parts of a form; strict as the form's RFC."""
    mark = b"--" + boundary.encode("latin-1")
    if data[:len(mark) + 2] != mark + b"\r\n":
        raise BadUpload("the form does not begin with its boundary")
    at = len(mark) + 2
    uploads = []
    while True:
        head_end = data.find(b"\r\n\r\n", at)
        if head_end < 0 or head_end - at > 65536:
            raise BadUpload("a part without the end of its header")
        name = part_name(data[at:head_end])
        end = data.find(b"\r\n" + mark, head_end + 2)
        if end < 0:
            raise BadUpload("a part without an end")
        uploads.append(Upload(name, (head_end + 4, max(end, head_end + 4))))
        at = end + 2 + len(mark)
        rest = data[at:at + 4]
        if rest[:2] == b"\r\n":
            at += 2
        elif rest[:2] == b"--":
            if data[at + 2:] not in (b"", b"\r\n"):
                raise BadUpload("something after the end of the form")
            return uploads
        else:
            raise BadUpload("a boundary with something after it")


def part_name(head):
    headers = {}
    for line in head.decode("utf-8", "surrogateescape").split("\r\n"):
        name, colon, value = line.partition(": ")
        if not colon or name.lower() in headers:
            raise BadUpload("bad header in a part")
        headers[name.lower()] = value
    match = PART.fullmatch(headers.pop("content-disposition", ""))
    if not match:
        raise BadUpload("a part that is not the field 'file'")
    if headers.pop("content-type", "application/octet-stream") != "application/octet-stream":
        raise BadUpload("a part that is not application/octet-stream")
    if headers:
        raise BadUpload(f"unknown header in a part: {next(iter(headers))}")
    return match[1]


def boundary_of(content_type):
    match = re.fullmatch(r"multipart/form-data; boundary=([0-9A-Za-z'()+_,./:=?-]{1,70})", content_type)
    if not match:
        raise BadUpload(f"Content-Type: {content_type}")
    return match[1]


def metadata_of(request):
    found = {}
    for name, value in request.headers:
        if name.startswith("x-metadata-"):
            key = name[len("x-metadata-"):]
            if not key or len(key) > 246 or not re.fullmatch(r"[ -~]*", value):
                raise FileError(400, f"invalid metadata '{key}'")
            found[key] = value
    if sum(len(k) + len(v) for k, v in found.items()) > 4096:
        raise FileError(400, "metadata too large")
    return found


def store(tree, path, user, pieces, metadata):
    owner = USERS[user][0]
    try:
        if tree.exists(path) and tree.is_directory(path):
            raise IsADirectoryError()
        tree.make_directories(posixpath.dirname(path), owner)
        fd, _ = tree.create(path)
        with os.fdopen(fd, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            if os.getuid() == 0:
                os.fchown(fd, owner, owner)
            set_metadata(fd, metadata)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise failure(error, path) from error
        raise FileError(500, f"error opening file '{path}': {e2b_filesystem.reason(error)}") from error
    made = {"name": posixpath.basename(path), "path": path, "type": "file"}
    return {**made, "metadata": metadata} if metadata else made


def set_metadata(fd, metadata):
    try:
        for name in os.listxattr(fd):
            if name.startswith(e2b_filesystem.METADATA):
                os.removexattr(fd, name)
        for name, value in metadata.items():
            os.setxattr(fd, e2b_filesystem.METADATA + name, value.encode())
    except OSError:
        if metadata:
            raise


def store_form(tree, request, query, user, metadata):
    made, seen = [], set()
    # An empty file cannot be mapped
    if not request.length:
        raise BadUpload("an empty form")
    request.file.rollover()
    # what is mapped is the file, and not what is buffered before it
    request.file.flush()
    with mmap.mmap(request.file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        uploads = split_multipart(data, boundary_of(request.header("content-type")))
        if "path" in query and len(uploads) > 1:
            raise FileError(400, "more than one file for one path")
        for upload in uploads:
            name = query.get("path", upload.name)
            if not name:
                raise BadUpload("a file without a path")
            upload.path = locate({"path": name}, user)
            if upload.path in seen:
                raise FileError(400, f"path '{upload.path}' more than once in one request")
            seen.add(upload.path)
        for upload in uploads:
            first, last = upload.view
            pieces = (data[at:min(at + CHUNK, last)] for at in range(first, last, CHUNK))
            made.append(store(tree, upload.path, user, pieces, metadata))
    return made


def unpacked(file, coding):
    file.seek(0)
    source = gzip.GzipFile(fileobj=file) if coding == "gzip" else file
    try:
        while data := source.read(CHUNK):
            yield data
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadUpload("the body is not gzip") from error


def upload(connection, sandbox, query, user):
    request = connection.request
    metadata = metadata_of(request)
    tree = sandbox.tree
    if request.header("content-type") == "application/octet-stream":
        if not query.get("path"):
            raise FileError(400, "path is required for application/octet-stream")
        pieces = unpacked(request.file, request.header("content-encoding"))
        made = [store(tree, locate(query, user), user, pieces, metadata)]
    else:
        made = store_form(tree, request, query, user, metadata)
    connection.json(200, made, content_type="text/plain; charset=utf-8")


def query_of(request):
    pairs = request.query()
    if len(dict(pairs)) != len(pairs):
        raise BadUpload("a query parameter more than once")
    for name, _ in pairs:
        if name not in ("path", "username", "signature", "signature_expiration"):
            raise BadUpload(f"unknown query parameter '{name}'")
    query = dict(pairs)
    if not re.fullmatch("[0-9]{1,12}", query.get("signature_expiration", "0")):
        raise BadUpload("signature_expiration is not a time")
    # A '+' in a path is a space to some and not to others: it must be escaped
    if "+" in request.query_text or not request.query_text.isascii():
        raise BadUpload("the query is not escaped")
    return query


def disk_usage(sandbox):
    return shutil.disk_usage(sandbox.root)
