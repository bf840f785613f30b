"""
The hand-over: the process that called start() becomes abxd, keeping its pid, and its child, a copy of it, becomes the worker. So
the code before start() has run once, and abxd is the worker's parent. A worker that abxd starts again finds its sockets
inherited, and becomes the worker at once.
"""

import json
import os
import signal
import socket
import sys
import threading

from . import origin
from .locate import find_abxd
from .worker import Worker, flush

VERSION = 1

# What may come at any moment and is for abxd, from the moment on that there are two processes.
_HELD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def table_text(registry, table):
    """Everything that abxd has to know of the code, always as the same text."""
    found = {
        "version": VERSION,
        "name": origin.script_name(),
        "groups": table.groups(),
        "commands": registry.describe(),
        "routes": table.describe(),
    }
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def _warn_of_threads():
    """Threads that the template has started stay behind in the process that becomes abxd, and end there."""
    others = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    if others:
        print("warning: threads that were started before start() do not run in the server: %s; "
              "start them in a command, or on first use" % ", ".join(others), file=sys.stderr, flush=True)


def _launch_file(launch):
    """A file without a name that abxd inherits."""
    data = json.dumps(launch).encode("ascii")
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("abx-launch", 0)
    else:
        # Only where the C library has no memfd_create.
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    while data:
        data = data[os.write(fd, data):]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _become_abxd(program, port, fds, launch):
    """Replace this process. OSError when that fails."""
    launch_fd = _launch_file(launch)
    argv = [program, "--foreground"] + ([] if port is None else ["--port", str(port)]) + ["--code", str(launch_fd)]
    for fd in fds + (launch_fd,):
        os.set_inheritable(fd, True)
    # What Python ignores would be ignored by abxd as well.
    for number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)):
        if number is not None and threading.current_thread() is threading.main_thread():
            signal.signal(number, signal.SIG_DFL)
    # The ones that abxd handles wait until it does.
    signal.pthread_sigmask(signal.SIG_SETMASK, _HELD)
    os.execv(program, argv)


def _hand_over(port, text):
    """Returns, in the worker alone, its sockets."""
    program = find_abxd()
    _warn_of_threads()
    calls = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    worker = os.fork()
    if worker == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        calls[0].close()
        control[0].close()
        return calls[1].detach(), control[1].detach()
    control[1].close()
    launch = {
        "table": text,
        "argv": origin.restart_argv(),
        "cwd": origin.directory,
        "template": origin.template(),
        "pid": worker,
        "calls": [calls[0].fileno(), calls[1].fileno()],
        "control": control[0].fileno(),
    }
    try:
        _become_abxd(program, port, tuple(launch["calls"]) + (launch["control"],), launch)
    except OSError:
        # The worker sees the end of its control socket, and ends.
        control[0].close()
        os.waitpid(worker, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        raise
    return None


def _check_process():
    """multiprocessing runs the script once more in the processes that it spawns: they are none to become servers."""
    module = sys.modules.get("multiprocessing.process")
    if module is not None and (module.parent_process() is not None or getattr(module.current_process(), "_inheriting", False)):
        raise RuntimeError("start() in a process of multiprocessing: put it below if __name__ == \"__main__\"")


def serve(registry, table, port):
    """Bring up the server with what is registered. Does not return."""
    _check_process()
    registry.freeze()
    table.freeze()
    text = table_text(registry, table)
    fds, origin.inherited = origin.inherited, None
    if fds is None:
        fds = _hand_over(port, text)
    Worker(fds[0], fds[1], registry, table).run(text)
