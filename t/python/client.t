#!/usr/bin/env python3
# The client: against a server that it brings up itself, and against one of a few lines that answers what a test wants.
import ast
import asyncio
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "t", "lib", "python"), os.path.join(TOP, "packaging", "python")]
import server
from tap import done, equal, matches, ok, raises

directory = tempfile.mkdtemp(prefix="abx-python-")
os.chmod(directory, 0o755)
os.environ.update(server.environment(directory))
for name in [name for name in os.environ if name.lower().endswith("proxy")]:
    del os.environ[name]

from agent_sandbox import AsyncClient, Client, Sandbox, SandboxError, errors

# ---- a server of its own

port = server.free_port()
with Client(token="secret") as client:
    equal(client.url, "http://127.0.0.1:9000", "the default address")
    ok(client.start(port=port) is client, "start() brings a server up")
    equal(client.url, "http://127.0.0.1:%d" % port, "at that port")
    equal(client.health(), {"status": "ok"}, "health")
    result = client.call("runshell", cmd="echo $0 hello")
    equal((result["stdout"], result["exit_code"]), ("/bin/sh hello\n", 0), "call returns the result")
    equal(sorted(row["name"] for row in client.discover()), ["download", "runshell", "upload"], "discover returns a list")
    equal(client.capabilities()["identity"]["id"], "admin", "the token went along")
    client.call("upload", path="a b/ü.txt", content="text")
    equal(client.call("download", path="a b/ü.txt")["content"], "text", "a file, up and down")
    equal(client.get("/files/stat", {"path": "a b/ü.txt"})["size"], 4, "get with a query")
    equal(client.get("/files/list", {"path": ".", "recursive": True})["entries"][1]["name"], "a b/ü.txt", "a boolean in a query")
    equal(client.post("/shell", {"command": "true"})["exit_code"], 0, "post")
    equal(client.delete("/files", query={"path": "a b"})["deleted"], True, "delete")
    equal(list(client.events("/shell/stream", {"command": "printf 'a\\nü'"})),
          [("stdout", {"data": "a"}), ("stdout", {"data": "ü"}), ("exit", {"exit_code": 0})], "the events of a stream")
    error = raises(FileNotFoundError, lambda: client.get("/download", {"path": "none"}), "none|not a file", "FileNotFoundError")
    ok(isinstance(error, SandboxError) and isinstance(error, errors.SandboxFileNotFoundError), "it is a SandboxError, too")
    equal((error.status, error.type), (404, "FileNotFoundError"), "status and type")
    ok(error.request_id, "the request's id")
    error = raises(PermissionError, lambda: client.get("/download", {"path": "/etc/passwd"}), ".", "PermissionError")
    equal((error.code, error.endpoint), ("path_not_allowed", "download"), "code and endpoint")
    error = raises(ValueError, lambda: client.get("/git/status"), "disabled", "ValueError")
    equal((error.code, error.rule), ("endpoint_disabled", "default:opt-in:dev_tools"), "the rule that decided")
    raises(errors.AuthError, lambda: Client(client.url, "wrong").discover(), "unauthorized", "AuthError")
    raises(ValueError, lambda: client.call("a/b"), "a/b|a%2Fb", "a name with a slash is one name")
    other = Client()
    other.start(port=port)
    ok(other._background is None, "a server that is there is used")
    other.close()
    equal(client.health()["status"], "ok", "and left alone")
    calls = [threading.Thread(target=lambda: results.append(client.call("runshell", cmd="echo x")["stdout"])) for _ in range(8)]
    results = []
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    equal(results, ["x\n"] * 8, "a client is for several threads")
    pid = client._background._process.pid
ok(not server.is_alive(pid), "the server ends with its client")
with Client("http://127.0.0.1:%d" % port) as client:
    error = raises(ConnectionError, client.health, "127.0.0.1", "ConnectionError")
    ok(isinstance(error, SandboxError), "which is a SandboxError, too")
    raises(TimeoutError, lambda: client.start(timeout=0.05), "does not answer", "start() of a server elsewhere waits, and gives up")
raises(ValueError, lambda: Client("ftp://x"), "address", "an address that is none")
os.environ["ABX_SERVER_ENABLED_GROUPS"] = "nonsense"
raises(RuntimeError, lambda: Client().start(port=port), "status 78: .*nonsense", "why a server does not start")
del os.environ["ABX_SERVER_ENABLED_GROUPS"]

# ---- the snippet, as it is but for the port

