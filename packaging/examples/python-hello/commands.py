"""The container's main process: its commands and routes, and the server that serves them."""

import itertools
import time

from agent_sandbox.server import CapabilityGroup, ServerResponse, SSEResponse, command, default_table, start

table = default_table()
visits = itertools.count(1)


@command("hello", description="Say hello.")
def hello(name: str = "World") -> str:
    return f"Hello, {name}!"


@command("visit", description="Count the calls: what lives in this module lives from call to call.")
def visit() -> int:
    return next(visits)


@command(hidden=True)
def _debug_info() -> dict:
    return {"ok": True}


@table.route("GET", "/hello/{name}", group=CapabilityGroup.COMMANDS, summary="Say hello.")
def hello_route(request: object) -> ServerResponse:
    name = getattr(request, "path_params", {}).get("name", "World")
    return ServerResponse.ok({"greeting": f"Hello, {name}!"})


@table.route("GET", "/ticks", group=CapabilityGroup.COMMANDS, streaming=True, summary="Tick as often as asked.")
def ticks(request) -> SSEResponse:
    def events():
        for i in range(int(request.query.get("count", "3"))):
            yield SSEResponse.event("tick", {"tick": i})
            time.sleep(0.1)
        yield SSEResponse.event("end", {})

    return SSEResponse(event_iterator=events())


if __name__ == "__main__":
    start(9000)
