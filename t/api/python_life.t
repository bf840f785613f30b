#!/usr/bin/env python3
# Ways to start a commands.py, and ways in which it does not start.
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from server import Server, children_of, free_port, is_alive
from tap import done, equal, matches, ok, wait_for

CODE = '''
import os, sys
from agent_sandbox.server import *

@command()
def where():
    return [os.getcwd(), sys.argv[1:], sys.flags.optimize, __name__]

%s
if __name__ == "__main__":
    start(%d)
'''

for name, options in (("python3 -u", {"python": ["-u"]}), ("python3 -O, with arguments", {"python": ["-O"], "argv": ["commands.py", "--one", "two words"]}),
                      ("python3 -m", {"script": "box/main.py", "argv": ["-m", "box.main"]}), ("from elsewhere", {"cwd": "/"})):
    with Server(CODE % ("", 0), **options) as server:
        before = server.command("where")
        ok(isinstance(before, list) and before[3] == "__main__", name)
        os.kill(server.worker(), signal.SIGKILL)
        equal(server.command("where"), before, name + ": the same after a restart")
        with open("/proc/%d/comm" % server.process.pid) as file:
            equal(file.read(), "abxd\n", name + ": abxd has the program's pid")
        equal(server.stop(), 0, name + ": SIGTERM")

port = free_port()
with Server(CODE % ("", port), env={"ABX_SERVER_PORT": str(free_port())}) as server:
    equal(server.port, port, "the port of start() goes before ABX_SERVER_PORT")
    worker = server.worker()
    server.process.send_signal(signal.SIGINT)
    equal(server.process.wait(60), 0, "SIGINT ends it")
    ok(wait_for(lambda: not is_alive(worker)), "and the worker")
port = free_port()
with Server((CODE % ("", 0)).replace("start(0)", "start()"), env={"ABX_SERVER_PORT": str(port)}) as server:
    equal(server.port, port, "without one, ABX_SERVER_PORT counts")
with Server(CODE % ("", 0)) as server:
    worker, everybody = server.worker(), children_of(server.process.pid)
    server.process.kill()
    server.process.wait()
    ok(wait_for(lambda: not is_alive(worker)), "a worker does not outlive an abxd that was killed")
    ok(wait_for(lambda: not [pid for pid in everybody if is_alive(pid)]), "nor do the others")

# A worker that cannot be given a call, since it has no descriptor left for it, has not ended.
NARROW = """
@command()
def narrow():
    import resource, time
    fd = os.dup(2)
    os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (fd, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print("narrow now")
    while not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "go")):
        time.sleep(0.01)
"""
with Server(CODE % (NARROW, 0)) as server:
    narrow = server.stream("/commands/narrow", {})
    ok(wait_for(lambda: "narrow now" in server.log_text()), "(it has no descriptors left)")
    status, error = server.command("where")
    equal((status, error["type"]), (503, "RuntimeError"), "a call that the worker has no descriptor for")
    matches(error["error"], "no descriptors left", "which is said")
    matches(server.log_text(), "abx: a call could not be taken", "in the log, too")
    server.write("go", "")
    matches(server.read_until(narrow, b'"result"').decode(), "200 OK", "what it has taken goes on")
    narrow.close()


def first_process(code, **options):
    """A server whose main process is PID 1 of a namespace; its own process is the parent of that one."""
    python, sys.executable = sys.executable, unshare
    try:
        return Server(code, python=["-pf", "--mount-proc", "--kill-child", python], argv=["commands.py"], **options)
    finally:
        sys.executable = python


# Stops until a second is over, with a file that says so: while the template's code runs, and while there are two processes and no abxd yet.
STOP = """
import time
def stop():
    open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "here"), "w").close()
    time.sleep(1)
"""
FORK = STOP + """
fork = os.fork
def slow_fork():
    pid = fork()
    if pid:
        stop()
    return pid
os.fork = slow_fork
"""


def ended_early(server, find):
    """SIGTERM at that moment: the exit status, and whether anything is left."""
    ok(wait_for(lambda: os.path.exists(os.path.join(server.dir, "here"))), "(it is about to start)")
    everybody = children_of(server.process.pid) + [pid for child in children_of(server.process.pid) for pid in children_of(child)]
    os.kill(find(server), signal.SIGTERM)
    status = server.process.wait(60)
    left = not wait_for(lambda: not [pid for pid in everybody if is_alive(pid)]) or os.path.exists(os.path.join(server.dir, "run"))
    server.stop()
    return status, left


equal(ended_early(Server(CODE % (FORK, 0), wait=False), lambda server: server.process.pid), (0, False), "SIGTERM during the hand-over is abxd's")

# As PID 1 of a namespace, where that can be made.
unshare = shutil.which("unshare")
if unshare and subprocess.run([unshare, "-pf", "--mount-proc", "true"], stderr=subprocess.DEVNULL).returncode == 0:
    code = (CODE % ("@command()\ndef pids():\n    return [os.getpid(), os.getppid()]\n", 0))
    for text, status, when in ((STOP + "stop()\n", 143, "while the template's code runs"), (FORK, 0, "during the hand-over")):
        equal(ended_early(first_process(CODE % (text, 0), wait=False), lambda server: children_of(server.process.pid)[0]), (status, False),
              "SIGTERM to PID 1 " + when)
    one = first_process(code)
    equal(one.command("pids")[1], 1, "as PID 1")
    abxd = children_of(one.process.pid)[0]
    os.kill(abxd, signal.SIGTERM)
    equal(one.process.wait(60), 0, "SIGTERM to PID 1 ends everything in order")
    one.stop()


def fails(code, env=None, **options):
    """Run a commands.py that does not start: exit status and what it said."""
    server = Server(CODE % (code, 0), wait=False, env=env, **options)
    status = server.process.wait(60)
    log = server.log_text()
    ok(not children_of(server.process.pid), "(nothing is left of it)")
    server.stop()
    return status, log


for name, code, status, expected in (
        ("a route of the server's own", "@default_table().route('GET', '/files/list')\ndef f(r): pass", 78, "commands.py: route 'GET /files/list'"),
        ("a name defined twice", "@command('where')\ndef other(): pass", 1, "ValueError: command 'where' is defined twice"),
        ("a group that cannot be disabled", "default_table().disable_group('core')", 1, "ValueError: group 'core' cannot be disabled"),
        ("an exception before start()", "1/0", 1, "ZeroDivisionError")):
    got, log = fails(code)
    equal(got, status, name + ": the exit status")
    matches(log, re.escape(expected), name + ": what is said")
status, log = fails("", env={"ABX_SERVER_POLICY": "{nonsense"})
equal(status, 78, "a policy that is none")
with Server(CODE % ("@command('runshell')\ndef own(): return 'mine'\n", 0)) as server:
    equal(server.command("runshell"), "mine", "a command that replaces a built-in one")
    matches("\n".join(server.get("/capabilities").json["warnings"]) + server.log_text(), "runshell", "with a warning")
done()
