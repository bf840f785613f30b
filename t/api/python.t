#!/usr/bin/env python3
# A template's commands.py as a server: its commands and routes over HTTP, beside the built-in ones, under a policy.
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from server import Server
from tap import done, equal, matches, ok, wait_for

# ---- the snippets, as they are but for the port

COMMANDS = '''
from agent_sandbox.server import command, start

@command("hello", description="Say hello.")
def hello(name: str = "World") -> str:
    return f"Hello, {name}!"

@command(hidden=True)
def _debug_info() -> dict:
    return {"ok": True}

start(9000)
'''

ROUTES = '''
from agent_sandbox.server import CapabilityGroup, ServerResponse, default_table

table = default_table()

@table.route("GET", "/hello/{name}", group=CapabilityGroup.COMMANDS)
def hello_route(request: object) -> ServerResponse:
    name = getattr(request, "path_params", {}).get("name", "World")
    return ServerResponse.ok({"greeting": f"Hello, {name}!"})
'''

with Server(ROUTES + COMMANDS.replace("9000", "0")) as server:
    equal(server.command("hello", name="Ada"), "Hello, Ada!", "POST /commands/hello")
    equal(server.command("hello"), "Hello, World!", "a default")
    equal(server.command("_debug_info"), {"ok": True}, "a hidden command runs")
    rows = server.get("/commands").json["commands"]
    equal([row["name"] for row in rows if row["name"] not in ("upload", "download", "runshell")], ["hello"], "and is not listed")
    equal([row for row in rows if row["name"] == "hello"], [{"name": "hello", "description": "Say hello.", "args": [
        {"name": "name", "type": "string", "required": False, "default": "World", "description": ""}]}], "what GET /commands says of hello")
    equal(server.get("/hello/Ada").json, {"greeting": "Hello, Ada!"}, "GET /hello/Ada")
    equal(server.get("/hello/Ada/").json, {"greeting": "Hello, Ada!"}, "with a slash at the end")
    equal(server.get("/hello/%C3%84%20da").json, {"greeting": "Hello, Ä da!"}, "a parameter that is percent-encoded")
    found = server.get("/capabilities").json
    row = found["endpoints"]["GET /hello/{name}"]
    equal([row[key] for key in ("method", "path", "group", "enabled", "allowed", "streaming")],
          ["GET", "/hello/{name}", "commands", True, True, False], "the route in /capabilities")
    equal(found["group_summary"]["commands"], {"enabled": 3, "total": 3}, "it counts in its group")
    equal(found["warnings"], [], "no warnings")
    answer = server.post("/hello/Ada", {})
    equal((answer.status, answer.headers["Allow"]), (405, "GET"), "another method")
    equal(server.command("runshell", cmd="echo $((6*7))")["stdout"], "42\n", "the built-in commands are there")
    equal(server.get("/health").json, {"status": "ok"}, "and the rest of the server")

# ---- more of everything

CODE = '''
import asyncio, os, threading, time
from agent_sandbox.server import CapabilityGroup, CommandArg, ServerResponse, SSEResponse, command, default_table, start
table = default_table()
table.enable_group(CapabilityGroup.DEV_TOOLS)
table.disable_group(CapabilityGroup.TERMINAL)
here = os.path.dirname(os.path.abspath(__file__))
count = 0

@command()
def add(a: int, b: int = 2):
    return a + b

@command()
def counted():
    global count
    count += 1
    return count

@command()
def anything(**fields):
    return fields

@command(scopes=("ops:run",))
def guarded():
    return "in"

@command(timeout=0.3)
def quick():
    time.sleep(20)

@command()
def fail(how: str = "x"):
    raise LookupError("nothing of " + how)

@command()
async def rest():
    await asyncio.sleep(0.2)
    return "rested"

@command()
def odd():
    return {"nan": float("nan"), "set": {1}}

barrier = threading.Barrier(20)

@command()
def meet():
    barrier.wait(30)
    return True

@table.route("GET", "/files/mine", group="file_ops", summary="Mine.")
def mine(request):
    return {"mine": True}

@table.route("POST", "/files/{name}/echo", group="file_ops")
def echo(request):
    return {"params": request.path_params, "query": request.query, "body": request.body, "agent": request.headers["user-agent"],
            "token": request.headers.get("authorization"), "who": request.identity and request.identity.id,
            "scopes": request.identity and list(request.identity.scopes), "id": request.request_id, "path": request.path,
            "method": request.method, "remote": request.remote}

@table.route("DELETE", "/things/{id}")
def remove(request):
    return ServerResponse.error(404, "no thing " + request.path_params["id"], type="FileNotFoundError")

@table.route("GET", "/open", auth_required=False)
def open_route(request):
    return {"open": True, "who": request.identity}

@table.route("GET", "/limited", name="limited")
def limited(request):
    return ServerResponse.ok({}, headers={"X-Mine": "1"})

@table.route("GET", "/off")
def off(request):
    return {}

@table.route("GET", "/need", scopes=["ops:run"])
def need(request):
    return {}

@table.route("GET", "/big")
def big(request):
    return {"big": "x" * 20000000}

@table.route("GET", "/ticks", streaming=True)
def ticks(request):
    def go():
        try:
            for i in range(int(request.query.get("n", "1000000"))):
                yield "event: tick\\ndata: %d\\n\\n" % i
                time.sleep(0.01)
            if "fail" in request.query:
                raise LookupError("half way")
        finally:
            open(os.path.join(here, "closed"), "w").close()
    return SSEResponse(event_iterator=go())

start(0)
'''
TEMPLATE = '''
name: test
server:
  version: 1
  endpoints:
    limited: {limits: {rate: 2/h}}
    "GET /off": {enabled: false}
  identities:
    - {id: ci, token_env: CI_TOKEN, scopes: []}
'''
server = Server(CODE, files=[("template.yaml", TEMPLATE)], token="secret-token", env={"CI_TOKEN": "ci-token"})
ci = {"headers": {"X-Access-Token": "ci-token"}, "token": False}

