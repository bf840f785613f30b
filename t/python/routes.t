#!/usr/bin/env python3
# Handlers of custom routes in the worker: what they are given, what they may return, streams and their ends.
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import Peer
from tap import done, equal, matches, ok, wait_for

CODE = '''
import asyncio, os, time
from agent_sandbox.server import ServerResponse, SSEResponse, default_table, start
table = default_table()

@table.route("POST", "/see/{name}")
def see(request):
    """What a handler sees.

    And more."""
    who = request.identity
    return ServerResponse.ok({
        "method": request.method, "path": request.path, "params": request.path_params, "query": request.query, "body": request.body,
        "agent": request.headers["user-AGENT"], "none": request.headers.get("x-none"), "has": "X-One" in request.headers,
        "one": request.headers["x-one"], "names": list(request.headers), "who": who and [who.id, list(who.scopes)],
        "id": request.request_id, "remote": request.remote})

@table.route("GET", "/answer")
def answer(request):
    which = request.query["which"]
    if which == "dict":
        return {"plain": True}
    if which == "none":
        return None
    if which == "error":
        return ServerResponse.error(418, "a teapot", type="TeapotError")
    if which == "default":
        return ServerResponse.error(404, "not there")
    if which == "headers":
        return ServerResponse.ok({"a": 1}, status=201, headers={"X-Mine": "ü"})
    if which == "inject":
        return ServerResponse.ok({}, headers={"X-Mine": "a\\r\\nSet-Cookie: b"})
    if which == "bytes":
        return ServerResponse(body=b"\\0\\xff")
    if which == "html":
        return ServerResponse(body="<p>ü", headers={"content-type": "text/html"})
    if which == "big":
        return {"big": "x" * 50000000}
    if which == "odd":
        return {"set": {1}}
    raise KeyError(which)

@table.route("GET", "/async")
async def later(request):
    await asyncio.sleep(0)
    return {"async": True}

kept = []

def note(path, text):
    with open(path, "a") as file:
        file.write(text + "\\n")

@table.route("GET", "/events", streaming=True)
def events(request):
    def go():
        try:
            for i in range(int(request.query["n"])):
                yield "event: tick\\ndata: %d\\n\\n" % i
                while request.query.get("wait") and not os.path.exists(request.query["wait"]):
                    time.sleep(0.01)
            if request.query.get("fail"):
                raise LookupError("half way")
            if request.query.get("odd"):
                yield 5
        finally:
            if request.query.get("note"):
                note(request.query["note"], "closed")
    kept.append(go())
    return SSEResponse(event_iterator=kept[-1])

@table.route("GET", "/generator", streaming=True)
def generator(request):
    yield SSEResponse.event("one", {"a": "ü"})

@table.route("GET", "/aevents", streaming=True)
async def aevents(request):
    async def go():
        try:
            for i in range(int(request.query["n"])):
                yield "event: tick\\ndata: %d\\n\\n" % i
                await asyncio.sleep(60 if request.query.get("note") else 0)
        finally:
            if request.query.get("note"):
                note(request.query["note"], "closed")
    return SSEResponse(event_iterator=go())

@table.route("GET", "/list", streaming=True)
def a_list(request):
    return SSEResponse(event_iterator=["data: 1\\n\\n", "data: 2\\n\\n"])

@table.route("GET", "/early", streaming=True)
def early(request):
    raise LookupError("before the stream")

start(9000)
'''

peer = Peer(CODE)
route = {row["id"]: row for row in peer.table["routes"]}["POST /see/{name}"]
equal(route["summary"], "What a handler sees.", "the summary is the docstring's first line")

head, body = peer.route("POST /see/{name}", b'{"x": [1]}', path="/see/a b", path_params={"name": "a b"},
                        query=[["q", "1"], ["l[]", "1"], ["l[]", "2"]], identity={"id": "ci", "scopes": ["a"]},
                        headers=[["User-Agent", "test"], ["X-One", "1"], ["x-one", "2"]])
