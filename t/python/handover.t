#!/usr/bin/env python3
# From `python3 commands.py` to a server: the hand-over, the worker's environment, its end, its start after a death.
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import PACKAGE, Peer
from tap import done, equal, matches, ok, wait_for

CODE = '''
import os, sys, threading
from agent_sandbox.server import command, default_table, CapabilityGroup, start
print("code runs")
table = default_table()
table.enable_group(CapabilityGroup.BROWSER)
table.disable_group("terminal")

@table.route("GET", "/hello/{name}/", group=CapabilityGroup.COMMANDS, summary="Hi.", scopes=["a:b"], auth_required=False)
def hello(request):
    return {}

@command()
def say(text: str = "x"):
    print(text)
    os.write(1, b"raw\\n")
    return os.getpid()

@command()
def environment():
    import subprocess
    return [sorted(os.environ), open("/proc/self/environ").read(), subprocess.run(["env"], stdout=subprocess.PIPE, text=True).stdout]

@command()
def limits():
    import resource, signal
    return [resource.getrlimit(resource.RLIMIT_CORE)[0], os.getppid(), os.getcwd(), sys.argv[1:], sys.flags.dev_mode,
            os.get_inheritable(1), sorted(os.listdir("/proc/self/fd"))]

import atexit
atexit.register(lambda: os.getpid() != first and open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "atexit"), "w").close())
first = os.getpid()
os.chdir("/")
if __name__ == "__main__":
    start(4711)
    print("never")
'''

TOKEN = "very-secret-token"
ENV = {"ABX_SERVER_TOKEN": TOKEN, "CI_TOKEN": "ci-secret", "OTHER_TOKEN": "other-secret", "PLAIN": "stays", "ABX_LOG_LEVEL": "debug"}
with Peer(CODE, env=ENV, accept=False, argv=["commands.py", "one", "two"], python=["-u"], files=[("template.yaml", "server: {}\n")]) as peer:
    argv = peer.about["argv"]
    equal(argv[1:4] + argv[4:5], ["--foreground", "--port", "4711", "--code"], "abxd's arguments")
    equal(peer.about["pid"], peer.process.pid, "abxd has the pid that the program had")
    equal(peer.about["token"], TOKEN, "abxd has its settings")
    equal([int(line.split()[1], 16) & (1 << 12) for line in peer.about["signals"]], [0, 0], "and ignores and blocks no SIGPIPE")
    launch = peer.launch
    equal(launch["argv"], [sys.executable, "-u", "commands.py", "one", "two"], "how to start again")
    equal(launch["cwd"], os.path.realpath(peer.dir), "the directory it was started in, not the one it went to")
    equal(launch["template"], os.path.join(os.path.realpath(peer.dir), "template.yaml"), "the template beside it")
    equal(peer.introduced, launch["table"] + "\n", "the worker introduces itself with the same table")
    ok(all(" " < c < "\x7f" or c == " " for c in launch["table"]), "the table is plain ASCII on one line")
    equal(peer.table["groups"], {"browser": True, "terminal": False}, "groups")
    equal(peer.table["name"], "commands.py", "the script's name")
    equal(peer.table["version"], 1, "the version")
    equal(peer.table["routes"], [{"id": "GET /hello/{name}", "method": "GET", "path": "/hello/{name}", "group": "commands", "summary": "Hi.",
                                  "streaming": False, "auth_required": False, "scopes": ["a:b"]}], "a route")
    equal(peer.out_text(), "code runs\n", "the code has run once")

    peer.accept(["CI_TOKEN"])
    peer.control.sendall(b'{"accept":true,"secrets":["OTHER_TOKEN"],"inv')
    peer.control.sendall(b'ocation":"abc"}\n')
    ok(wait_for(lambda: "INVOCATION_ID=abc\n" in peer.command("environment")[1][2]), "the mark that children inherit")
    names, proc, child = peer.command("environment")[1]
    ok("OTHER_TOKEN" not in names and "other-secret" not in proc + child, "a policy that was read again names another token")
    ok("PLAIN" in names and "PLAIN=stays" in proc and "PLAIN=stays" in child, "other variables stay")
    ok(not [name for name in names if name.startswith("ABX_") or name == "CI_TOKEN"], "os.environ is clean")
    ok(TOKEN not in proc and "ci-secret" not in proc and "ABX_" not in proc, "so is what /proc shows")
    ok(TOKEN not in child and "ABX_" not in child and "ci-secret" not in child, "and a child's environment")
    with open("/proc/%d/environ" % peer.worker) as file:
        ok(TOKEN not in file.read(), "also for those who look from outside")
    core, parent, _, arguments, _, _, _ = peer.command("limits")[1]
    equal([core, parent, arguments], [0, peer.process.pid, ["one", "two"]], "no core dumps, abxd is the parent")

    equal(peer.command("say", {"text": "said\n" * 3})[0], "R", "a command that prints")
    equal(peer.out_text(), "code runs\n", "standard output is the server's own")
    ok(wait_for(lambda: "said\nsaid\nsaid\n" in peer.log_text() and "raw\n" in peer.log_text()), "what it prints goes to the log")

    # Started again, while the old one is there to be compared with.
    again, control = peer.restart()
    equal(peer.read_line(control), peer.introduced, "a worker that is started again has the same table")
    os.kill(peer.worker, signal.SIGTERM)
    equal(peer.ended(), 0, "SIGTERM ends a worker")
    ok(os.path.exists(os.path.join(peer.dir, "atexit")), "in order: what was registered with atexit runs")
    control.sendall(b'{"accept":true,"secrets":["PLAIN"]}\n')
    names, proc, child = peer.command("environment")[1]
    ok("PLAIN" not in names and "PLAIN=" not in proc and "ABX_" not in proc + child, "the new one is as clean")
    equal(peer.command("say")[1], again.pid, "and serves from the same socket")
    equal(peer.command("limits")[1][2:4], ["/", ["one", "two"]], "as the first one did")
    equal(peer.out_text(), "code runs\n", "what it prints while it starts is in the log as well")
    control.close()
    equal(again.wait(30), 0, "it ends when abxd has gone")

