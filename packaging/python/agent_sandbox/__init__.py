"""The Python side of the abx server: `agent_sandbox.server` for templates, `Client` and `Sandbox` for those who call them."""

from .version import __version__

_LAZY = {
    "AsyncClient": "client",
    "Client": "client",
    "Sandbox": "sandbox",
    "SandboxError": "errors",
}

__all__ = ["__version__"] + sorted(_LAZY)


def __getattr__(name):
    # A template imports the server alone: what a client needs is loaded when it is asked for.
    if name not in _LAZY:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from importlib import import_module

    return getattr(import_module("." + _LAZY[name], __name__), name)
