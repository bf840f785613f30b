"""Where abxd is."""

import os
import sys


def _beside_package():
    """Programs of the tree that this package is in: a checkout that has been built, or an installed prefix."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    # <prefix>/lib/python3/dist-packages/agent_sandbox, and packaging/python/agent_sandbox in a checkout.
    prefix = os.path.abspath(os.path.join(package, "..", "..", "..", ".."))
    checkout = os.path.abspath(os.path.join(package, "..", "..", ".."))
    return [os.path.join(checkout, "build", "root", "bin", "abxd"), os.path.join(prefix, "bin", "abxd"),
            os.path.join(sys.prefix, "bin", "abxd"), "/usr/local/bin/abxd", "/usr/bin/abxd"]


def find_abxd():
    """The program's absolute name. RuntimeError, which says what to do, when there is none."""
    on_path = [os.path.join(directory, "abxd") for directory in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    for path in on_path + _beside_package():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise RuntimeError("abxd, the server that this package hands over to, is not on PATH, nor beside the package (%s): "
                       "install abx, or build it (packaging/run.sh --build-only in its source tree), "
                       "or put the directory of abxd on PATH" % ", ".join(_beside_package()[:2]))
