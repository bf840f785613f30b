"""
The calls that a template's client makes: `start`, `call`, `discover`, `health`, and whatever else the server has by `get`, `post`
and `delete`. `Client` blocks, `AsyncClient` is the same to be awaited.
"""

import asyncio
import functools
import os
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from .background import Background
from .errors import SandboxConnectionError, SandboxError, SandboxTimeoutError
from .http import Transport

URL_VARIABLE = "ABX_TEMPLATE_URL"
TOKEN_VARIABLE = "ABX_SERVER_TOKEN"
DEFAULT_URL = "http://127.0.0.1:9000"
START_SECONDS = 30
ASYNC_CALLS = 32


class Client:
    """
    A client of the server at `url` (ABX_TEMPLATE_URL, else port 9000 of this machine) with the bearer token `token` (ABX_SERVER_TOKEN).
    `headers` go along with every request: what a gateway in front asks for. `timeout`, in seconds, is that of the network, not of
    the work: None waits as long as it takes.
    """

    def __init__(self, url=None, token=None, *, headers=None, timeout=None):
        self._given_url = url or os.environ.get(URL_VARIABLE) or None
        self._token = token if token is not None else os.environ.get(TOKEN_VARIABLE) or None
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._background = None
        self._transport = None
        self._use(self._given_url or DEFAULT_URL)

    def _use(self, url):
        if self._transport is not None:
            self._transport.close()
        self._transport = Transport(url, self._token, self._headers, self._timeout)

    @property
    def url(self):
        return self._transport.url

    # ---- life

    def _answers(self):
        try:
            return self.health().get("status") == "ok"
        except SandboxConnectionError:
            return False
        except SandboxError as error:
            # A gateway answers these while what is behind it comes up.
            if error.status not in (502, 503, 504):
                raise
            return False

    def start(self, port=8080, *, code=None, timeout=START_SECONDS):
        """
        Wait until the server answers. Where no address was given it is port `port` of this machine, and a server is started there if
        none answers: `python3 <code>` for a template's file, else one with the built-in commands. It runs until stop(), or the
        end of this program.
        """
        if self._given_url is None:
            self._use("http://127.0.0.1:%d" % port)
            if self._background is None and not self._answers():
                self._background = Background(port, self._token, os.path.abspath(code) if code else None)
        end = time.monotonic() + timeout
        pause = 0.01
        while not self._answers():
            if self._background is not None:
                self._background.check()
            if time.monotonic() > end:
                raise SandboxTimeoutError("%s does not answer after %g s" % (self.url, timeout), type="TimeoutError")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.25)
        return self

    def stop(self):
        """End the server that start() has started. One that was there before stays."""
        background, self._background = self._background, None
        if background is not None:
            background.stop()

    def close(self):
        self.stop()
        self._transport.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- calls

    def call(self, command_name, /, **arguments):
        """Run a named command and return its result."""
        answer = self._transport.request("POST", "/commands/" + urllib.parse.quote(command_name, safe=""), None, arguments)
        return answer["result"]

    def discover(self):
        """The commands that there are: a list."""
        return self._transport.request("GET", "/commands")["commands"]

    def health(self):
        return self._transport.request("GET", "/health")

    def capabilities(self):
        return self._transport.request("GET", "/capabilities")

    def get(self, path, query=None):
        """GET a path: what is answered, as a value."""
        return self._transport.request("GET", path, query)

    def post(self, path, body=None, query=None):
        return self._transport.request("POST", path, query, {} if body is None else body)

    def delete(self, path, body=None, query=None):
        return self._transport.request("DELETE", path, query, body)

    def events(self, path, body=None, query=None):
        """The events of a stream as they come, pairs (name, value): POST with a body, else GET."""
        return self._transport.events("GET" if body is None else "POST", path, query, body)


class AsyncClient:
    """The same calls, to be awaited. They run on threads of their own, at most ASYNC_CALLS at once."""

    def __init__(self, url=None, token=None, *, headers=None, timeout=None):
        self._client = Client(url, token, headers=headers, timeout=timeout)
        self._threads = ThreadPoolExecutor(ASYNC_CALLS, "abx-client")

    async def _run(self, function, *args, **kwargs):
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(function, *args, **kwargs))

    @property
    def url(self):
        return self._client.url

    async def start(self, port=8080, *, code=None, timeout=START_SECONDS):
        await self._run(self._client.start, port, code=code, timeout=timeout)
        return self

    async def stop(self):
        await self._run(self._client.stop)

    async def close(self):
        await self._run(self._client.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def call(self, command_name, /, **arguments):
        return await self._run(self._client.call, command_name, **arguments)

    async def discover(self):
        return await self._run(self._client.discover)

    async def health(self):
        return await self._run(self._client.health)

    async def capabilities(self):
        return await self._run(self._client.capabilities)

    async def get(self, path, query=None):
        return await self._run(self._client.get, path, query)

    async def post(self, path, body=None, query=None):
        return await self._run(self._client.post, path, body, query)

    async def delete(self, path, body=None, query=None):
        return await self._run(self._client.delete, path, body, query)

    async def events(self, path, body=None, query=None):
        events = self._client.events(path, body, query)
        end = object()
        try:
            event = await self._run(next, events, end)
            while event is not end:
                yield event
                event = await self._run(next, events, end)
        finally:
            await self._run(events.close)
