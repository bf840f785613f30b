"""
The server's side of the package, played by a test: a program that stands in for abxd hands everything that it was given to the
test, which then speaks on the sockets as abxd and abx-commands do.
"""

import array
import json
import os
import signal
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from tap import wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PACKAGE = os.path.join(ROOT, "packaging", "python")
PATIENCE = 30

# A shell looks at the signals first: Python itself ignores some.
STAND_IN = """#!/bin/sh
SIGNALS=$(grep -E "Sig(Blk|Ign)" /proc/$$/status) exec %s %s "$@"
"""

STAND_IN_PYTHON = """
import array, json, os, socket, sys
fd = int(sys.argv[sys.argv.index("--code") + 1])
launch = json.loads(os.read(fd, 1 << 20))
test = socket.socket(socket.AF_UNIX)
test.connect(os.environ["PEER_SOCKET"])
fds = array.array("i", launch["calls"] + [launch["control"]])
about = {"argv": sys.argv, "pid": os.getpid(), "ppid": os.getppid(), "launch": launch, "token": os.environ.get("ABX_SERVER_TOKEN"),
         "host": os.environ.get("ABX_SERVER_HOST"), "signals": os.environ["SIGNALS"].splitlines()}
data = json.dumps(about).encode()
test.sendmsg([len(data).to_bytes(4, "little") + data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
for fd in fds:
    os.close(fd)
pid, status = os.waitpid(launch["pid"], 0)
test.sendall(json.dumps({"status": status}).encode())
"""


class Call:
    """The caller's end of a call."""

    def __init__(self, sock):
        self.socket = sock
        self.socket.settimeout(PATIENCE)
        self._in = b""

    def send(self, kind, payload):
        self.socket.sendall(struct.pack("<IB3x", len(payload), ord(kind)) + payload)

    def frame(self):
        """(type, payload), or None at the end."""
        head = self._read(8)
        if head is None:
            return None
        length, kind = struct.unpack("<IB3x", head)
        return chr(kind), self._read(length)

    def _read(self, n):
        found = bytearray()
        while len(found) < n:
            try:
                piece = self.socket.recv(min(n - len(found), 1 << 20))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            found += piece
        return bytes(found)

    def answer(self):
        """Of a command: ("R", value) or ("F", failure). None when the worker leaves without one."""
        frame = self.frame()
        return frame and (frame[0], json.loads(frame[1]))

    def last(self):
        """The same, and the connection is not kept for another call."""
        try:
            return self.answer()
        finally:
            self.close()

    def whole(self):
        """Of a route: (head, body), or ("F", failure)."""
        frame = self.frame()
        if frame is None or frame[0] == "F":
            return frame and ("F", json.loads(frame[1]))
        head, body = json.loads(frame[1]), b""
        frame = self.frame()
        while frame and frame[0] == "D":
            body += frame[1]
            frame = self.frame()
        return head, body if frame == ("Z", b"") else None

    def rest(self):
        """What still comes when the caller has nothing more to ask: None, if the worker does as it should."""
        self.socket.shutdown(socket.SHUT_WR)
        return self.frame()

    def close(self):
        self.socket.close()


