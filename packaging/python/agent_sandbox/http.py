"""Requests to a server, on connections that are kept: one for each thread."""

import http.client
import json
import os
import select
import ssl
import threading
import urllib.parse
import urllib.request

from .errors import SandboxConnectionError, SandboxValueError, error_of
from .version import __version__


def _proxy(parts):
    """Host and port of the proxy that the environment names for an address, or None."""
    host = parts.hostname
    if host in ("localhost", "::1") or host.startswith("127.") or urllib.request.proxy_bypass(host):
        return None
    url = urllib.request.getproxies().get(parts.scheme)
    found = urllib.parse.urlsplit(url) if url else None
    return (found.hostname, found.port or 8080) if found and found.hostname else None


class Transport:
    """Sends requests to one address, with its credentials."""

    def __init__(self, url, token, headers, timeout):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise SandboxValueError("%r is no address of a server" % (url,))
        self.url = url.rstrip("/")
        self._parts = parts
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout
        self._proxy = _proxy(parts)
        self._headers = {"User-Agent": "agent-sandbox/" + __version__, "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        self._headers.update(headers or {})
        self._local = threading.local()
        self._connections = set()

    # ---- connections

    def _connect(self, timeout):
        host, port = self._proxy or (self._parts.hostname, self._parts.port)
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
            if self._proxy:
                connection.set_tunnel(self._parts.hostname, self._parts.port or 443)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        self._connections.add(connection)
        return connection

    def _connection(self):
        """This thread's connection. One on which something can be read although nothing was asked has been closed by the server."""
        connection = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None:
            poller = select.poll()
            poller.register(connection.sock, select.POLLIN)
            if not poller.poll(0):
                return connection
        self._drop()
        self._local.connection = self._connect(self._timeout)
        return self._local.connection

    def _drop(self):
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            self._connections.discard(connection)
            connection.close()

    def close(self):
        for connection in list(self._connections):
            connection.close()
        self._connections.clear()

    # ---- requests

    def _target(self, path, query):
        if not path.startswith("/"):
            raise SandboxValueError("a path begins with '/', not like %r" % (path,))
        target = self._prefix + urllib.parse.quote(path, safe="/%:@!$&'()*+,;=~-._?")
        if query:
            words = {name: "true" if value is True else "false" if value is False else value for name, value in query.items()}
            target += ("&" if "?" in target else "?") + urllib.parse.urlencode(words, doseq=True)
        if self._proxy and self._parts.scheme == "http":
            target = "http://" + self._parts.netloc + target
        return target

    def _begin(self, connection, method, path, query, body, accept=None):
        """Send a request on a connection. Returns the answer's head."""
        headers = dict(self._headers)
        if self._proxy and self._parts.scheme == "http":
            headers["Host"] = self._parts.netloc
        if accept:
            headers["Accept"] = accept
        data = None
        if body is not None:
            data = json.dumps(body).encode("ascii")
            headers["Content-Type"] = "application/json"
        elif method != "GET":
            data = b""
        target = self._target(path, query)
        try:
            connection.request(method, target, data, headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise SandboxConnectionError("%s: %s" % (self.url, error or type(error).__name__)) from error

    def _read(self, answer):
        try:
            return answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise SandboxConnectionError("%s: the answer broke off: %s" % (self.url, error or type(error).__name__)) from error

    @staticmethod
    def _parse(data):
        try:
            return json.loads(data)
        except ValueError:
            return None

    def request(self, method, path, query=None, body=None):
        """The value that is answered. A SandboxError for every status that is no success."""
        try:
            answer = self._begin(self._connection(), method, path, query, body)
            data = self._read(answer)
        except BaseException:
            self._drop()
            raise
        value = self._parse(data)
        if not 200 <= answer.status < 300:
            raise error_of(answer.status, answer.headers, value)
        if value is None and data.strip() != b"null":
            raise SandboxConnectionError("%s: the answer is not JSON" % self.url, status=answer.status)
        return value

    def events(self, method, path, query=None, body=None):
        """The events of a stream, as they come: pairs of a name and a value. Closing the generator ends the stream."""
        connection = self._connect(None)
        try:
            answer = self._begin(connection, method, path, query, body, "text/event-stream")
            if not 200 <= answer.status < 300:
                raise error_of(answer.status, answer.headers, self._parse(self._read(answer)))
            yield from self._follow(answer)
        finally:
            self._connections.discard(connection)
            connection.close()

    def _follow(self, answer):
        name, data = "message", []
        while True:
            try:
                line = answer.readline()
            except (OSError, http.client.HTTPException) as error:
                raise SandboxConnectionError("%s: the stream broke off: %s" % (self.url, error or type(error).__name__)) from error
            if not line:
                return
            field, _, value = line.decode("utf-8").rstrip("\r\n").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not line.strip():
                if data:
                    text = "\n".join(data)
                    parsed = self._parse(text)
                    yield name, text if parsed is None and text != "null" else parsed
                name, data = "message", []
