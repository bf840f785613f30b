#!/usr/bin/env python3
# Commands of a template in its worker: arguments, results, exceptions, state, threads, async functions.
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import Peer
from tap import done, equal, matches, ok, wait_for

CODE = '''
from __future__ import annotations
import asyncio, datetime, os, sys, threading, time
from typing import Optional
from agent_sandbox.server import CommandArg, command, start

calls = 0

@command("hello", description="Say hello.")
def hello(name: str = "World") -> str:
    return f"Hello, {name}!"

@command(hidden=True)
def _debug_info() -> dict:
    return {"ok": True}

@command
def types(i: int, f: float = 0.5, b: bool = False, s="x", o: Optional[int] = None, n: "int | None" = None, l: list = None):
    return [[type(v).__name__, v] for v in (i, f, b, s, o, n, l)]

@command(args=[CommandArg("a", "integer", default=7, description="A number."), CommandArg("b", required=False)])
def given(a, b="function's own"):
    return [a, b]

@command()
def rest(i: int, **more):
    return [i, more]

@command()
def only(i: int, /, j: int = 2, *, k: int = 3):
    return [i, j, k]

@command()
def count():
    global calls
    calls += 1
    return calls

@command()
def odd(what: str):
    return {"nan": float("nan"), "inf": float("-inf"), "big": 10 ** 40, "date": datetime.date(2026, 1, 2), "set": {1},
            "keys": {1: "a", None: "b", True: "c", (1, 2): "d"}, "surrogate": "\\ud800", "text": "Grüße \\U0001f600", "none": None}[what]

@command()
def fail(how: str):
    if how == "key":
        raise KeyError("k")
    if how == "empty":
        raise ZeroDivisionError
    if how == "exit":
        sys.exit(3)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "circle":
        a = []
        a.append(a)
        return a
    if how == "deep":
        return fail("deep")
    if how == "mean":
        class Mean(Exception):
            def __str__(self):
                raise RuntimeError
        raise Mean
    if how == "long":
        raise ValueError("\\ud800" + "x" * 2000000)
    raise ValueError("no " + how)

gate = threading.Barrier(40)

@command()
def together():
    return gate.wait(20) >= 0

@command()
async def slow(seconds: float = 0):
    await asyncio.sleep(seconds)
    return threading.current_thread().name

@command()
async def afail():
    raise LookupError("async")

@command()
async def atwist(how: str):
    loop = asyncio.get_running_loop()
    if how == "exit":
        sys.exit(3)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "stop":
        loop.stop()
    if how == "callback":
        loop.call_soon(sys.exit, 3)
    if how == "task":
        task = asyncio.ensure_future(atwist("exit"))
        await asyncio.wait([task])
        return type(task.exception()).__name__
    await asyncio.sleep(0)
    return how

lock = None

@command()
async def meet():
    global lock
    lock = lock or asyncio.Event()
    lock.set()
    return "met"

@command()
async def cancelled(path: str):
    try:
        open(path + "-began", "w").close()
        await asyncio.sleep(60)
    finally:
        open(path, "w").close()

start(9000)
'''

peer = Peer(CODE)
rows = {row["name"]: row for row in peer.table["commands"]}
equal([row["name"] for row in peer.table["commands"]], sorted(rows), "the table is sorted by name")
equal(rows["hello"], {"name": "hello", "description": "Say hello.", "hidden": False, "scopes": [], "timeout": None, "args": [
    {"name": "name", "type": "string", "required": False, "default": "World", "description": ""}]}, "the row of hello")
ok(rows["_debug_info"]["hidden"], "a hidden command is marked")
equal([(arg["name"], arg["type"], arg["required"], arg["default"]) for arg in rows["types"]["args"]],
      [("i", "integer", True, None), ("f", "float", False, 0.5), ("b", "boolean", False, False), ("s", "string", False, "x"),
       ("o", "integer", False, None), ("n", "integer", False, None), ("l", "string", False, None)], "types from annotations that are texts")
equal(rows["given"]["args"], [
    {"name": "a", "type": "integer", "required": False, "default": 7, "description": "A number."},
    {"name": "b", "type": "string", "required": False, "default": None, "description": ""}], "a list of arguments that was given")
equal([arg["name"] for arg in rows["rest"]["args"]], ["i"], "**more is no argument")

equal(peer.command("hello", {"name": "Ada"}), ("R", "Hello, Ada!"), "a command")
equal(peer.command("hello"), ("R", "Hello, World!"), "a default")
equal(peer.command("hello", b""), ("R", "Hello, World!"), "an empty body")
equal(peer.command("hello", {"name": "Ada", "other": 1}), ("R", "Hello, Ada!"), "an unknown argument is dropped")
equal(peer.command("_debug_info"), ("R", {"ok": True}), "a hidden command runs")
equal(peer.command("nothing"), ("F", {"status": 404, "error": "Unknown command: nothing", "type": "ValueError"}), "an unknown command")

call = peer.begin("hello")
equal(call.frame(), ("R", b'"Hello, World!"'), "an answer")
peer.ask(call, "hello", {"name": "Ada"})
equal(call.frame(), ("R", b'"Hello, Ada!"'), "and another one on the same connection")
equal(call.rest(), None, "and nothing else")

