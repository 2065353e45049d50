#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A git server with Git LFS, over http on 127.0.0.1: git-http-backend, the batch API and its objects.

    lfs_server.py REPOSITORIES OBJECTS PORT LOG TOKEN [ELSEWHERE]

/open/NAME is anybody's, /private/NAME wants TOKEN as a password; NAME.git is the same repository, and
NAME.git/info/lfs its LFS server. OBJECTS has a file for each object, called by its id. By their NAME
repositories are served in other ways:

    elsewhere*   the objects are at http://ELSEWHERE, with no credential in the answer
    moved*       the batch API is redirected to http://ELSEWHERE
    gone*        the server has none of the objects
    wrong*       their content is another
    silent*      the batch API does not answer

A line of LOG for each request: STATUS METHOD PATH AUTHORIZATION
"""
import base64
import http.server
import json
import os
import socketserver
import subprocess
import sys
import time

REPOSITORIES, OBJECTS, PORT, LOG, TOKEN = sys.argv[1:6]
ELSEWHERE = sys.argv[6] if len(sys.argv) > 6 else ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=()):
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{status} {self.command} {self.path} {self.headers.get('Authorization', '-')}\n")
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def has_token(self):
        word, _, value = self.headers.get("Authorization", "").partition(" ")
        if word != "Basic":
            return False
        return base64.b64decode(value).decode().partition(":")[2] == TOKEN

    def read_body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def serve(self):
        body = self.read_body()
        path, _, query = self.path.partition("?")
        kind, _, rest = path.lstrip("/").partition("/")
        name, _, rest = rest.partition("/")
        if name.endswith(".git"):
            name = name[:-4]
        if kind not in ("open", "private", "objects"):
            self.answer(404)
        elif kind == "private" and not self.has_token():
            self.answer(401, b"", [("WWW-Authenticate", 'Basic realm="git"')])
        elif kind == "objects":
            self.object(name)
        elif rest == "info/lfs/objects/batch":
            self.batch(name, json.loads(body))
        elif rest.startswith("info/lfs/"):
            self.answer(404)
        else:
            self.git(f"/{name}/{rest}", query, body)

    do_GET = do_POST = serve

    def object(self, name):
        if "again-" in name:
            return self.answer(401, b"", [("WWW-Authenticate", "Basic realm=x")])
        wrong = name.startswith("wrong-")
        try:
            with open(os.path.join(OBJECTS, os.path.basename(name.removeprefix("wrong-"))), "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return self.answer(404)
        self.answer(200, b"x" * len(content) if wrong else content)

    def batch(self, name, request):
        if name.startswith("silent"):
            time.sleep(60)
        if name.startswith("moved"):
            return self.answer(307, b"", [("Location", f"http://{ELSEWHERE}{self.path}")])
        host = ELSEWHERE if name.startswith("elsewhere") else f"127.0.0.1:{PORT}"
        objects = []
        for wanted in request["objects"]:
            oid, size = wanted["oid"], wanted["size"]
            item = {"oid": oid, "size": size}
            if name.startswith("gone") or not os.path.exists(os.path.join(OBJECTS, oid)):
                item["error"] = {"code": 404, "message": "Object does not exist"}
            else:
                wrong = "wrong-" if name.startswith("wrong") else ""
                # git-lfs asks again and again where a user name is refused
                who = "u:p@" if name.startswith("again") else ""
                wrong = "again-" if name.startswith("again") else wrong
                item["actions"] = {"download": {"href": f"http://{who}{host}/objects/{wrong}{oid}"}}
            objects.append(item)
        self.answer(200, json.dumps({"transfer": "basic", "objects": objects}).encode(),
                    [("Content-Type", "application/vnd.git-lfs+json")])

    def git(self, path, query, body):
        env = dict(os.environ, GIT_PROJECT_ROOT=REPOSITORIES, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path,
                   QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_ADDR="127.0.0.1",
                   CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)),
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
                   GIT_PROTOCOL=self.headers.get("Git-Protocol", ""))
        output = subprocess.run(["git", "http-backend"], input=body, env=env, check=False,
                                stdout=subprocess.PIPE).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        headers = [line.decode().split(": ", 1) for line in head.split(b"\r\n") if b": " in line]
        status = [int(value.split()[0]) for name, value in headers if name == "Status"]
        self.answer(status[0] if status else 200, content, [h for h in headers if h[0] != "Status"])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        """A client that is gone."""


Server(("127.0.0.1", int(PORT)), Handler).serve_forever()
