#!/usr/bin/env python3
# abxctl at a terminal: the bar of a long transfer, and bash's completion.
import http.server
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import ROOT
from server import BIN, environment, free_port
from tap import done, equal, matches, ok

directory = tempfile.mkdtemp(prefix="abx-ctl-")
SIZE = 1 << 20
enough = threading.Event()


class Slow(http.server.BaseHTTPRequestHandler):
    """Sends, and takes, little at a time until the test has seen enough."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        sent = 0
        while sent < SIZE:
            n = SIZE - sent if enough.is_set() else min(1024, (SIZE - sent) // 2)
            self.wfile.write(b"x" * n)
            self.wfile.flush()
            sent += n
            enough.wait(0.05)

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        while left:
            n = left if enough.is_set() else min(65536, left // 2)
            left -= len(self.rfile.read(n))
            enough.wait(0.05)
        body = b'{"path": "x", "bytes": 5}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


slow = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
slow.daemon_threads = True
threading.Thread(target=slow.serve_forever, daemon=True).start()
env = environment(directory, {"ABX_TEMPLATE_URL": "http://127.0.0.1:%d" % slow.server_address[1], "TERM": "xterm"})
big = os.path.join(directory, "big")
with open(big, "wb") as file:
    file.truncate(64 << 20)


def at_terminal(*args):
    """Run abxctl with a terminal as its standard error. Returns what it showed there; the transfer goes on quickly after the second bar."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([BIN + "/abxctl"] + list(args), env=env, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        seen += piece
        if seen.count(b"\r") >= 2:
            enough.set()
    os.close(ours)
    return process.wait(), seen.decode()


for args in (("download", "x", os.path.join(directory, "out")), ("upload", big, "x")):
    enough.clear()
    status, seen = at_terminal(*args)
    equal(status, 0, args[0])
    matches(seen, r"\A\r *\d+% \[[# ]+\] [\d.]+ [KM]?i?B, [\d.]+ [KM]?i?B/s, [\d:]+ left\x1b\[K", args[0] + ": a bar")
    ok(seen.endswith("\r\x1b[K"), args[0] + ": that goes at the end")
equal(os.path.getsize(os.path.join(directory, "out")), SIZE, "the file is whole")
enough.clear()
threading.Timer(2.6, enough.set).start()
run = subprocess.run([BIN + "/abxctl", "download", "x", "-"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
equal((len(run.stdout), run.stderr), (SIZE, b""), "no bar where standard error is no terminal")
slow.shutdown()

# ---- completion, with a server that knows commands

bash = shutil.which("bash")
if bash:
    class Commands(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = (b'{"commands": [{"name": "hello", "description": "Say.", "args": [{"name": "name", "type": "string", "required": false, '
                    b'"default": null, "description": ""}, {"name": "n", "type": "integer", "required": true, "default": null, "description": ""}]},'
                    b'{"name": "help-me", "description": "", "args": []}]}')
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    fake = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Commands)
    threading.Thread(target=fake.serve_forever, daemon=True).start()
    env["ABX_TEMPLATE_URL"] = "http://127.0.0.1:%d" % fake.server_address[1]

    def complete(*words):
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _abxctl; printf "%s\\n" "${COMPREPLY[@]}"'
        run = subprocess.run([bash, "--norc", "-c", script, "bash", os.path.join(ROOT, "packaging/completion/abxctl")] + list(words),
                             env=env, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        return run.stdout.split() if not run.stderr else run.stderr

    equal(complete("abxctl", "st"), ["start", "stop", "status"], "subcommands")
    listed = re.findall(r"^  ([a-z]+) ", subprocess.run([BIN + "/abxctl", "--help"], env=env, stdout=subprocess.PIPE,
                                                        universal_newlines=True).stdout, re.M)
    equal(sorted(complete("abxctl", "")), sorted(listed + ["--help"]), "all that --help lists")
    for name in listed:
        usage = subprocess.run([BIN + "/abxctl", name, "--help"], env=env, stdout=subprocess.PIPE, universal_newlines=True).stdout
        equal(sorted(complete("abxctl", name, "-")), sorted(set(re.findall(r"^  (--[a-z]+)", usage, re.M)) | {"--help"}), "options of " + name)
    equal(complete("abxctl", "call", "hel"), ["hello", "help-me"], "names of commands")
    equal(complete("abxctl", "call", "--json", "hello", ""), ["name=", "n:="], "their arguments")
    equal(complete("abxctl", "upload", "bi"), ["big"], "local files")
    equal(complete("abxctl", "policy", "e"), ["explain"], "policy")
    fake.shutdown()
shutil.rmtree(directory, ignore_errors=True)
done()
