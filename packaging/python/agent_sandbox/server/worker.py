"""
The worker: the process that the template's code lives in. Threads receive calls from the socket that abxd holds; one of them
at least is always waiting, until there are THREADS_MAX.
"""

import array
import json
import os
import resource
import select
import signal
import socket
import sys
import threading

from . import environment, origin
from .calls import Server
from .frames import Channel, Gone
from .log import say

# The calls that abx-commands has at a time, and what its generations before may have kept of connections.
THREADS_MAX = 160

# How long code that runs at the end may take before the process is ended all the same.
END_SECONDS = 2.0

_FD_SIZE = array.array("i").itemsize


class Worker:
    """Serves the calls that come on one socket, until the other one, to abxd, says that it is over."""

    def __init__(self, calls_fd, control_fd, registry, table):
        self._calls = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, calls_fd)
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, control_fd)
        self._server = Server(registry, table)
        self._open = {self._calls, self._control}
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._pid = os.getpid()
        for sock in self._open:
            # The template may have set a default time-out for all sockets.
            sock.setblocking(True)

    # ---- life

    def run(self, table_text):
        """Serve. Does not return: SystemExit, so that the template's own last words are heard."""
        os.register_at_fork(after_in_child=self._leave_to_parent)
        _settle()
        try:
            self._control.sendall(table_text.encode("ascii") + b"\n")
            for line in self._lines():
                self._listen(json.loads(line))
        except OSError:
            pass
        finally:
            # Threads of the template that do not end must not keep a worker without a server alive.
            timer = threading.Timer(END_SECONDS, os._exit, (0,))
            timer.daemon = True
            timer.start()
        sys.exit(0)

    def _lines(self):
        """What abxd says, until it has gone."""
        rest = b""
        wake = self._wake_on_signals()
        poller = select.poll()
        for sock in (self._control, wake):
            poller.register(sock, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if wake.fileno() in ready:
                wake.recv(4096)
            if self._control.fileno() not in ready:
                continue
            piece = self._control.recv(4096)
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines

    def _wake_on_signals(self):
        """
        The kernel may hand a signal to any thread, but Python's handlers run on the main one: which has to wake up for it. What is
        returned becomes readable when there is a signal to be handled.
        """
        wake, write = socket.socketpair()
        for sock in (wake, write):
            sock.setblocking(False)
            self._open.add(sock)
        try:
            signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
        except ValueError:
            # start() was not called on the main thread: there are no handlers then.
            pass
        return wake

    def _listen(self, said):
        """We may serve. It is said again when the policy was read again, which can name other variables that hold tokens."""
        secret = {os.fsencode(name) for name in said.get("secrets") or ()}
        if secret:
            clean_environment(lambda name: name in secret)
        if said.get("invocation"):
            # What a function starts inherits the mark by which abxd finds it.
            os.environ["INVOCATION_ID"] = said["invocation"]
        if said.get("accept") and not self._threads:
            self._start_thread()

    def _leave_to_parent(self):
        """In the child of a function that forks: what it inherited of the server is not its own."""
        try:
            signal.set_wakeup_fd(-1)
        except ValueError:
            pass
        for sock in list(self._open):
            try:
                os.close(sock.detach())
            except OSError:
                pass
        self._open.clear()

    # ---- threads

    def _start_thread(self):
        thread = threading.Thread(target=self._serve, name="abx-call-%d" % self._threads, daemon=True)
        self._threads += 1
        self._idle += 1
        thread.start()

    def _take(self):
        """A thread is about to serve a connection: another has to wait in its place."""
        with self._lock:
            self._idle -= 1
            if self._idle == 0 and self._threads < THREADS_MAX:
                try:
                    self._start_thread()
                except RuntimeError as error:
                    # No more threads can be had: the calls wait for the ones that are there.
                    self._threads -= 1
                    self._idle -= 1
                    say("abx: %s" % error)

    def _release(self):
        with self._lock:
            self._idle += 1

    def _serve(self):
        while True:
            sock = self._receive()
            if sock is None:
                return
            self._take()
            self._open.add(sock)
            try:
                channel = Channel(sock)
                while os.getpid() == self._pid:
                    self._server.serve(channel)
            except Gone:
                pass
            except BaseException as error:
                say("abx: a call could not be served: %s: %s" % (type(error).__name__, error))
            if os.getpid() != self._pid:
                # A function forked and has returned in its child, too.
                _end_child()
            self._open.discard(sock)
            sock.close()
            self._release()

    def _receive(self):
        """The next connection, on which calls come; None when there will be none."""
        while True:
            try:
                message, control, _, _ = self._calls.recvmsg(16, socket.CMSG_SPACE(_FD_SIZE), socket.MSG_CMSG_CLOEXEC)
            except OSError as error:
                say("abx: calls cannot be received: %s" % error)
                return None
            fds = array.array("i")
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(data[:len(data) - len(data) % _FD_SIZE])
            if not message:
                return None
            if not fds:
                # The kernel has closed the call's socket: the caller is told.
                say("abx: a call could not be taken: no descriptors are left")
            else:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fds[0])
                sock.setblocking(True)
                return sock


def flush():
    """Standard output and error, where there are any."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def _end_child():
    flush()
    os._exit(0)


def clean_environment(unwanted):
    try:
        environment.remove(unwanted)
    except OSError as error:
        say("abx: the environment that /proc shows could not be cleaned: %s" % error)


def _settle():
    """Make the process one that runs under abxd."""
    clean_environment(environment.is_own)
    flush()
    os.dup2(2, 1)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        # Control-C at a terminal is abxd's to handle; children have the default again.
        signal.signal(signal.SIGINT, lambda number, frame: None)
        if not origin.minds_sigterm():
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    except ValueError:
        # start() was not called on the main thread, so SIGTERM ends the process at once.
        pass
