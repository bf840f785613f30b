"""SandboxServer and start(): the way from a template's code to a running server."""

import os

from . import handover
from .registry import default_registry
from .table import default_table


def _check_port(port):
    if port is None:
        return None
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ValueError("%r is no port" % (port,))
    return int(port)


class SandboxServer:
    """A server for the commands of a registry and the routes of a table: the default ones, unless others are given."""

    def __init__(self, registry=None, table=None):
        self.registry = default_registry() if registry is None else registry
        self.table = default_table() if table is None else table

    def register(self, name, handler, **options):
        """Add a command without the decorator."""
        self.registry.register(name, handler, **options)

    def serve(self, port=None, host=None):
        """
        Bring up the server. A port that is given goes before ABX_SERVER_PORT, a host before ABX_SERVER_HOST; else they are 9000
        and 0.0.0.0. Does not return: the program goes on as the server until it is told to stop.
        """
        port = _check_port(port)
        if self.registry.frozen:
            raise RuntimeError("the server has been started already")
        if host is not None:
            os.environ["ABX_SERVER_HOST"] = str(host)
        handover.serve(self.registry, self.table, port)

    def start(self, host=None, port=8080):
        """serve() with other defaults."""
        self.serve(port=port, host=host)


def start(port=None, host=None):
    """Serve what @command and default_table().route have registered. Does not return."""
    SandboxServer().serve(port=port, host=host)