SNIPPET = '''
# Client side
from agent_sandbox import Sandbox

sandbox = await Sandbox.create(template="my-template")

# Start the in-container server (opt-in)
await sandbox.server.start(port=8080)

# Call a built-in command
result = await sandbox.server.call("runshell", cmd="ls -la /home/user")
# → POST https://8080-{sandbox_id}.{domain}/commands/runshell
# → Body: {"cmd": "ls -la /home/user"}
# ← {"result": {"stdout": "...", "stderr": "", "exit_code": 0}}

# Upload a file
await sandbox.server.call("upload", path="/home/user/script.py", content="print('hello')")

# Download a file
result = await sandbox.server.call("download", path="/home/user/output.txt")

# Discover all commands
commands = await sandbox.server.discover()
# → GET https://8080-{sandbox_id}.{domain}/commands
# ← [{"name": "upload", ...}, {"name": "download", ...}, {"name": "runshell", ...}]
'''
base = os.path.join(directory, "base")
with open(os.path.join(base, "output.txt"), "w") as file:
    file.write("output")
text = SNIPPET.replace("8080", str(server.free_port())).replace("/home/user", base)
scope = {}


async def run_snippet():
    await eval(compile(text, "snippet", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
    await scope["sandbox"].close()


asyncio.run(run_snippet())
equal(scope["result"]["content"], "output", "the snippet: download")
equal(sorted(row["name"] for row in scope["commands"]), ["download", "runshell", "upload"], "the snippet: the commands")
with open(os.path.join(base, "script.py")) as file:
    equal(file.read(), "print('hello')", "the snippet: upload")


async def awaited():
    async with AsyncClient() as client:
        await client.start(port=server.free_port())
        got = await asyncio.gather(*[client.call("runshell", cmd="echo %d" % i) for i in range(10)])
        equal([result["stdout"] for result in got], ["%d\n" % i for i in range(10)], "async calls at once")
        equal([event async for event in client.events("/shell/stream", {"command": "echo x"})],
              [("stdout", {"data": "x"}), ("exit", {"exit_code": 0})], "an async stream")
        try:
            await client.get("/nothing")
            ok(False, "an async error")
        except ValueError as error:
            matches(str(error), "Not found: /nothing", "an async error")


asyncio.run(awaited())

# ---- the end of a program ends the server that it started

code = "import sys; from agent_sandbox import Client; print(Client().start(port=int(sys.argv[1]))._background._process.pid)"
run = subprocess.run([sys.executable, "-c", code, str(port)], stdout=subprocess.PIPE, universal_newlines=True, check=True)
ok(not server.is_alive(int(run.stdout)), "a program that ends takes its server along")


# ---- answers that a real server gives seldom

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        self.seen.append((self.command, self.path, dict(self.headers), self.rfile.read(int(self.headers.get("Content-Length") or 0))))
        status, headers, body = self.server.answer
        self.send_response(status)
        for name, value in dict({"Content-Length": str(len(body))}, **headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, *_):
        pass


fake = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
fake.daemon_threads = True
threading.Thread(target=fake.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d" % fake.server_address[1]


def answering(status, body, headers=None):
    fake.answer = (status, headers or {}, body)


client = Client(url + "/prefix/", "t", headers={"X-Access-Token": "gate"})
answering(200, b'{"result": NaN}')
ok(client.call("näme", name="Ada", self=1, path=None) != 0, "a result that is NaN")
method, path, headers, body = Handler.seen[-1]
equal((method, path, body), ("POST", "/prefix/commands/n%C3%A4me", b'{"name": "Ada", "self": 1, "path": null}'), "the request of a call")
equal((headers["Authorization"], headers["X-Access-Token"]), ("Bearer t", "gate"), "our token, and the gateway's beside it")
answering(429, b'{"error": "slow", "type": "RateLimitError", "code": "rate_limited"}', {"Retry-After": "7"})
equal(raises(errors.RateLimitError, client.discover, "slow", "RateLimitError").retry_after, 7, "when to try again")
answering(500, b'{"error": "1/0", "type": "ZeroDivisionError"}')
error = raises(SandboxError, client.discover, "1/0", "what a command raised")
equal((type(error), error.type), (SandboxError, "ZeroDivisionError"), "is told by its type")
answering(404, b'{"error": {"message": "no agent", "type": "not_found_error", "param": null, "code": "x"}}')
error = raises(SandboxError, client.discover, "no agent", "the agents' envelope")
equal((error.type, error.code), ("not_found_error", "x"), "type and code of it")
answering(502, b"<html>")
error = raises(SandboxError, client.discover, "502", "an answer that is not ours")
answering(200, b"<html>")
raises(ConnectionError, client.discover, "not JSON", "a page in place of an answer")
answering(200, b"{", {"Content-Length": "5", "Connection": "close"})
raises(ConnectionError, client.discover, "broke off", "an answer that breaks off")
answering(200, b'{"commands": []}', {"Connection": "close"})
equal([client.discover(), client.discover()], [[], []], "connections that the server closes")
answering(200, b": c\r\n\r\nevent: a\r\ndata: 1\r\ndata:  x\r\n\r\ndata: {\"b\": null}\n\nevent: c\ndata: null\n\nevent: none\n\n")
equal(list(client.events("/x")), [("a", "1\n x"), ("message", {"b": None}), ("c", None)], "events")
client.close()
shutil.rmtree(directory, ignore_errors=True)
done()
