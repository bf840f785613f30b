"""Custom routes, and the groups that the code turns on and off."""

import enum
import re
import threading

from .registry import first_line, scopes_of
from .responses import clean_text

METHODS = ("GET", "POST", "DELETE")

_PARAMETER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
_SEGMENT = re.compile(r"[!$&'()*+,\-.0-9:;=@A-Z_a-z~\x80-\U0010ffff]+\Z")


class CapabilityGroup(str, enum.Enum):
    """The groups of endpoints."""

    CORE = "core"
    COMMANDS = "commands"
    FILE_OPS = "file_ops"
    PROCESS = "process"
    TERMINAL = "terminal"
    SYSTEM = "system"
    DEV_TOOLS = "dev_tools"
    BROWSER = "browser"
    AGENTS = "agents"

    def __str__(self):
        return self.value


def _group(group):
    try:
        return CapabilityGroup(group)
    except ValueError:
        raise ValueError("%r is no group: use one of %s" % (group, ", ".join(g.value for g in CapabilityGroup))) from None


def _path_shape(path):
    """Check a path. Returns it without a trailing slash, and its shape: the same for all paths that match the same requests."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError("the path of a route begins with '/', not like %r" % (path,))
    path = path[:-1] if len(path) > 1 and path.endswith("/") else path
    names, shape = [], []
    for segment in path[1:].split("/"):
        parameter = _PARAMETER.match(segment)
        if parameter:
            names.append(parameter.group(1))
        elif segment in (".", "..") or not _SEGMENT.match(segment):
            raise ValueError("the path %r cannot be routed: %r is neither plain text nor a parameter like {name}" % (path, segment))
        shape.append("{}" if parameter else segment)
    if len(set(names)) != len(names):
        raise ValueError("the path %r has two parameters of one name" % path)
    return path, tuple(shape)


class Route:
    """A row: what the server is told, and the handler."""

    def __init__(self, method, path, handler, group, auth_required, streaming, name, summary, scopes):
        if method not in METHODS:
            raise ValueError("the method of a route is %s, not %r" % (", ".join(METHODS), method))
        self.method = method
        self.path, self.shape = _path_shape(path)
        self.id = "%s %s" % (method, self.path) if name is None else name
        if not isinstance(self.id, str) or not self.id or not self.id.isprintable():
            raise ValueError("%r is no name of a route" % (self.id,))
        self.handler = handler
        self.group = _group(group)
        self.auth_required = bool(auth_required)
        self.streaming = bool(streaming)
        self.summary = first_line(handler.__doc__) if summary is None else clean_text(summary)
        self.scopes = scopes_of(scopes)

    def describe(self):
        return {
            "id": self.id,
            "method": self.method,
            "path": self.path,
            "group": self.group.value,
            "summary": self.summary,
            "streaming": self.streaming,
            "auth_required": self.auth_required,
            "scopes": list(self.scopes),
        }


class RouteTable:
    """Routes by id, and what the code says about groups. It is frozen when the server starts."""

    def __init__(self):
        self._routes = {}
        self._groups = {}
        self._frozen = False
        self._lock = threading.Lock()

    def add_route(self, method, path, handler, *, group=CapabilityGroup.COMMANDS, auth_required=True, streaming=False,
                  name=None, summary=None, scopes=()):
        """Add a handler. ValueError when a route has that name, or method and path, already."""
        if not callable(handler):
            raise TypeError("route %s %s: %r cannot be called" % (method, path, handler))
        route = Route(method, path, handler, group, auth_required, streaming, name, summary, scopes)
        with self._lock:
            self._check_frozen("route %r" % route.id)
            for other in self._routes.values():
                if other.id == route.id or (other.method == route.method and other.shape == route.shape):
                    raise ValueError("route %r is defined twice" % route.id)
            self._routes[route.id] = route
        return route

    def route(self, method, path, *, group=CapabilityGroup.COMMANDS, auth_required=True, streaming=False, name=None,
              summary=None, scopes=()):
        """The decorator: `@table.route("GET", "/hello/{name}", group=CapabilityGroup.COMMANDS)`."""

        def register(handler):
            self.add_route(method, path, handler, group=group, auth_required=auth_required, streaming=streaming,
                           name=name, summary=summary, scopes=scopes)
            return handler

        return register

    def enable_group(self, group):
        self._switch(group, True)

    def disable_group(self, group):
        """Turn a group off. ValueError for core, which is always on."""
        if _group(group) is CapabilityGroup.CORE:
            raise ValueError("group 'core' cannot be disabled")
        self._switch(group, False)

    def _switch(self, group, on):
        found = _group(group)
        with self._lock:
            self._check_frozen("group %r" % found.value)
            self._groups[found.value] = on

    def _check_frozen(self, what):
        if self._frozen:
            raise RuntimeError("%s comes too late: set up routes and groups before the server starts" % what)

    def get(self, route_id):
        return self._routes.get(route_id)

    def freeze(self):
        with self._lock:
            self._frozen = True

    @property
    def frozen(self):
        return self._frozen

    def groups(self):
        return dict(self._groups)

    def describe(self):
        return [route.describe() for route in self._routes.values()]

    def __len__(self):
        return len(self._routes)

    def __iter__(self):
        return iter(list(self._routes.values()))


_default = RouteTable()


def default_table():
    """The table that start() serves."""
    return _default