equal(peer.command("types", {"i": "5", "f": "1e3", "b": "YES", "s": 5, "o": 7.9, "n": True, "l": [1, {"a": None}]}),
      ("R", [["int", 5], ["float", 1000.0], ["bool", True], ["str", "5"], ["int", 7], ["int", 1], ["str", "[1, {'a': None}]"]]), "coercion")
equal(peer.command("types", {"i": None, "b": 0, "s": None}),
      ("R", [["NoneType", None], ["float", 0.5], ["bool", False], ["NoneType", None], ["NoneType", None], ["NoneType", None], ["NoneType", None]]),
      "a null goes to the function as it is")
for body in ({}, {"i": "5.7"}, {"i": [1]}, {"i": 1, "b": "maybe"}, {"i": 1, "b": 2}, {"i": 1, "f": "x"}, {"i": 1, "f": {}}):
    kind, failure = peer.command("types", body)
    equal((kind, failure["status"], failure["type"]), ("F", 400, "ValueError"), "refused: %s" % body)
matches(peer.command("types", {})[1]["error"], "'i'", "what is missing is named")
matches(peer.command("types", {"i": "x" * 500})[1]["error"], "\\A.{,120}\\Z", "a long value is not sent back")

equal(peer.command("given"), ("R", [7, "function's own"]), "defaults: the registered one, else the function's own")
equal(peer.command("given", {"a": "8", "b": None}), ("R", [8, None]), "given values")
equal(peer.command("rest", {"i": "1", "j": [2], "k": None}), ("R", [1, {"j": [2], "k": None}]), "unknown fields go to **more")
equal(peer.command("only", {"i": "1", "j": "4", "k": "5"}), ("R", [1, 4, 5]), "positional-only and keyword-only parameters")
equal([peer.command("count")[1] for _ in range(3)], [1, 2, 3], "state in globals lives")

for what, expected in (("nan", b"NaN"), ("inf", b"-Infinity"), ("big", b"1" + b"0" * 40), ("date", b'"2026-01-02"'), ("set", b'"{1}"'),
                       ("surrogate", b'"\\ud800"'), ("none", b"null")):
    call = peer.begin("odd", {"what": what})
    equal(call.frame(), ("R", expected), "a result: " + what)
equal(peer.command("odd", {"what": "keys"}), ("R", {"1": "c", "null": "b", "(1, 2)": "d"}), "keys that JSON has not")
equal(peer.command("odd", {"what": "text"}), ("R", "Grüße \U0001f600"), "text")

for how, kind, message in (("key", "KeyError", "'k'"), ("empty", "ZeroDivisionError", "ZeroDivisionError"), ("exit", "SystemExit", "3"),
                           ("interrupt", "KeyboardInterrupt", "KeyboardInterrupt"), ("mean", "Mean", "Mean"), ("way", "ValueError", "no way")):
    equal(peer.command("fail", {"how": how}), ("F", {"status": 500, "error": message, "type": kind}), "raises " + kind)
kind, failure = peer.command("fail", {"how": "long"})
equal((failure["error"][:2], len(failure["error"]) < 70000), ("\ufffdx", True), "a message of two million characters")
equal(peer.command("fail", {"how": "circle"})[1]["type"], "ValueError", "a result that contains itself")
equal(peer.command("fail", {"how": "deep"})[1]["type"], "RecursionError", "endless recursion")
equal(peer.command("afail"), ("F", {"status": 500, "error": "async", "type": "LookupError"}), "an async function raises")
for how, answer in (("exit", ["F", "SystemExit"]), ("interrupt", ["F", "KeyboardInterrupt"]), ("stop", ["R", "stop"]),
                    ("callback", ["R", "callback"]), ("task", ["R", "SystemExit"])):
    kind, what = peer.command("atwist", {"how": how})
    equal([kind, what["type"] if kind == "F" else what], answer, "what ends an event loop does not end the one of all calls: " + how)
    equal(peer.command("slow"), ("R", "abx-loop"), "it goes on")
matches(peer.log_text(), "command fail raised KeyError \\(request r1\\)\nTraceback.*in fail", "the traceback is in the log")

calls = [peer.begin("together") for _ in range(40)]
equal([call.answer() for call in calls], [("R", True)] * 40, "40 functions that wait for each other")
slow = [peer.begin("slow", {"seconds": 0.5}) for _ in range(20)]
equal(peer.command("meet"), ("R", "met"), "an async function while others wait")
equal({tuple(call.answer()) for call in slow}, {("R", "abx-loop")}, "all on one loop")

gone = os.path.join(peer.dir, "cancelled")
call = peer.begin("cancelled", {"path": gone})
ok(wait_for(lambda: os.path.exists(gone + "-began")), "(it has begun)")
call.close()
ok(wait_for(lambda: os.path.exists(gone)), "an async function is cancelled when nobody waits for it")
equal(peer.command("hello"), ("R", "Hello, World!"), "and the worker goes on")
peer.stop()
done()
