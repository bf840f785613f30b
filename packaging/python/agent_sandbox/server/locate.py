"""Where abxd is."""

import os
import shutil
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
    found = shutil.which("abxd")
    if found:
        return os.path.abspath(found)
    for path in _beside_package():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise RuntimeError("abxd, the server that this package hands over to, is not on PATH, nor beside the package (%s): "
                       "install abx, or build it (packaging/run.sh --build-only in its source tree), "
                       "or put the directory of abxd on PATH" % ", ".join(_beside_package()[:2]))
