"""What the handler of a route returns."""

import json
import re

JSON_TYPE = "application/json; charset=utf-8"

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*\Z")


def clean_text(text):
    """A text without halves of characters, which JSON can write but hardly anybody reads."""
    return _SURROGATE.sub("\ufffd", str(text))


def _with_text_keys(value):
    """A copy in which every key is one that JSON can have."""
    if isinstance(value, dict):
        plain = (str, int, float, bool, type(None))
        return {key if isinstance(key, plain) else str(key): _with_text_keys(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(item) for item in value]
    return value


def to_json(value):
    """A value as JSON text in bytes. What JSON does not know becomes what str() makes of it, as a value and as a key."""
    try:
        text = json.dumps(value, default=str)
    except TypeError:
        text = json.dumps(_with_text_keys(value), default=str)
    return text.encode("ascii")


def header_pairs(headers):
    """Headers as a list of pairs, checked: no line break gets into the head of an answer."""
    pairs = []
    for name, value in headers.items() if hasattr(headers, "items") else headers or ():
        name, value = str(name), clean_text(value)
        if not _TOKEN.match(name) or not _VALUE.match(value):
            raise ValueError("%r: %r is no header" % (name, value))
        pairs.append([name, value])
    return pairs


def _check_status(status):
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise ValueError("%r is no status of an answer" % (status,))
    return int(status)


class ServerResponse:
    """An answer. The body is any value, sent as JSON; bytes, or a text beside a Content-Type of its own, go out as they are."""

    def __init__(self, status=200, body=None, headers=None):
        self.status = _check_status(status)
        self.body = {} if body is None else body
        self.headers = header_pairs(headers or {})

    @classmethod
    def ok(cls, body=None, *, status=200, headers=None):
        return cls(status, body, headers)

    @classmethod
    def error(cls, status, message, type="ValueError", *, code=None, headers=None):
        body = {"error": str(message), "type": str(type)}
        if code is not None:
            body["code"] = str(code)
        return cls(status, body, headers)

    def encode(self):
        """Headers and body, ready to be sent."""
        own_type = any(name.lower() == "content-type" for name, _ in self.headers)
        if isinstance(self.body, (bytes, bytearray, memoryview)):
            kind, data = "application/octet-stream", bytes(self.body)
        elif isinstance(self.body, str) and own_type:
            kind, data = None, self.body.encode("utf-8", "replace")
        else:
            kind, data = JSON_TYPE, to_json(self.body)
        return self.headers + ([] if own_type else [["Content-Type", kind]]), data


class SSEResponse:
    """A stream of events. The iterator, which may be an async one, yields texts `event: <name>\\ndata: <json>\\n\\n`."""

    def __init__(self, event_iterator, *, status=200, headers=None):
        if not hasattr(event_iterator, "__aiter__") and not hasattr(event_iterator, "__iter__"):
            raise TypeError("event_iterator: %r cannot be iterated over" % (event_iterator,))
        self.event_iterator = event_iterator
        self.status = _check_status(status)
        self.headers = header_pairs(headers or {})

    @staticmethod
    def event(name, data):
        """The text of one event."""
        return "event: %s\ndata: %s\n\n" % (name, to_json(data).decode("ascii"))
