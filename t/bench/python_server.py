#!/usr/bin/env python3
"""The same calls from a threaded server of Python's standard library, for the benchmarks to compare with.

    python_server.py PORT BASE_DIRECTORY

It speaks HTTP/1.1 with keep-alive, and sends each answer in one piece: as fast as this kind of server gets without being another kind.
"""
import base64
import datetime
import json
import os
import shlex
import stat
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BASE = os.path.realpath(sys.argv[2])


class Refused(Exception):
    def __init__(self, status, kind, message):
        self.status, self.kind = status, kind
        super().__init__(message)


def resolve(path):
    if not path:
        raise Refused(400, "ValueError", "path: is required")
    full = os.path.realpath(os.path.join(BASE, path))
    if full != BASE and not full.startswith(BASE + os.sep):
        raise Refused(403, "PermissionError", "Path is outside the allowed directories: " + path)
    return full


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def files_stat(args):
    path = resolve(args.get("path"))
    st = os.lstat(path)
    kind = "directory" if stat.S_ISDIR(st.st_mode) else "symlink" if stat.S_ISLNK(st.st_mode) else "file"
    return {"name": os.path.basename(path), "path": path, "type": kind, "size": st.st_size,
            "permissions": oct(st.st_mode)[-3:], "modified": iso(st.st_mtime), "accessed": iso(st.st_atime),
            "created": iso(st.st_ctime), "exists": True}


def upload(args):
    path = resolve(args.get("path"))
    data = base64.b64decode(args["content_base64"], validate=True)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = "%s.%d.tmp" % (path, threading.get_ident())
    with open(temporary, "wb") as out:
        out.write(data)
    os.replace(temporary, path)
    return {"path": path, "bytes": len(data)}


def download(args):
    path = resolve(args.get("path"))
    with open(path, "rb") as file:
        return {"path": path, "content_base64": base64.b64encode(file.read()).decode("ascii")}


def shell(args):
    done = subprocess.run(shlex.split(args["command"]), cwd=BASE, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    return {"stdout": done.stdout.decode(errors="replace"), "stderr": done.stderr.decode(errors="replace"),
            "exit_code": done.returncode}


def waits():
    time.sleep(0.005)
    return True


def computes():
    return sum(i * i for i in range(10000))


ROUTES = {
    ("GET", "/health"): lambda args: {"status": "ok"},
    ("GET", "/files/stat"): files_stat,
    ("POST", "/upload"): upload,
    ("GET", "/download"): download,
    ("POST", "/shell"): shell,
    ("POST", "/commands/hello"): lambda args: {"result": "Hello, %s!" % args.get("name", "World")},
    ("POST", "/commands/waits"): lambda args: {"result": waits()},
    ("POST", "/commands/computes"): lambda args: {"result": computes()},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self):
        target = urllib.parse.urlsplit(self.path)
        try:
            function = ROUTES.get((self.command, target.path))
            if function is None:
                raise Refused(404, "ValueError", "Not found: " + target.path)
            if self.command == "POST":
                args = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            else:
                args = dict(urllib.parse.parse_qsl(target.query))
            status, result = 200, function(args)
        except Refused as why:
            status, result = why.status, {"error": str(why), "type": why.kind}
        except Exception as why:
            status, result = 500, {"error": str(why), "type": type(why).__name__}
        body = json.dumps(result).encode()
        head = "HTTP/1.1 %d OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        self.wfile.write(head.encode("ascii") + body)

    do_GET = do_POST = answer


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
