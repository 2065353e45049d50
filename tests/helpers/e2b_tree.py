# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox as its processes see them, reached from outside.

Every path is resolved by openat2 in the sandbox's root, so that no link leads out of it. The programs
of this machine are in it read-only, and /dev, /proc and /sys are not written to.
"""
import ctypes
import errno
import os
import posixpath
import shutil
import stat

SYS_OPENAT2 = 437
RESOLVE_IN_ROOT = 0x10
LIBC = ctypes.CDLL(None, use_errno=True)


class OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def failure(number, path):
    return OSError(number, os.strerror(number), path)


class Tree:
    def __init__(self, fd):
        self.fd = fd
        self.device = os.fstat(fd).st_dev

    def __del__(self):
        os.close(self.fd)

    def open(self, path, flags, mode=0):
        how = OpenHow(flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, RESOLVE_IN_ROOT)
        fd = LIBC.syscall(SYS_OPENAT2, self.fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if fd < 0:
            raise failure(ctypes.get_errno(), path)
        return fd

    def status(self, path, follow=True):
        fd = self.open(path, os.O_PATH | (0 if follow else os.O_NOFOLLOW))
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def exists(self, path):
        try:
            self.status(path)
        except OSError:
            return False
        return True

    def is_directory(self, path):
        return stat.S_ISDIR(self.status(path).st_mode)

    def parent(self, path):
        """An open directory to write to, and the name in it."""
        directory, name = posixpath.split(path)
        if not name:
            raise failure(errno.EBUSY, path)
        fd = self.open(directory, os.O_PATH | os.O_DIRECTORY)
        if os.fstat(fd).st_dev != self.device:
            os.close(fd)
            raise failure(errno.EROFS, path)
        return fd, name

    def readlink(self, path):
        fd, name = self.open(posixpath.dirname(path), os.O_PATH | os.O_DIRECTORY), posixpath.basename(path)
        try:
            return os.readlink(name, dir_fd=fd)
        finally:
            os.close(fd)

    def resolve(self, path):
        """What a path is without links; OSError when it leads nowhere."""
        done, rest, links = "/", [p for p in path.split("/") if p], 0
        while rest:
            part = rest.pop(0)
            if part == "..":
                done = posixpath.dirname(done)
                continue
            if part == ".":
                continue
            here = posixpath.join(done, part)
            if not stat.S_ISLNK(self.status(here, follow=False).st_mode):
                done = here
                continue
            links += 1
            if links > 40:
                raise failure(errno.ELOOP, path)
            target = self.readlink(here)
            if target.startswith("/"):
                done = "/"
            rest = [p for p in target.split("/") if p] + rest
        return done

    def list(self, path):
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    def make_directories(self, path, owner, mode=0o755):
        """All that is missing of a path; returns whether something was."""
        made = False
        here = ""
        for part in [p for p in path.split("/") if p]:
            here += "/" + part
            try:
                if not self.is_directory(here):
                    raise failure(errno.ENOTDIR, here)
                continue
            except FileNotFoundError:
                pass
            fd, name = self.parent(here)
            try:
                os.mkdir(name, mode, dir_fd=fd)
                os.chmod(name, mode, dir_fd=fd)
                self.own(name, fd, owner)
                made = True
            except FileExistsError:
                pass
            finally:
                os.close(fd)
        return made

    def own(self, name, fd, owner):
        if os.getuid() == 0:
            os.chown(name, owner, owner, dir_fd=fd, follow_symlinks=False)

    def create(self, path):
        """A file to write, empty; and whether it is new."""
        is_new = not self.exists(path)
        fd, _ = self.parent(path)
        os.close(fd)
        if not is_new and self.status(path).st_dev != self.device:
            raise failure(errno.EROFS, path)
        return self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644), is_new

    def rename(self, source, destination):
        source_fd, source_name = self.parent(source)
        try:
            fd, name = self.parent(destination)
            try:
                os.rename(source_name, name, src_dir_fd=source_fd, dst_dir_fd=fd)
            finally:
                os.close(fd)
        finally:
            os.close(source_fd)

    def remove(self, path):
        try:
            fd, name = self.parent(path)
        except FileNotFoundError:
            return
        try:
            if stat.S_ISDIR(os.lstat(name, dir_fd=fd).st_mode):
                shutil.rmtree(name, dir_fd=fd)
            else:
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        finally:
            os.close(fd)
