"""What the handler of a route is given."""

from collections.abc import Mapping


class Headers(Mapping):
    """The headers of a request, by names in any case. A repeated one has its values joined by commas."""

    def __init__(self, pairs):
        self._values = {}
        for name, value in pairs:
            key = name.lower()
            first, known = self._values.get(key, (name, None))
            self._values[key] = (first, value if known is None else known + ", " + value)

    def __getitem__(self, name):
        return self._values[name.lower()][1]

    def __contains__(self, name):
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self):
        return (name for name, _ in self._values.values())

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return "Headers(%r)" % dict(self)


class Identity:
    """Who calls: `id`, and `scopes`, a tuple."""

    __slots__ = ("id", "scopes")

    def __init__(self, identity, scopes=()):
        self.id = identity
        self.scopes = tuple(scopes)

    def __repr__(self):
        return "Identity(%r, %r)" % (self.id, self.scopes)


def _query(pairs):
    """Parameters by name. Names that end in [] may repeat, and give lists."""
    found = {}
    for name, value in pairs:
        if name.endswith("[]"):
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


class Request:
    """A request for a custom route."""

    __slots__ = ("method", "path", "path_params", "query", "body", "headers", "identity", "request_id", "remote")

    def __init__(self, call, body):
        identity = call.get("identity")
        self.method = call.get("method")
        self.path = call.get("path")
        self.path_params = call.get("path_params") or {}
        self.query = _query(call.get("query") or ())
        self.body = body
        self.headers = Headers(call.get("headers") or ())
        self.identity = Identity(identity["id"], identity.get("scopes") or ()) if identity else None
        self.request_id = call.get("request_id")
        self.remote = call.get("remote")

    def __repr__(self):
        return "<Request %s %s>" % (self.method, self.path)