equal(head, {"status": 200, "headers": [["Content-Type", "application/json; charset=utf-8"]], "stream": False, "length": len(body)}, "the head")
equal(json.loads(body), {
    "method": "POST", "path": "/see/a b", "params": {"name": "a b"}, "query": {"q": "1", "l[]": ["1", "2"]}, "body": {"x": [1]},
    "agent": "test", "none": None, "has": True, "one": "1, 2", "names": ["User-Agent", "X-One"], "who": ["ci", ["a"]], "id": "r2",
    "remote": "127.0.0.1"}, "what a handler sees")
head, body = peer.route("POST /see/{name}", headers=[["User-Agent", "t"], ["X-One", ""]])
equal([json.loads(body)[key] for key in ("who", "body")], [None, {}], "without credentials and body")


def get(which):
    return peer.route("GET /answer", query=[["which", which]])


equal(get("dict")[1], b'{"plain": true}', "a dict")
equal(get("none")[1], b"{}", "nothing")
equal(get("odd")[1], b'{"set": "{1}"}', "what JSON has not is a text")
head, body = get("error")
equal((head["status"], json.loads(body)), (418, {"error": "a teapot", "type": "TeapotError"}), "an error")
equal(json.loads(get("default")[1]), {"error": "not there", "type": "ValueError"}, "an error's type")
head, body = get("headers")
equal((head["status"], head["headers"][0]), (201, ["X-Mine", "ü"]), "status and headers")
equal(get("inject")[1]["status"], 500, "a line break in a header is refused")
head, body = get("bytes")
equal((head["headers"], body), ([["Content-Type", "application/octet-stream"]], b"\0\xff"), "bytes")
head, body = get("html")
equal((head["headers"], body), ([["content-type", "text/html"]], "<p>ü".encode()), "a text of another type")
head, body = get("big")
equal((head["length"], len(body)), (50000011, 50000011), "50 MB")
equal(get("missing"), ("F", {"status": 500, "error": "'missing'", "type": "KeyError"}), "an exception")
equal(peer.route("GET /async")[1], b'{"async": true}', "an async handler")
equal(peer.route("GET /nothing")[1]["status"], 404, "a route that is not there")

head, body = peer.route("GET /events", query=[["n", "3"]])
equal(head, {"status": 200, "headers": [], "stream": True, "length": None}, "the head of a stream")
equal(body, b"".join(b"event: tick\ndata: %d\n\n" % i for i in range(3)), "its events")
call = peer.begin_route("GET /events", query=[["n", "2"]])
equal([call.frame()[0] for _ in range(4)] + [call.rest()], ["H", "D", "D", "Z", None], "each event is a frame")
equal(peer.route("GET /generator")[1], b'event: one\ndata: {"a": "\\u00fc"}\n\n', "a handler that is a generator itself")
equal(peer.route("GET /list")[1], b"data: 1\n\ndata: 2\n\n", "a list of events")
equal(peer.route("GET /aevents", query=[["n", "2"]])[1], b"event: tick\ndata: 0\n\nevent: tick\ndata: 1\n\n", "an async generator")
equal(peer.route("GET /early"), ("F", {"status": 500, "error": "before the stream", "type": "LookupError"}), "an exception before the stream")
body = peer.route("GET /events", query=[["n", "1"], ["fail", "1"]])[1]
equal(body, b'event: tick\ndata: 0\n\nevent: error\ndata: {"error": "half way", "type": "LookupError"}\n\n', "an exception in the stream")
matches(peer.log_text(), "stream GET /events raised LookupError .request r2", "is in the log, too")
matches(peer.route("GET /events", query=[["n", "0"], ["odd", "1"]])[1].decode(), "TypeError", "what is no text is refused")


def noted(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


for name in ("events", "aevents"):
    path, go = os.path.join(peer.dir, "note-" + name), os.path.join(peer.dir, "go-" + name)
    call = peer.begin_route("GET /" + name, query=[["n", "1000000"], ["note", path], ["wait", go]])
    equal([call.frame()[0] for _ in range(2)], ["H", "D"], name + ": (it streams)")
    call.close()
    open(go, "w").close()
    ok(wait_for(lambda: noted(path)), name + ": the generator is closed when the client has gone")
    equal(noted(path), "closed\n", name + ": once")
equal(get("dict")[1], b'{"plain": true}', "the worker serves on")
peer.stop()
done()
