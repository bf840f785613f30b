"""
Named commands and custom routes in Python, for the abx server.

    from agent_sandbox.server import command, start

    @command("hello", description="Say hello.")
    def hello(name: str = "World") -> str:
        return f"Hello, {name}!"

    start(9000)
"""

from . import origin as _origin  # first: it notes how the program was started
from .registry import CommandArg, CommandRegistry, command, default_registry
from .request import Headers, Identity, Request
from .responses import ServerResponse, SSEResponse
from .server import SandboxServer, start
from .table import CapabilityGroup, RouteTable, default_table

__all__ = [
    "CapabilityGroup",
    "CommandArg",
    "CommandRegistry",
    "Headers",
    "Identity",
    "Request",
    "RouteTable",
    "SSEResponse",
    "SandboxServer",
    "ServerResponse",
    "command",
    "default_registry",
    "default_table",
    "start",
]