for name, options, expected in (
        ("python3 -m", {"argv": ["-m", "box.main"], "script": "box/main.py"}, ["-m", "box.main"]),
        ("elsewhere", {"cwd": "/"}, None)):
    with Peer(CODE, **options) as peer:
        if expected:
            equal(peer.launch["argv"][1:], expected, name + ": how to start again")
        again, control = peer.restart()
        equal(peer.read_line(control), peer.introduced, name + ": the worker comes back")
        control.close()
        again.wait(30)
        equal(peer.launch["template"], None, name + ": no template")

with Peer(CODE.replace("start(4711)", "from agent_sandbox.server import SandboxServer; SandboxServer().serve(host='127.0.0.1')")) as peer:
    ok("--port" not in peer.about["argv"], "no port given, none passed on")
    equal(peer.about["host"], "127.0.0.1", "a host that was given")

with Peer(CODE.replace("first =", "threading.Thread(target=threading.Event().wait, name='poller', daemon=True).start(); first =")) as peer:
    matches(peer.log_text(), "warning: .*poller", "a thread that will not be there is named")
    equal(peer.command("say")[0], "R", "and the server serves")

with Peer(CODE, accept=False) as peer:
    peer.control.close()
    equal(peer.ended(), 0, "a worker that is not accepted ends")

with Peer(CODE.replace("first =", "import signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(7)); first =")) as peer:
    equal(peer.command("say")[0], "R", "(it serves)")
    os.kill(peer.worker, signal.SIGINT)
    equal(peer.command("say")[0], "R", "SIGINT is abxd's to handle")
    os.kill(peer.worker, signal.SIGTERM)
    equal(os.WEXITSTATUS(peer.ended()), 7, "a handler of the template's own is left alone")

with Peer(CODE.replace("first =", "threading.stuck = threading.Event(); first =").replace(
        "return os.getpid()", "threading.Thread(target=threading.stuck.wait).start(); return 1")) as peer:
    equal(peer.command("say")[0], "R", "(a thread that never ends is started)")
    peer.control.close()
    equal(peer.ended(), 0, "a thread that never ends does not keep the worker")

with tempfile.TemporaryDirectory() as prefix:
    script = os.path.join(prefix, "spawn.py")
    with open(script, "w") as file:
        file.write("import multiprocessing, os\nfrom agent_sandbox.server import start\nif os.environ.setdefault('PARENT', str(os.getpid())) == str(os.getpid()):\n"
                   "    p = multiprocessing.get_context('spawn').Process(target=print)\n    p.start()\n    p.join()\n    raise SystemExit(p.exitcode)\n"
                   "start(9000)\n")
    run = subprocess.run([sys.executable, script], env=dict(os.environ, PYTHONPATH=PACKAGE), stderr=subprocess.PIPE, universal_newlines=True)
    equal(run.returncode, 1, "a process of multiprocessing does not become a server")
    matches(run.stderr, "RuntimeError: start.. in a process of multiprocessing", "and says why")
    for package, program in (("lib/python3/dist-packages", "bin/abxd"), ("tree/packaging/python", "tree/build/root/bin/abxd")):
        for path in (package, os.path.dirname(program)):
            os.makedirs(os.path.join(prefix, path), exist_ok=True)
        shutil.copytree(os.path.join(PACKAGE, "agent_sandbox"), os.path.join(prefix, package, "agent_sandbox"))
        with open(os.path.join(prefix, program), "w") as file:
            os.fchmod(file.fileno(), 0o755)
        run = subprocess.run([sys.executable, "-c", "from agent_sandbox.server import locate; print(locate.find_abxd())"], stdout=subprocess.PIPE,
                             env=dict(os.environ, PATH="/nonexistent", PYTHONPATH=os.path.join(prefix, package)), universal_newlines=True)
        equal(run.stdout, os.path.join(os.path.realpath(prefix), program) + "\n", "abxd is found in the tree of the package: " + program)
nowhere = dict(os.environ, PATH="/nonexistent", PYTHONPATH=PACKAGE)
run = subprocess.run([sys.executable, "-c", "import sys; sys.prefix='/nonexistent'\nfrom agent_sandbox.server import locate, start\n"
                      "locate._beside_package = lambda: ['/nonexistent/abxd', '/nonexistent/b/abxd']\nstart(9000)"],
                     env=nowhere, stderr=subprocess.PIPE, universal_newlines=True)
equal(run.returncode, 1, "without abxd: an error")
matches(run.stderr, "RuntimeError: abxd, .*install abx", "that says what to do")
done()
