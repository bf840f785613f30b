#!/usr/bin/env python3
# The package as pip installs it, without a network.
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "python"))
from peer import PACKAGE
from tap import diag, done, equal, ok, skip_all

if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
    skip_all("there is no pip")

with tempfile.TemporaryDirectory() as directory:
    source = os.path.join(directory, "source")
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    target = os.path.join(directory, "target")
    run = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-cache-dir", "--disable-pip-version-check",
                          "--root-user-action=ignore", "--target", target, source],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    equal(run.returncode, 0, "pip install") or diag(run.stdout)
    there = {os.path.relpath(os.path.join(at, name), source) for at, _, names in os.walk(os.path.join(source, "agent_sandbox")) for name in names}
    installed = {os.path.relpath(os.path.join(at, name), target) for at, _, names in os.walk(os.path.join(target, "agent_sandbox")) for name in names
                 if name.endswith(".py")}
    equal(sorted(installed), sorted(there), "every file is installed")
    run = subprocess.run([sys.executable, "-c", "import agent_sandbox, agent_sandbox.server as s, importlib.metadata as m\n"
                          "print(s.start.__module__, agent_sandbox.__version__ == m.version('agent-sandbox-server'))"],
                         env=dict(os.environ, PYTHONPATH=target), cwd=directory, stdout=subprocess.PIPE, universal_newlines=True)
    equal(run.stdout, "agent_sandbox.server.server True\n", "and can be imported, with its version")
with open(os.path.join(PACKAGE, "..", "..", "configure.ac")) as file, open(os.path.join(PACKAGE, "agent_sandbox", "version.py")) as own:
    ok("AC_INIT([abx], [%s])" % own.read().split('"')[1] in file.read(), "its version is that of the tree")
done()
