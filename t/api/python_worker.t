#!/usr/bin/env python3
# What a worker can do to the server: die, block, fork, print, return much; and its return.
import os
import re
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from server import Server, children_of, descendants_of, is_alive
from tap import done, equal, matches, ok, wait_for

CODE = '''
import faulthandler, os, subprocess, sys, threading, time
from agent_sandbox.server import SSEResponse, command, default_table, start
here = os.path.dirname(os.path.abspath(__file__))
if os.path.exists(os.path.join(here, "break")):
    exec(open(os.path.join(here, "break")).read())

@command()
def pid():
    return os.getpid()

@command()
def end(status: int = 9):
    os._exit(status)

@command()
def kill():
    faulthandler._sigsegv()

@command()
def leave():
    sys.exit("leaving")

@command()
def say():
    print("a line on standard output")
    os.write(1, b"and raw bytes\\n")
    sys.stdout.write("without end")
    sys.stdout.flush()

@command()
def fork():
    child = os.fork()
    if child == 0:
        return "child"
    return ["parent", os.waitpid(child, 0)[1]]

@command()
def big(n: int):
    return "x" * n

@command(timeout=0.2)
def block():
    while True:
        pass

@command()
def hold(path: str):
    open(path, "w").close()
    time.sleep(600)

@command()
def spawn():
    plain = subprocess.Popen(["sleep", "600"])
    lone = subprocess.Popen(["setsid", "sleep", "600"])
    return [plain.pid, lone.pid]

@default_table().route("GET", "/die", streaming=True)
def die(request):
    yield "event: one\\ndata: 1\\n\\n"
    os._exit(1)

start(0)
'''

server = Server(CODE)
first = server.worker()
equal(server.command("pid"), first, "the worker answers")
equal(len(children_of(server.process.pid)) > 5, True, "beside the responders")

# What stays within a call.
status, error = server.command("leave")
equal((status, error), (500, {"error": "leaving", "type": "SystemExit"}), "sys.exit() ends the function, not the worker")
equal(server.command("say"), None, "a function that prints")
ok(wait_for(lambda: "a line on standard output" in server.log_text() and "and raw bytes\n" in server.log_text()), "what it prints is in the log")
equal(len(server.out_text().splitlines()), 1, "standard output has the one line of the server")
equal(server.command("fork"), ["parent", 0], "a function that forks answers once")
equal(len(server.command("big", n=50000000)), 50000000, "50 MB")
status, error = server.command("block")
equal((status, error["type"]), (500, "TimeoutError"), "a function that never gives up the processor")
matches(error["error"], "worker was still running it", "and where it was")
equal(server.command("pid"), first, "the same worker serves on")

# Deaths.
answer = server.post("/commands/end", {})
equal((answer.status, answer.json["type"]), (500, "RuntimeError"), "a function that ends the process")
matches(answer.json["error"], "worker .*ended during this call", "the caller is told")
second = server.command("pid")
ok(second != first, "the next call is served by a new worker")
answer = server.post("/commands/kill", {})
equal((answer.status, answer.json.get("type")), (500, "RuntimeError"), "a function that crashes")
held = os.path.join(server.dir, "held")
answers = []
thread = threading.Thread(target=lambda: answers.append(server.post("/commands/hold", {"path": held})))
pid = server.command("pid")
thread.start()
wait_for(lambda: os.path.exists(held))
os.kill(pid, signal.SIGKILL)
thread.join()
matches(answers[0].json["error"], "ended during this call", "kill -9 while a call runs")
ok(server.command("pid") != pid, "and its return")
with open("/proc/%d/environ" % server.command("pid")) as file:
    ok("ABX_" not in file.read(), "with an environment as clean")
sock = server.stream("/die")
text = server.read_until(sock, b"never")
sock.close()
ok(b"data: 1\n\n" in text and not text.endswith(b"0\r\n\r\n"), "a death in a stream: the stream breaks off, it does not end")
plain, lone = server.command("spawn")
pid = server.command("pid")
os.kill(pid, signal.SIGKILL)
ok(wait_for(lambda: not is_alive(plain) and not is_alive(lone)), "what it has started goes with it, also what made itself a session of its own")
equal(server.get("/shell").status, 405, "the other groups never noticed")

# Calls that come while there is none wait for it.
results = []
pid = server.command("pid")
os.kill(pid, signal.SIGKILL)
threads = [threading.Thread(target=lambda: results.append(server.command("pid"))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ok(len(results) == 8 and all(isinstance(found, int) and found != pid for found in results), "calls during a restart are served after it")

# A worker that does not come back.
warnings = lambda: server.get("/capabilities").json["warnings"]
equal(warnings(), [], "no warnings so far")
server.write("break", "import no_such_module")
os.kill(server.command("pid"), signal.SIGKILL)
ok(wait_for(lambda: any("No module named 'no_such_module'" in warning for warning in warnings())), "an import error is in the warnings")
ok("No module named 'no_such_module'" in server.log_text(), "and in the log")
answer = server.post("/commands/pid", {})
equal((answer.status, answer.json["type"]), (503, "RuntimeError"), "a call is not kept waiting for ever")
matches(answer.json["error"], "no_such_module", "and says why")
equal(server.post("/commands/runshell", {"cmd": "true"}).json["result"]["exit_code"], 0, "built-in commands go on")
server.write("break", "command('extra')(lambda: 1)")
ok(wait_for(lambda: any("other commands" in warning for warning in warnings())), "a worker with another table is refused")
os.unlink(os.path.join(server.dir, "break"))
ok(wait_for(lambda: isinstance(server.command("pid"), int)), "once it is mended it serves")
ok(wait_for(lambda: warnings() == []), "and the warning goes")

# The end of everything.
server.command("spawn")
thread = threading.Thread(target=lambda: server.post("/commands/hold", {"path": held + "2"}))
thread.start()
wait_for(lambda: os.path.exists(held + "2"))
family = descendants_of(server.process.pid)
ok(server.worker() in family, "(the family)")
begin = time.monotonic()
server.process.send_signal(signal.SIGTERM)
server.process.wait(60)
took = time.monotonic() - begin
equal(server.process.returncode, 0, "SIGTERM ends the server")
ok(took < 20, "while a function runs that never would")
print("# it took %.1f s" % took)
ok(wait_for(lambda: not [pid for pid in family if is_alive(pid)]), "nothing is left")
thread.join()
server.stop()
done()
