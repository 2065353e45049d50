#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Drive a program in a terminal of its own, like a user who waits for what he sees.

    terminal.py STEP... -- PROGRAM [ARGUMENT...]

    send:TEXT        type it; \\n, \\r, \\x03 as in C
    expect:TEXT      wait until it is shown, counted from what the last expect found
    resize:ROWSxCOLS
    sleep:SECONDS
    signal:NAME      to the program
    raw:no, raw:yes  wait until the terminal is in that mode
    run:COMMAND      shell text, outside
    end              wait for the program's end

What was shown goes to stdout; "status N" (128+n for a signal) and "modes same" or "modes
changed", against those before the start, to stderr. Exit status 1 when something that was
expected did not come in TERMINAL_TIMEOUT (10) seconds.
"""
import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

TIMEOUT = float(os.environ.get("TERMINAL_TIMEOUT", "10"))


class Screen:
    def __init__(self, master):
        self.master = master
        self.text = b""
        self.at = 0
        self.is_open = True

    def read(self, seconds):
        if not self.is_open:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            chunk = os.read(self.master, 65536)
        except OSError:
            chunk = b""
        self.is_open = chunk != b""
        self.text += chunk
        return self.is_open

    def wait(self, condition):
        until = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > until:
                return False
            self.read(0.02)
        return True

    def expect(self, text):
        def found():
            at = self.text.find(text, self.at)
            if at >= 0:
                self.at = at + len(text)
            return at >= 0

        return self.wait(found)


def resize(fd, text):
    rows, cols = (int(n) for n in text.split("x"))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def is_raw(fd):
    return not termios.tcgetattr(fd)[3] & termios.ICANON


def has_ended(pid, status):
    if not status:
        done, value = os.waitpid(pid, os.WNOHANG)
        if done:
            status.append(os.waitstatus_to_exitcode(value))
    return bool(status)


def take(step, screen, pid, status):
    verb, _, text = step.partition(":")
    data = codecs.escape_decode(text.encode())[0]
    if verb == "send":
        os.write(screen.master, data)
    elif verb == "expect":
        return screen.expect(data)
    elif verb == "resize":
        resize(screen.master, text)
    elif verb == "sleep":
        until = time.monotonic() + float(text)
        while time.monotonic() < until:
            screen.read(0.02)
    elif verb == "signal":
        os.kill(pid, getattr(signal, "SIG" + text))
    elif verb == "raw":
        return screen.wait(lambda: is_raw(screen.master) == (text == "yes"))
    elif verb == "run":
        return subprocess.run(text, shell=True, check=False, timeout=TIMEOUT).returncode == 0
    elif verb == "end":
        return screen.wait(lambda: has_ended(pid, status))
    else:
        sys.exit(f"unknown step '{step}'")
    return True


def main():
    split = sys.argv.index("--")
    steps, program = sys.argv[1:split], sys.argv[split + 1 :]
    master, slave = pty.openpty()
    resize(slave, "24x80")
    before = termios.tcgetattr(slave)
    signal.alarm(90)
    pid = os.fork()
    if pid == 0:
        signal.alarm(0)
        os.close(master)
        os.login_tty(slave) if hasattr(os, "login_tty") else login(slave)
        os.execvp(program[0], program)
    # the slave stays open: a terminal outlives the programs in it
    screen = Screen(master)
    status = []
    failed = None
    for step in steps:
        if not take(step, screen, pid, status):
            failed = step
            break
    if not has_ended(pid, status):
        os.kill(pid, signal.SIGKILL)
        screen.wait(lambda: has_ended(pid, status))
    while screen.read(0.1):
        pass
    same = termios.tcgetattr(slave) == before
    sys.stdout.buffer.write(screen.text)
    sys.stdout.flush()
    code = status[0] if status else -1
    print(f"status {code if code >= 0 else 128 - code}", file=sys.stderr)
    print(f"modes {'same' if same else 'changed'}", file=sys.stderr)
    if failed:
        print(f"did not come: {failed}", file=sys.stderr)
        sys.exit(1)


def login(slave):
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    if slave > 2:
        os.close(slave)


if __name__ == "__main__":
    main()
