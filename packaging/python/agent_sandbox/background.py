"""A server that a client has started on this machine. It ends with the program that started it."""

import atexit
import os
import subprocess
import sys
import tempfile

from .errors import SandboxRuntimeError
from .server.locate import find_abxd

STOP_SECONDS = 10


class Background:
    """`python3 commands.py`, or abxd alone, on a port."""

    def __init__(self, port, token, code=None):
        env = dict(os.environ, ABX_SERVER_PORT=str(port))
        # The terminal's port comes behind; two servers on one machine must not want the same.
        env.setdefault("ABX_PTY_PORT", str(port + 1))
        if token:
            env["ABX_SERVER_TOKEN"] = token
        if code:
            path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            env["PYTHONPATH"] = os.pathsep.join([path] + [p for p in (env.get("PYTHONPATH"),) if p])
            argv = [sys.executable, code]
        else:
            argv = [find_abxd(), "--foreground", "--port", str(port)]
        self._log = tempfile.TemporaryFile()
        # A session of its own: control-C at the terminal is for the program that started it.
        self._process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._log,
                                         cwd=os.path.dirname(code) or None if code else None, start_new_session=True)
        atexit.register(self.stop)

    def check(self):
        """SandboxRuntimeError, with its last words, when it has ended."""
        status = self._process.poll()
        if status is not None:
            self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - 4096))
            lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
            raise SandboxRuntimeError("the server ended with status %d: %s" % (status, lines[-1] if lines else "it said nothing"))

    def stop(self):
        atexit.unregister(self.stop)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()
