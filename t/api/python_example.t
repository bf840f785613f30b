#!/usr/bin/env python3
# The example of a template, packaging/examples/python-hello: its server, and its client against it.
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import ROOT
from server import Server
from tap import diag, done, equal, matches, ok

EXAMPLE = os.path.join(ROOT, "packaging", "examples", "python-hello")


def read(name):
    with open(os.path.join(EXAMPLE, name)) as file:
        return file.read()


for word in re.findall(r"^COPY (.*) /app/$", read("Dockerfile"), re.M)[0].split():
    ok(os.path.exists(os.path.join(EXAMPLE, word)), "the Dockerfile copies " + word)
code = read("commands.py")
ok("\n    start(9000)\n" in code, "(the line that a test changes)")
with Server(code.replace("start(9000)", "start(0)"), files=[("template.yaml", read("template.yaml"))], token="secret") as server:
    run = subprocess.run([sys.executable, os.path.join(EXAMPLE, "call_api.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=dict(server.env, ABX_TEMPLATE_URL=server.url), universal_newlines=True)
    equal(run.returncode, 0, "call_api.py") or diag(run.stderr)
    lines = run.stdout.splitlines()
    matches(lines[1], "^commands: .*hello.*visit", "the commands")
    equal(lines[2:], ["hello: Hello, Ada!", "visit: 1", "route: Hello, Ada!", "event: tick {'tick': 0}", "event: tick {'tick': 1}", "event: end {}",
                      "shell: hello", "refused: PermissionError command_not_allowed"], "what it prints")
    found = server.get("/capabilities").json
    equal([found["policy"]["configured"], found["groups"]["terminal"], found["warnings"]], [True, False, []], "the template's policy is in force")
    equal(found["endpoints"]["GET /ticks"]["limits"]["rate"], "60/min", "also on a route")

# ---- the example of the README

with open(os.path.join(ROOT, "README.md")) as file:
    code, = re.findall(r"<!-- commands.py, run by t/api/python_example.t -->\n```python\n(.*?)```", file.read(), re.S)
with Server(code.replace("start(9000)", "start(0)")) as server:
    equal(server.command("note", text="hello", times="2"), 2, "README: the command")
    equal(server.get("/notes/0").json, {"note": "hello", "reader": "anonymous"}, "README: the route")
    equal(server.get("/notes/7").status, 404, "README: its error")
    equal(server.get("/notes").content, b'event: note\ndata: {"note": "hello"}\n\n' * 2, "README: the stream")

# ---- what is installed is what there is

with open(os.path.join(ROOT, "Makefile.am")) as file:
    named = set(re.findall(r"packaging/python/(agent_sandbox/\S+\.py)", file.read()))
package = os.path.join(ROOT, "packaging", "python")
there = {os.path.relpath(os.path.join(at, name), package) for at, _, names in os.walk(os.path.join(package, "agent_sandbox"))
         for name in names if name.endswith(".py")}
equal(sorted(named), sorted(there), "Makefile.am names every file of the package")
done()
