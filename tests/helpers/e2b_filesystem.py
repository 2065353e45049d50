# SPDX-License-Identifier: Apache-2.0
"""filesystem.Filesystem of the E2B stand-in, all but watching."""
import datetime
import errno
import functools
import os
import posixpath
import pwd
import stat

from e2b_connect import RpcError
from e2b_sandbox import IS_ROOT, USERS

FILE_TYPES = {stat.S_IFREG: "FILE_TYPE_FILE", stat.S_IFDIR: "FILE_TYPE_DIRECTORY"}
# Go's letters for what is not a plain file
LETTERS = {stat.S_IFDIR: "d", stat.S_IFLNK: "L", stat.S_IFIFO: "p", stat.S_IFSOCK: "S", stat.S_IFBLK: "D",
           stat.S_IFCHR: "Dc"}
METADATA = "user.e2b."


def expand(path, user):
    """An absolute path: relative ones begin at the user's home."""
    home = USERS[user][1]
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    elif path.startswith("~"):
        raise RpcError("invalid_argument", "cannot expand user-specific home dir")
    if "\0" in path:
        raise RpcError("invalid_argument", "a NUL in the path")
    return posixpath.normpath(posixpath.join(home, path)).replace("//", "/")


def reason(error):
    return os.strerror(error.errno).lower()


def failed(error, text):
    """The code for an error of the system."""
    codes = {errno.ENOENT: "not_found", errno.EACCES: "permission_denied", errno.EPERM: "permission_denied",
             errno.EROFS: "permission_denied", errno.ENOTDIR: "invalid_argument",
             errno.EINVAL: "invalid_argument", errno.ENAMETOOLONG: "invalid_argument",
             errno.ELOOP: "invalid_argument"}
    return RpcError(codes.get(error.errno, "internal"), text)


@functools.lru_cache
def owner(number):
    if not IS_ROOT and number == os.getuid():
        return "user"
    if IS_ROOT and number == USERS["user"][0]:
        return "user"
    try:
        return "root" if number == 0 else pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


@functools.lru_cache
def owning_group(number):
    if (IS_ROOT and number == USERS["user"][0]) or (not IS_ROOT and number == os.getgid()):
        return "user"
    return "root" if number == 0 else str(number)


def permissions(mode):
    bits = "".join(letter if mode & (256 >> at) else "-" for at, letter in enumerate("rwxrwxrwx"))
    extra = "".join(letter for bit, letter in ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"),
                                               (stat.S_ISVTX, "t"))
                    if mode & bit)
    # Go leads with the type, then setuid and the like, and with '-' when there is none
    return (LETTERS.get(stat.S_IFMT(mode), "") + extra or "-") + bits


def timestamp(nanoseconds):
    seconds, rest = divmod(nanoseconds, 10 ** 9)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    text = f".{rest:09d}".rstrip("0") if rest else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + text + "Z"


def metadata_of(tree, path):
    try:
        fd = tree.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        names = [name for name in os.listxattr(fd) if name.startswith(METADATA)]
        return {name[len(METADATA):]: os.getxattr(fd, name).decode("utf-8", "replace") for name in names}
    except OSError:
        return {}
    finally:
        os.close(fd)


def entry(tree, path):
    """What is known about a path; members that have their default are left out."""
    own = tree.status(path, follow=False)
    kind, mode, target = own.st_mode, own.st_mode, None
    if stat.S_ISLNK(own.st_mode):
        try:
            target = tree.resolve(path)
            kind = mode = tree.status(path).st_mode
        except OSError:
            kind, target = 0, tree.readlink(path)
    made = {"name": posixpath.basename(path) or "/"}
    if stat.S_IFMT(kind) in FILE_TYPES:
        made["type"] = FILE_TYPES[stat.S_IFMT(kind)]
    made["path"] = path
    if own.st_size:
        made["size"] = str(own.st_size)
    if mode & 0o777:
        made["mode"] = mode & 0o777
    made.update({"permissions": permissions(own.st_mode), "owner": owner(own.st_uid),
                 "group": owning_group(own.st_gid), "modifiedTime": timestamp(own.st_mtime_ns)})
    if target is not None:
        made["symlinkTarget"] = target
    if stat.S_ISREG(kind) and (metadata := metadata_of(tree, path)):
        made["metadata"] = metadata
    return made


def stat_path(sandbox, request, user):
    path = expand(request["path"], user)
    try:
        return {"entry": entry(sandbox.tree, path)}
    except OSError as error:
        raise failed(error, f"file not found: lstat {path}: {reason(error)}") from error


def require_directory(tree, path):
    try:
        is_directory = tree.is_directory(path)
    except OSError as error:
        raise failed(error, f"path not found: lstat {path}: {reason(error)}") from error
    if not is_directory:
        raise RpcError("invalid_argument", f"path is not a directory: {path}")


def walk(tree, path, depth, found):
    for name in tree.list(path):
        here = posixpath.join(path, name)
        try:
            found.append(entry(tree, here))
            is_directory = stat.S_ISDIR(tree.status(here, follow=False).st_mode)
            if depth > 1 and is_directory:
                walk(tree, here, depth - 1, found)
        except FileNotFoundError:
            # It went away while we looked
            continue


def list_directory(sandbox, request, user):
    path = expand(request["path"], user)
    require_directory(sandbox.tree, path)
    found = []
    try:
        walk(sandbox.tree, path, request.get("depth", 0) or 1, found)
    except OSError as error:
        raise failed(error, f"error reading directory {path}: {reason(error)}") from error
    return {"entries": found} if found else {}


def make_directory(sandbox, request, user):
    tree, path = sandbox.tree, expand(request["path"], user)
    try:
        if tree.is_directory(path):
            raise RpcError("already_exists", f"directory already exists: {path}")
        raise RpcError("invalid_argument", f"path already exists but it is not a directory: {path}")
    except OSError:
        pass
    try:
        tree.make_directories(path, USERS[user][0])
        return {"entry": entry(tree, path)}
    except OSError as error:
        raise failed(error, f"error creating directory {path}: {reason(error)}") from error


def move(sandbox, request, user):
    tree = sandbox.tree
    source, destination = expand(request["source"], user), expand(request["destination"], user)
    what = f"rename {source} {destination}"
    try:
        tree.status(source, follow=False)
    except OSError as error:
        raise failed(error, f"source file not found: {what}: {reason(error)}") from error
    try:
        tree.make_directories(posixpath.dirname(destination), USERS[user][0])
        tree.rename(source, destination)
        return {"entry": entry(tree, destination)}
    except OSError as error:
        raise failed(error, f"error renaming: {what}: {reason(error)}") from error


def remove(sandbox, request, user):
    path = expand(request["path"], user)
    try:
        sandbox.tree.remove(path)
    except OSError as error:
        raise failed(error, f"error removing file or directory: {path}: {reason(error)}") from error
    return {}


UNARY = {"Stat": stat_path, "ListDir": list_directory, "MakeDir": make_directory, "Move": move,
         "Remove": remove}
