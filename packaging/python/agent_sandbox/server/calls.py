"""One call, from its question to its answer."""

import inspect
import json
import traceback

from . import frames, loop
from .log import say
from .request import Request
from .responses import SSEResponse, ServerResponse, clean_text, to_json

MESSAGE_MAX = 65536


def _message(error):
    """The text of an exception, in a length that a caller can use."""
    try:
        text = clean_text(error)
    except Exception:
        text = ""
    if len(text) > MESSAGE_MAX:
        text = text[:MESSAGE_MAX] + "…"
    return text or type(error).__name__


def _failure(error, status=500):
    return {"status": status, "error": _message(error), "type": type(error).__name__}


def _report(error, what, call):
    """The traceback goes to the log; the caller gets class and message."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    say("%s raised %s (request %s)\n%s" % (what, type(error).__name__, call.get("request_id"), "".join(lines)))


def _send_failure(channel, failure):
    channel.send(frames.FAILURE, to_json(failure))


class Server:
    """What a worker serves: the functions of a registry and of a table."""

    def __init__(self, registry, table):
        self._registry = registry
        self._table = table

    def serve(self, channel):
        """Wait for a call, and answer it. Gone when the other end has left."""
        call = json.loads(channel.receive()[1].decode("utf-8"))
        body = channel.receive()[1]
        if call["kind"] == "command":
            self._command(channel, call, body)
        else:
            self._route(channel, call, body)

    # ---- commands

    def _command(self, channel, call, body):
        command = self._registry.get(call["name"])
        if command is None:
            _send_failure(channel, {"status": 404, "error": "Unknown command: %s" % call["name"], "type": "ValueError"})
            return
        try:
            positional, named = command.bind(json.loads(body) if body else {})
        except ValueError as error:
            _send_failure(channel, _failure(error, 400))
            return
        try:
            result = to_json(loop.resolve(command.function(*positional, **named), channel.socket))
            if len(result) > frames.PAYLOAD_MAX:
                raise OverflowError("the result is larger than 4 GiB")
        except frames.Gone:
            raise
        except BaseException as error:
            # SystemExit as well: a function that calls sys.exit() ends itself, not the worker.
            _report(error, "command %s" % command.name, call)
            _send_failure(channel, _failure(error))
            return
        channel.send(frames.RESULT, result)

    # ---- routes

    def _route(self, channel, call, body):
        route = self._table.get(call["id"])
        if route is None:
            _send_failure(channel, {"status": 404, "error": "Unknown route: %s" % call["id"], "type": "ValueError"})
            return
        try:
            request = Request(call, json.loads(body) if body else {})
            answer = loop.resolve(route.handler(request), channel.socket)
            if isinstance(answer, (SSEResponse, ServerResponse)):
                pass
            elif route.streaming and (inspect.isgenerator(answer) or inspect.isasyncgen(answer)):
                answer = SSEResponse(answer)
            else:
                answer = ServerResponse.ok(answer)
            encoded = None if isinstance(answer, SSEResponse) else answer.encode()
        except frames.Gone:
            raise
        except BaseException as error:
            _report(error, "route %s" % route.id, call)
            _send_failure(channel, _failure(error))
            return
        if encoded is None:
            self._stream(channel, call, route, answer)
        else:
            self._whole(channel, answer.status, *encoded)

    @staticmethod
    def _whole(channel, status, headers, data):
        head = {"status": status, "headers": headers, "stream": False, "length": len(data)}
        channel.send(frames.HEAD, to_json(head))
        piece = 1 << 30
        for at in range(0, len(data), piece):
            channel.send(frames.DATA, memoryview(data)[at:at + piece])
        channel.send(frames.END)

    @staticmethod
    def _stream(channel, call, route, answer):
        head = {"status": answer.status, "headers": answer.headers, "stream": True, "length": None}
        source = answer.event_iterator
        is_async = hasattr(source, "__aiter__")
        events = loop.iterate(source.__aiter__(), channel.socket) if is_async else iter(source)
        try:
            channel.send(frames.HEAD, to_json(head))
            for event in events:
                if not isinstance(event, (str, bytes, bytearray)):
                    raise TypeError("a stream yields texts, not %s" % type(event).__name__)
                channel.send(frames.DATA, event.encode("utf-8", "replace") if isinstance(event, str) else event)
        except frames.Gone:
            raise
        except BaseException as error:
            # The head is out, so the stream itself has to say it, as the built-in ones do.
            _report(error, "stream %s" % route.id, call)
            body = {"error": _message(error), "type": type(error).__name__}
            channel.send(frames.DATA, SSEResponse.event("error", body).encode("ascii"))
        finally:
            _close(events, route, call)
        channel.send(frames.END)


def _close(events, route, call):
    """End a generator, so that its `finally` runs now. What it raises then is the log's."""
    try:
        if hasattr(events, "close"):
            events.close()
    except frames.Gone:
        pass
    except BaseException as error:
        _report(error, "closing stream %s" % route.id, call)
