"""
What a client raises. Each class is a SandboxError, and where Python has an exception of that meaning it is that one, too:
`except FileNotFoundError` works. An error of another type, such as one that a command raised, is a plain SandboxError whose `type` says it.
"""


class SandboxError(Exception):
    """A refusal or failure that the server answered with."""

    def __init__(self, message, *, status=None, type=None, code=None, rule=None, endpoint=None, request_id=None, retry_after=None,
                 body=None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.code = code
        self.rule = rule
        self.endpoint = endpoint
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body

    def __str__(self):
        return self.message


class SandboxValueError(SandboxError, ValueError):
    pass


class AuthError(SandboxError):
    pass


class SandboxPermissionError(SandboxError, PermissionError):
    pass


class SandboxFileNotFoundError(SandboxError, FileNotFoundError):
    pass


class SandboxFileExistsError(SandboxError, FileExistsError):
    pass


class SandboxProcessLookupError(SandboxError, ProcessLookupError):
    pass


class SandboxTimeoutError(SandboxError, TimeoutError):
    pass


class ResourceError(SandboxError):
    pass


class RateLimitError(SandboxError):
    pass


class GitError(SandboxError):
    pass


class SandboxRuntimeError(SandboxError, RuntimeError):
    pass


class SandboxOSError(SandboxError, OSError):
    pass


class SandboxConnectionError(SandboxError, ConnectionError):
    """Nothing answers, or the connection broke."""


_CLASSES = {
    "ValueError": SandboxValueError,
    "AuthError": AuthError,
    "PermissionError": SandboxPermissionError,
    "FileNotFoundError": SandboxFileNotFoundError,
    "FileExistsError": SandboxFileExistsError,
    "ProcessLookupError": SandboxProcessLookupError,
    "TimeoutError": SandboxTimeoutError,
    "ResourceError": ResourceError,
    "RateLimitError": RateLimitError,
    "GitError": GitError,
    "RuntimeError": SandboxRuntimeError,
    "OSError": SandboxOSError,
}


def _retry_after(headers):
    text = headers.get("Retry-After") or ""
    return int(text) if text.isdigit() else None


def error_of(status, headers, body):
    """The exception for an answer that is no success. `body` is the parsed one, or None where it is not JSON."""
    found = body if isinstance(body, dict) else {}
    error = found.get("error")
    if isinstance(error, dict):
        # The agents' endpoints have an envelope of their own.
        found = error
        error = error.get("message")
    kind = found.get("type")
    request_id = headers.get("X-Request-Id")
    message = error if isinstance(error, str) else "HTTP status %d" % status
    return _CLASSES.get(kind, SandboxError)(
        message, status=status, type=kind, code=found.get("code"), rule=found.get("rule"), endpoint=found.get("endpoint"),
        request_id=request_id, retry_after=_retry_after(headers), body=body)