class Peer:
    def __init__(self, code, python=(), script="commands.py", argv=None, files=(), env=None, accept=True, cwd=None):
        self.dir = tempfile.mkdtemp(prefix="abx-python-")
        for name, text in list(files) + [(script, code)]:
            path = os.path.join(self.dir, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        os.mkdir(os.path.join(self.dir, "bin"))
        stand_in = os.path.join(self.dir, "bin", "abxd")
        with open(stand_in, "w") as file:
            file.write(STAND_IN % (sys.executable, stand_in + ".py"))
        with open(stand_in + ".py", "w") as file:
            file.write(STAND_IN_PYTHON)
        os.chmod(stand_in, 0o755)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(self.dir, "peer"))
        listener.listen()
        listener.settimeout(PATIENCE)
        self.env = dict(os.environ, PATH=os.path.join(self.dir, "bin") + ":" + os.environ["PATH"], PYTHONPATH=PACKAGE,
                        PEER_SOCKET=os.path.join(self.dir, "peer"), **(env or {}))
        self.log = os.path.join(self.dir, "log")
        self.out = os.path.join(self.dir, "out")
        argv = [sys.executable] + list(python) + (argv or [os.path.join(self.dir, script)])
        self.process = subprocess.Popen(argv, env=self.env, cwd=cwd or self.dir, stdin=subprocess.DEVNULL,
                                        stdout=open(self.out, "wb"), stderr=open(self.log, "wb"))
        self.parent, _ = listener.accept()
        self.parent.settimeout(PATIENCE)
        fds, text = self._take_fds()
        self.about = json.loads(text)
        self.launch = self.about["launch"]
        self.table = json.loads(self.launch["table"])
        self.worker = self.launch["pid"]
        self.calls = socket.socket(fileno=fds[0])
        self.calls_of_worker = socket.socket(fileno=fds[1])
        self.control = socket.socket(fileno=fds[2])
        self.control.settimeout(PATIENCE)
        self.introduced = self.read_line(self.control)
        if accept:
            self.accept()

    def _take_fds(self):
        data, control, _, _ = self.parent.recvmsg(4, socket.CMSG_SPACE(64))
        fds = array.array("i")
        fds.frombytes(control[0][2])
        size, text = int.from_bytes(data, "little"), b""
        while len(text) < size:
            text += self.parent.recv(size - len(text))
        return fds, text

    @staticmethod
    def read_line(sock):
        line = b""
        while not line.endswith(b"\n"):
            piece = sock.recv(65536)
            if not piece:
                break
            line += piece
        return line.decode()

    def accept(self, secrets=()):
        self.control.sendall(json.dumps({"accept": True, "secrets": list(secrets)}).encode() + b"\n")

    def restart(self):
        """Start the worker again, as abxd does. Returns the process, and its control socket."""
        control, other = socket.socketpair()
        control.settimeout(PATIENCE)
        env = {name: value for name, value in self.env.items() if not name.startswith("ABX_")}
        env["ABX_WORKER_FDS"] = "%d,%d" % (self.calls_of_worker.fileno(), other.fileno())
        process = subprocess.Popen(self.launch["argv"], cwd=self.launch["cwd"], env=env, stdin=subprocess.DEVNULL,
                                   stdout=open(self.out, "ab"), stderr=open(self.log, "ab"),
                                   pass_fds=(self.calls_of_worker.fileno(), other.fileno()))
        other.close()
        return process, control

    def _call(self, question, body, pause=0):
        ours, theirs = socket.socketpair()
        self.calls.sendmsg([b"C"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
        theirs.close()
        call = Call(ours)
        call.send("Q", json.dumps(question).encode())
        time.sleep(pause)
        call.send("B", body)
        return call

    @staticmethod
    def _command(name, body):
        question = {"kind": "command", "name": name, "request_id": "r1", "identity": {"id": "anonymous", "scopes": ["*"]}}
        return question, body if isinstance(body, bytes) else json.dumps(body or {}).encode()

    def begin(self, name, body=None, pause=0):
        return self._call(*self._command(name, body), pause)

    def ask(self, call, name, body=None):
        """One more call on a connection whose last one was answered."""
        question, body = self._command(name, body)
        call.send("Q", json.dumps(question).encode())
        call.send("B", body)

    def command(self, name, body=None):
        call = self.begin(name, body)
        return call.last()

    def begin_route(self, route, body=b"", **more):
        method, _, path = route.partition(" ")
        question = dict({"kind": "route", "id": route, "method": method, "path": path, "path_params": {}, "query": [],
                         "headers": [], "remote": "127.0.0.1", "request_id": "r2", "identity": None}, **more)
        return self._call(question, body)

    def route(self, route, body=b"", **more):
        call = self.begin_route(route, body, **more)
        try:
            return call.whole()
        finally:
            call.close()

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def out_text(self):
        with open(self.out) as file:
            return file.read()

    def ended(self):
        """Wait for the worker's end: its wait status."""
        return json.loads(self.parent.recv(4096))["status"]

    def stop(self):
        self.control.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.kill(self.worker, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
