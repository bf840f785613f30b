"""A real server for a test in Python: a template's commands.py, on a free port, with directories of its own."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from peer import PACKAGE, ROOT
from tap import diag, wait_for

BIN = os.environ.get("ABX_BIN_DIR") or os.path.abspath(os.environ.get("ABX_BUILDDIR") or os.path.join(ROOT, "build"))
PATIENCE = 60


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def environment(directory, env=None):
    """Nothing of the caller's own settings; directories below `directory`, which are made."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("ABX_") and not name.lower().endswith("proxy")}
    for name in ("run", "base", "spool", "commands.d"):
        os.makedirs(os.path.join(directory, name), exist_ok=True)
    os.rmdir(os.path.join(directory, "run"))
    found.update(PATH=BIN + ":" + found.get("PATH", "/usr/bin:/bin"), PYTHONPATH=PACKAGE, ABX_RUN_DIR=os.path.join(directory, "run"),
                 ABX_SERVER_BASE_DIR=os.path.join(directory, "base"), ABX_SPOOL_DIR=os.path.join(directory, "spool"),
                 ABX_COMMANDS_DIR=os.path.join(directory, "commands.d"), ABX_SERVER_HOST="127.0.0.1", ABX_PTY_PORT=str(free_port()))
    for name, value in (env or {}).items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(parent):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    state, ppid = file.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(ppid) == parent and state != "Z":
                found.append(int(name))
    return found


def descendants_of(pid):
    return [found for child in children_of(pid) for found in [child] + descendants_of(child)]


class Answer:
    def __init__(self, status, headers, content):
        self.status, self.headers, self.content = status, headers, content

    @property
    def json(self):
        return json.loads(self.content)


class Server:
    """`code` is the text of commands.py. Use port 0 in it: the free one that is taken is `port` here."""

    def __init__(self, code, *, python=(), argv=None, files=(), env=None, script="commands.py", token=None, wait=True, cwd=None):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="abx-python-"))
        os.chmod(self.dir, 0o755)
        self.path = os.path.join(self.dir, script)
        self.write(script, code)
        for name, text in files:
            self.write(name, text)
        self.env = environment(self.dir, env)
        self.token = token
        if token:
            self.env["ABX_SERVER_TOKEN"] = token
        self.log, self.out = os.path.join(self.dir, "log"), os.path.join(self.dir, "out")
        self.process = subprocess.Popen([sys.executable] + list(python) + (argv or [self.path]), env=self.env, cwd=cwd or self.dir,
                                        stdin=subprocess.DEVNULL, stdout=open(self.out, "wb"), stderr=open(self.log, "wb"))
        self.port = None
        if wait:
            found = wait_for(lambda: self.process.poll() is not None or re.search(r"http://\S+:(\d+)", self.out_text()))
            if self.process.poll() is not None or not found:
                raise RuntimeError("the server did not start:\n" + self.log_text())
            self.port = int(found.group(1))

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def out_text(self):
        with open(self.out) as file:
            return file.read()

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def worker(self):
        """The worker's pid, or None while there is none."""
        for pid in children_of(self.process.pid):
            try:
                with open("/proc/%d/comm" % pid) as file:
                    if file.read().startswith("python"):
                        return pid
            except OSError:
                pass
        return None

    def request(self, method, path, body=None, headers=None, token=True):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = dict(headers or {})
        if data is None and method == "POST":
            data = b""
        if self.token and token:
            headers["Authorization"] = "Bearer " + self.token
        if data is not None:
            headers.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, body, **options)

    def command(self, command, **arguments):
        """The result, or (status, error body)."""
        answer = self.post("/commands/" + command, arguments)
        return answer.json["result"] if answer.status == 200 else (answer.status, answer.json)

    def stream(self, path, body=None):
        """A connection on which a stream was asked for, and all that has come of it so far."""
        sock = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        data = b"" if body is None else json.dumps(body).encode()
        token = "Authorization: Bearer %s\r\n" % self.token if self.token else ""
        head = "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n" % ("GET" if body is None else "POST", path, token, len(data))
        sock.sendall(head.encode() + data)
        return sock

    @staticmethod
    def read_until(sock, text):
        """Read until that has come, or the end. Returns all."""
        got = b""
        while text not in got:
            piece = sock.recv(65536)
            if not piece:
                break
            got += piece
        return got

    def stop(self):
        """End it. Returns abxd's exit status, or None when it had to be killed."""
        status = None
        if not os.path.exists(self.dir):
            return self.process.returncode
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            diag("the server had to be killed")
            for pid in descendants_of(self.process.pid):
                os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        if re.search(r"ERROR: \w+Sanitizer|runtime error:", self.log_text()):
            diag(self.log_text())
            status = None
        shutil.rmtree(self.dir, ignore_errors=True)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
