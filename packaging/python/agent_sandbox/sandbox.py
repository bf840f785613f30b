"""The shape that a template's client knows: a sandbox, whose `server` is called."""

import os

from .client import AsyncClient


class _Server(AsyncClient):
    """The client of a sandbox. Where the sandbox's template is a directory of this machine, its commands.py is what is started."""

    def __init__(self, code, **options):
        super().__init__(**options)
        self._code = code

    async def start(self, port=8080, *, code=None, **options):
        return await super().start(port, code=code or self._code, **options)


class Sandbox:
    """
    A server, wherever it runs: at `url`, else at ABX_TEMPLATE_URL, else one of this machine that `server.start(port)` brings up. The
    name of a template says which commands.py that serves if it is a directory that has one; other names are for platforms that make
    containers, and mean nothing here.
    """

    def __init__(self, template=None, **options):
        code = os.path.join(template, "commands.py") if template else None
        self.template = template
        self.server = _Server(code if code and os.path.isfile(code) else None, **options)

    @classmethod
    async def create(cls, template=None, *, url=None, token=None, headers=None, timeout=None):
        return cls(template, url=url, token=token, headers=headers, timeout=timeout)

    async def close(self):
        await self.server.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()
