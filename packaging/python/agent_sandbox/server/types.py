"""What an annotation says about an argument, and how a JSON value becomes one of that type."""

import typing

STRING = "string"
INTEGER = "integer"
FLOAT = "float"
BOOLEAN = "boolean"

_OF_CLASS = {int: INTEGER, float: FLOAT, bool: BOOLEAN, str: STRING}
_OF_WORD = {"int": INTEGER, "float": FLOAT, "bool": BOOLEAN, "str": STRING}
_NAMES = (STRING, INTEGER, FLOAT, BOOLEAN)

_TRUE = ("true", "yes", "1")
_FALSE = ("false", "no", "0")
_NOUN = {INTEGER: "an integer", FLOAT: "a number", BOOLEAN: "a boolean"}
_SHOWN = 60


def type_name(given):
    """The name of a type that a CommandArg was given: one of the names themselves, or a class."""
    name = _OF_CLASS.get(given, given) if isinstance(given, (str, type)) else None
    name = _OF_WORD.get(name, name)
    if name not in _NAMES:
        raise ValueError("%r is no type of an argument: use %s" % (given, ", ".join(_NAMES)))
    return name


def _without_none(annotation):
    """`Optional[X]` and `X | None` say X; `Annotated[X, …]` does as well."""
    annotation = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    members = getattr(annotation, "__args__", None)
    is_union = getattr(annotation, "__origin__", None) is typing.Union or type(annotation).__name__ == "UnionType"
    if is_union and members:
        others = [member for member in members if member is not type(None)]
        return _without_none(others[0]) if len(others) == 1 else annotation
    return annotation


def _of_text(text):
    """An annotation that cannot be evaluated here: `int | None` before Python 3.10, or a name imported for checkers alone."""
    text = text.strip().strip("'\"").replace(" ", "")
    for prefix in ("typing.Optional[", "Optional["):
        if text.startswith(prefix) and text.endswith("]"):
            text = text[len(prefix):-1]
    words = [word for word in text.split("|") if word != "None"]
    return _OF_WORD.get(words[0], STRING) if len(words) == 1 else STRING


def type_of_annotation(annotation, scope):
    """The type of an argument with this annotation; `scope` holds the names that a text in it may use."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, scope)  # the template's own text, as typing.get_type_hints does it
        except Exception:
            return _of_text(annotation)
    if isinstance(annotation, typing.ForwardRef):
        return _of_text(annotation.__forward_arg__)
    if isinstance(annotation, str):
        return _of_text(annotation)
    found = _without_none(annotation)
    if isinstance(found, typing.ForwardRef):
        return _of_text(found.__forward_arg__)
    try:
        return _OF_CLASS.get(found, STRING)
    except TypeError:
        return STRING


def _boolean(value):
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(word)


_COERCE = {STRING: str, INTEGER: int, FLOAT: float, BOOLEAN: _boolean}


def coerce(name, kind, value):
    """The value of an argument, from what the caller sent. A null goes through as it is. ValueError when it cannot be."""
    if value is None:
        return None
    try:
        return _COERCE[kind](value)
    except (TypeError, ValueError, OverflowError):
        shown = repr(value)
        if len(shown) > _SHOWN:
            shown = shown[:_SHOWN] + "…"
        raise ValueError("argument %r must be %s, not %s" % (name, _NOUN.get(kind, "a string"), shown)) from None
