#!/usr/bin/env python3
# What functions can do to their worker: large values, forks, exits, many calls at once, time-outs for all sockets.
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import Peer
from tap import done, equal, ok, wait_for

CODE = '''
import asyncio, atexit, multiprocessing, os, socket, sys, threading, time
from agent_sandbox.server import SSEResponse, command, default_table, start
socket.setdefaulttimeout(0.2)
here = os.path.dirname(os.path.abspath(__file__))
atexit.register(lambda: open(os.path.join(here, "atexit"), "a").close())

@command()
def fork(how: str = "return"):
    pid = os.fork()
    if pid == 0:
        if how == "raise":
            raise ValueError("the child")
        if how == "stay":
            links = ["/proc/self/fd/" + n for n in os.listdir("/proc/self/fd")]
            with open(os.path.join(here, "fds.tmp"), "w") as file:
                file.write(" ".join(os.readlink(link) for link in links if os.path.lexists(link)))
            os.rename(os.path.join(here, "fds.tmp"), os.path.join(here, "fds"))
            time.sleep(60)
        return "child"
    if how != "stay":
        return ["parent", os.waitpid(pid, 0)[1]]
    return pid

@command()
async def afork():
    pid = os.fork()
    if pid == 0:
        return "child"
    return ["parent", await asyncio.to_thread(os.waitpid, pid, 0)]

@default_table().route("GET", "/fork", streaming=True)
def fork_stream(request):
    pid = os.fork()
    yield "data: %s\\n\\n" % ("parent" if pid else "child")
    if pid:
        os.waitpid(pid, 0)

@command()
def pool():
    with multiprocessing.get_context("fork").Pool(2) as p:
        return p.map(abs, [-1, -2])

def square(n):
    return n * n

@command()
def spawned():
    with multiprocessing.get_context("spawn").Pool(1) as p:
        return p.apply_async(square, (3,)).get(20)

@command()
def big(n: int):
    return "x" * n

@command()
def size(text: str):
    return len(text)

@command()
def end():
    os._exit(9)

@command()
def close():
    sys.stderr.close()
    sys.stdout.close()
    return 1

@command()
def raising():
    raise ValueError("unheard")

waiting = 0
go = threading.Event()

@command()
def wait():
    global waiting
    waiting += 1
    go.wait(60)
    return waiting

@command()
async def look():
    return waiting

@command()
def release():
    go.set()

@command()
def sleepy(seconds: float):
    time.sleep(seconds)
    return seconds

if __name__ == "__main__":
    start(9000)
'''

peer = Peer(CODE)
for how in ("return", "raise"):
    call = peer.begin("fork", {"how": how})
    equal([call.frame(), call.rest()], [("R", b'["parent", 0]'), None], "a fork whose child does not leave: " + how)
ok(not os.path.exists(os.path.join(peer.dir, "atexit")) and "cannot be received" not in peer.log_text(),
   "and its child neither goes through the template's own end nor on to serve")
call = peer.begin("fork", {"how": "stay"})
kind, child = call.answer()
equal(call.rest(), None, "a child that stays does not hold the call's socket")
ok(wait_for(lambda: os.path.exists(os.path.join(peer.dir, "fds"))), "(the child has looked)")
with open(os.path.join(peer.dir, "fds")) as file:
    ok("socket:" not in file.read(), "nor any other of the worker's sockets")
os.kill(child, signal.SIGKILL)
if sys.version_info >= (3, 9):
    equal(peer.command("afork")[1][0], "parent", "a fork in an async function")
equal(peer.route("GET /fork")[1], b"data: parent\n\n", "a fork in a stream")
equal(peer.command("spawned"), ("R", 9), "also of those that import the script again")
equal(peer.command("pool"), ("R", [1, 2]), "processes of multiprocessing")

call = peer.begin("big", {"n": 50000000})
kind, text = call.frame()
equal((kind, len(text), text[:2], text[-2:]), ("R", 50000002, b'"x', b'x"'), "a result of 50 MB")
equal(peer.command("size", {"text": "y" * 9000000}), ("R", 9000000), "a body of 9 MB")
call = peer.begin("big", {"n": 50000000})
call.socket.recv(1)
call.close()
equal(peer.command("size", {"text": "abc"}), ("R", 3), "a caller that leaves during the answer")
call = peer.begin("size", {"text": "abc"}, pause=0.5)
equal(call.answer(), ("R", 3), "a time-out for all sockets does not concern the server's own")

calls = [peer.begin("wait") for _ in range(120)]
ok(wait_for(lambda: peer.command("look")[1] == 120), "120 functions that wait, and others go on")
peer.command("release")
equal([call.last() for call in calls], [("R", 120)] * 120, "and all come to their end")
calls = [peer.begin("sleepy", {"seconds": 0.01}) for _ in range(200)]
equal({tuple(call.last()) for call in calls}, {("R", 0.01)}, "more calls than threads wait their turn")

equal(peer.command("close"), ("R", 1), "a function that closes standard output and error")
equal(peer.command("raising")[1]["type"], "ValueError", "and exceptions are still answered")

call = peer.begin("end")
equal(call.frame(), None, "os._exit: the call ends without an answer")
equal(os.WEXITSTATUS(peer.ended()), 9, "the worker has ended")
waiting = peer.begin("size", {"text": "ab"})
again, control = peer.restart()
peer.read_line(control)
control.sendall(b'{"accept":true,"secrets":[]}\n')
equal(waiting.answer(), ("R", 2), "a call that no worker had taken is served by the next")
again.kill()
again.wait()
peer.stop()
done()
