# SPDX-License-Identifier: Apache-2.0
"""What the stand-in tells a test: a log of requests and commands, and the client's deviations."""
import hashlib
import threading


class Journal:
    def __init__(self, log=None, violations=None):
        self.lock = threading.Lock()
        self.log_path, self.violations_path = log, violations
        self.requests = self.commands = self.violations = 0
        for path in (log, violations):
            if path:
                with open(path, "a", encoding="utf-8"):
                    pass

    @staticmethod
    def append(path, line):
        if path:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line.replace("\n", "\\n").replace("\r", "\\r") + "\n")

    def request(self, status, method, path):
        """One line a request; the query and the header fields may hold secrets and stay out."""
        with self.lock:
            self.requests += 1
            self.append(self.log_path, f"{status} {method} {path.partition('?')[0]}")

    def command(self, command):
        """One line a command started; its number says how many were before."""
        with self.lock:
            self.commands += 1
            digest = hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()
            self.append(self.log_path, f"EXEC {self.commands} {digest}")
            return self.commands

    def closed(self, number, how):
        with self.lock:
            self.append(self.log_path, f"CLOSE {number} {how}")

    def violation(self, where, what):
        with self.lock:
            self.violations += 1
            self.append(self.violations_path, f"{where}: {what}")