equal(server.command("add", a="40"), 42, "coercion")
answer = server.post("/commands/add", {"a": "x"})
equal((answer.status, answer.json["type"]), (400, "ValueError"), "an argument that is none")
answer = server.post("/commands/add", {})
equal((answer.status, answer.json["type"]), (400, "ValueError"), "an argument that is missing")
equal([server.command("counted") for _ in range(3)], [1, 2, 3], "state lives from call to call")
equal(server.command("anything", a=None, b=[1, {"c": 2}]), {"a": None, "b": [1, {"c": 2}]}, "unknown fields reach **fields, null too")
answer = server.post("/commands/fail", {"how": "it"})
equal((answer.status, answer.json), (500, {"error": "nothing of it", "type": "LookupError"}), "an exception is a 500 with its class")
matches(server.log_text(), "command fail raised LookupError \\(request %s\\)" % answer.headers["X-Request-Id"], "its traceback is in the log, with the request's id")
matches(server.post("/commands/odd", {}).content.decode(), r'\A\{"result": \{"nan": NaN, "set": "\{1\}"\}\}\Z', "results as Python writes them")
equal(server.command("rest"), "rested", "an async function")
results = []
threads = [threading.Thread(target=lambda: results.append(server.command("meet"))) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
equal(results, [True] * 20, "20 functions at once")
answer = server.post("/commands/quick", {})
equal((answer.status, answer.json["type"]), (500, "TimeoutError"), "a command's timeout")
equal(server.command("add", a=1), 3, "and others are served meanwhile")
equal(server.command("guarded"), "in", "scopes: the admin may")
answer = server.post("/commands/guarded", {}, **ci)
equal((answer.status, answer.json.get("code")), (403, "missing_scope"), "scopes: another may not")
ok("guarded" not in [row["name"] for row in server.get("/commands", **ci).json["commands"]], "nor does it see the command")

# Routes.
equal(server.get("/files/mine").json, {"mine": True}, "a route below another group's prefix")
equal(server.get("/files/list?path=.").status, 200, "whose own endpoints go on")
answer = server.post("/files/a%20b/echo?q=%C3%BC&x=", {"k": [1]}, headers={"User-Agent": "me", "X-Request-Id": "abc-1"})
equal(answer.json, {"params": {"name": "a b"}, "query": {"q": "ü", "x": ""}, "body": {"k": [1]}, "agent": "me", "token": None, "who": "admin",
                    "scopes": ["*"], "id": "abc-1", "path": answer.json["path"], "method": "POST", "remote": "127.0.0.1"}, "what a handler is given")
answer = server.request("DELETE", "/things/7")
equal((answer.status, answer.json), (404, {"error": "no thing 7", "type": "FileNotFoundError"}), "an error that a handler returns")
equal(server.get("/open", token=False).json, {"open": True, "who": None}, "a route without credentials")
equal(server.get("/files/mine", token=False).status, 401, "the others ask for them")
equal(server.get("/need", **ci).status, 403, "scopes of a route")
answer = server.get("/limited")
equal((answer.status, answer.headers["X-Mine"], answer.headers["Content-Type"]), (200, "1", "application/json; charset=utf-8"), "headers of an answer")
equal([server.get("/limited").status for _ in range(2)], [200, 429], "a rate on a route")
answer = server.get("/off")
equal((answer.status, answer.json.get("code"), answer.json.get("rule")), (404, "endpoint_disabled", "policy:endpoints.GET /off"), "a route that the policy turns off")
equal(len(server.get("/big").json["big"]), 20000000, "a large answer")
found = server.get("/capabilities").json
equal([found["groups"]["dev_tools"], found["groups"]["terminal"]], [True, False], "groups that the code turns on and off")
answer = server.get("/pty/sessions")
equal((answer.status, answer.json.get("rule")), (404, "code:commands.py"), "the code's rule")
equal(found["group_summary"]["file_ops"]["total"], 14, "routes count in their group")
check = server.post("/capabilities/check", {"endpoint": "GET /off"}).json
equal((check["allowed"], check["code"]), (False, "endpoint_disabled"), "/capabilities/check knows routes")

# Streams.
sock = server.stream("/ticks?n=2")
text = server.read_until(sock, b"\r\n0\r\n\r\n").decode()
sock.close()
matches(text, r"\AHTTP/1.1 200 .*text/event-stream.*event: tick\ndata: 0\n\n.*event: tick\ndata: 1\n\n", "a stream")
os.unlink(os.path.join(server.dir, "closed"))
sock = server.stream("/ticks")
ok(b"data: 2\n" in server.read_until(sock, b"data: 2\n"), "(an endless stream)")
sock.close()
ok(wait_for(lambda: os.path.exists(os.path.join(server.dir, "closed"))), "its generator is closed when the client has gone")
sock = server.stream("/ticks?n=1&fail=1")
matches(server.read_until(sock, b"\r\n0\r\n\r\n").decode(), r'event: error\ndata: {"error": "half way", "type": "LookupError"}\n\n', "an exception in a stream")
sock.close()

# No token anywhere near the worker.
with open("/proc/%d/environ" % server.worker()) as file:
    environ = file.read()
ok("secret-token" not in environ and "ci-token" not in environ and "PATH=" in environ, "no token in the worker's environment")
answer = server.stop()
equal(answer, 0, "the server ends")
done()
