"""Named commands: what @command registers, and how a body becomes the arguments of a function."""

import inspect
import math
import threading
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .responses import clean_text
from .types import STRING, coerce, type_name, type_of_annotation

_MISSING = inspect.Parameter.empty
_INTEGER_MAX = 2 ** 63


@dataclass
class CommandArg:
    """An argument as GET /commands shows it. `required` left out: when neither this nor the function has a default."""

    name: str
    type: Any = STRING
    required: Optional[bool] = None
    default: Any = None
    description: str = ""

    def __post_init__(self):
        self.type = type_name(self.type)


def first_line(text):
    """What a docstring says in its first line."""
    return clean_text(inspect.cleandoc(text).partition("\n")[0].strip()) if text else ""


def scopes_of(scopes):
    """The scopes of a command or route: a tuple of words. One alone may be given without a tuple."""
    found = (scopes,) if isinstance(scopes, str) else tuple(scopes or ())
    for scope in found:
        if not isinstance(scope, str) or not scope or any(c.isspace() for c in scope):
            raise ValueError("%r is no scope" % (scope,))
    return found


def _is_plain(value, depth=0):
    """True for what every JSON parser reads back as the same value, which a default has to be to be shown."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return clean_text(value) == value
    if isinstance(value, int):
        return -_INTEGER_MAX <= value < _INTEGER_MAX
    if isinstance(value, float):
        return math.isfinite(value)
    if depth > 16:
        return False
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item, depth + 1) for key, item in value.items())
    return False


def _signature(function):
    try:
        return inspect.signature(function)
    except NameError:
        # Since Python 3.14 annotations are looked at here, and this one's name is imported for checkers alone.
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.STRING)


def _check_name(name):
    bad = not isinstance(name, str) or name in ("", ".", "..") or "/" in name or any(not c.isprintable() for c in name)
    if bad or len(name.encode("utf-8", "replace")) > 255:
        raise ValueError("%r is no name of a command" % (name,))


def _check_timeout(timeout):
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise ValueError("a timeout is a positive number of seconds, not %r" % (timeout,))


class Command:
    """A registered function. Its arguments are what its signature says, overlaid with the list that was given."""

    def __init__(self, name, function, description, hidden, scopes, args, timeout):
        _check_name(name)
        _check_timeout(timeout)
        self.name = name
        self.function = function
        self.description = first_line(function.__doc__) if description is None else clean_text(description)
        self.hidden = bool(hidden)
        self.scopes = scopes_of(scopes)
        self.timeout = timeout
        self._takes_any = False
        self._positional = []
        self._arguments = self._from_signature()
        self.args = list(self._arguments.values()) if args is None else self._overlay(args)

    def _from_signature(self):
        try:
            signature = _signature(self.function)
        except ValueError:
            # Some functions written in C tell nothing about their parameters.
            self._takes_any = True
            return {}
        scope = getattr(inspect.unwrap(self.function), "__globals__", {})
        found = {}
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._takes_any = True
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append(parameter.name)
            required = parameter.default is _MISSING
            kind = STRING if parameter.annotation is _MISSING else type_of_annotation(parameter.annotation, scope)
            default = None if required else parameter.default
            found[parameter.name] = CommandArg(parameter.name, kind, required, default)
        return found

    def _overlay(self, args):
        shown = []
        for arg in args:
            if not isinstance(arg, CommandArg):
                raise TypeError("args of command %r: %r is no CommandArg" % (self.name, arg))
            own = self._arguments.get(arg.name)
            if own is None and not self._takes_any:
                raise ValueError("command %r has no parameter %r" % (self.name, arg.name))
            if any(arg.name == other.name for other in shown):
                raise ValueError("command %r: argument %r is given twice" % (self.name, arg.name))
            required = arg.required
            if required is None:
                required = arg.default is None and (own is None or own.required)
            shown.append(CommandArg(arg.name, arg.type, bool(required), arg.default, clean_text(arg.description)))
        self._arguments.update((arg.name, arg) for arg in shown)
        return shown

    def bind(self, body):
        """The positional and the keyword arguments for a body. ValueError when it does not fit."""
        values = dict(body) if self._takes_any else {}
        for name, arg in self._arguments.items():
            if name in body:
                values[name] = coerce(name, arg.type, body[name])
            elif arg.required:
                raise ValueError("argument %r is missing" % name)
            elif arg.default is not None:
                values[name] = arg.default
        positional = []
        for name in self._positional:
            if name not in values:
                break
            positional.append(values.pop(name))
        return positional, values

    def describe(self):
        return {
            "name": self.name,
            "description": self.description,
            "args": [
                {
                    "name": arg.name,
                    "type": arg.type,
                    "required": arg.required,
                    "default": arg.default if _is_plain(arg.default) else None,
                    "description": arg.description,
                }
                for arg in self.args
            ],
            "hidden": self.hidden,
            "scopes": list(self.scopes),
            "timeout": self.timeout,
        }


class CommandRegistry:
    """Commands by name. It is frozen when the server starts."""

    def __init__(self):
        self._commands = {}
        self._frozen = False
        self._lock = threading.Lock()

    def register(self, name, function, description=None, hidden=False, scopes=(), args=None, timeout=None):
        """Add a function. ValueError when there is one of that name, RuntimeError once the server has started."""
        if not callable(function):
            raise TypeError("command %r: %r cannot be called" % (name, function))
        made = Command(name, function, description, hidden, scopes, args, timeout)
        with self._lock:
            if self._frozen:
                raise RuntimeError("command %r comes too late: register commands before the server starts" % name)
            if name in self._commands:
                raise ValueError("command %r is defined twice" % name)
            self._commands[name] = made
        return made

    def command(self, name=None, *, description=None, hidden=False, scopes=(), args=None, timeout=None) -> Callable:
        """The decorator: `@registry.command("name", …)`, `@registry.command()` or `@registry.command`."""
        if callable(name):
            self.register(name.__name__, name)
            return name

        def register(function):
            own = name if name is not None else function.__name__
            self.register(own, function, description, hidden, scopes, args, timeout)
            return function

        return register

    def get(self, name):
        return self._commands.get(name)

    def names(self):
        return sorted(self._commands)

    def freeze(self):
        with self._lock:
            self._frozen = True

    @property
    def frozen(self):
        return self._frozen

    def describe(self):
        """The rows of the table, by name, so that the order of imports does not matter."""
        return [self._commands[name].describe() for name in self.names()]

    def __contains__(self, name):
        return name in self._commands

    def __len__(self):
        return len(self._commands)

    def __iter__(self):
        return iter([self._commands[name] for name in self.names()])


_default = CommandRegistry()


def default_registry():
    """The registry that @command fills and start() serves."""
    return _default


def command(name=None, *, description=None, hidden=False, scopes=(), args=None, timeout=None):
    """Register a function as a command: `@command("hello", description="Say hello.")`."""
    return _default.command(name, description=description, hidden=hidden, scopes=scopes, args=args, timeout=timeout)
