"""
How this program was started, noted when the package is imported: the template's code may change its working directory, and
start processes, before it calls start(). A worker that abxd has started again finds its sockets here.
"""

import os
import signal
import sys

from . import environment

NAME = "commands.py"

# What a shell says of a program that SIGTERM has ended.
_STATUS_TERM = 128 + signal.SIGTERM


def _end(number, frame):
    sys.exit(_STATUS_TERM)


def _mind_sigterm():
    """The kernel keeps from the first process of a container what it has no handler for: it could not be stopped while it starts."""
    if os.getpid() == 1 and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        try:
            signal.signal(signal.SIGTERM, _end)
        except ValueError:
            # Not imported on the main thread.
            pass


def minds_sigterm():
    """Whether the template has a handler of its own for it."""
    return signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, _end)


def _directory():
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _kernel_argv():
    try:
        with open("/proc/self/cmdline", "rb") as cmdline:
            return [os.fsdecode(word) for word in cmdline.read().split(b"\0")[:-1]]
    except OSError:
        return []


def restart_argv():
    """What starts this program again: the same interpreter by its absolute name, with its flags, script and arguments."""
    given = list(getattr(sys, "orig_argv", ())) or _kernel_argv() or [""] + sys.argv
    return [sys.executable or "/proc/self/exe"] + given[1:]


def script():
    """The absolute name of the script, or None where there is none (python3 -c)."""
    name = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.join(directory, name) if name and not name.startswith("<") else None


def script_name():
    found = script()
    return os.path.basename(found) if found else NAME


def template():
    """The template.yaml beside the script, or None."""
    found = script()
    path = os.path.join(os.path.dirname(found), "template.yaml") if found else None
    return path if path and os.path.isfile(path) else None


def _inherited_sockets():
    """The sockets that abxd gave a worker that it started again: (calls, control), or None."""
    text = os.environ.pop(environment.WORKER_FDS, None)
    if text is None:
        return None
    try:
        calls, control = (int(word) for word in text.split(","))
        for fd in (calls, control):
            os.set_inheritable(fd, False)
    except (ValueError, OSError):
        return None
    # From here on what the template's code prints goes where the log goes.
    os.dup2(2, 1)
    return calls, control


_mind_sigterm()
directory = _directory()
inherited = _inherited_sockets()
