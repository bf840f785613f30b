#!/usr/bin/env python3
# Registries and tables by themselves: what is refused, and when.
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "t", "lib", "python"), os.path.join(TOP, "packaging", "python")]
from agent_sandbox.server import (CapabilityGroup, CommandArg, CommandRegistry, RouteTable, SandboxServer, ServerResponse, SSEResponse,
                                  command, default_registry, default_table)
from agent_sandbox.server.types import type_of_annotation
from tap import done, equal, ok, raises
from typing import List, Optional, Union

import ast

for at, _, names in os.walk(os.path.join(TOP, "packaging")):
    for name in names:
        if name.endswith(".py"):
            with open(os.path.join(at, name)) as file:
                try:
                    ok(ast.parse(file.read(), name, feature_version=(3, 8)), name + " is Python 3.8")
                except SyntaxError as error:
                    ok(False, "%s is Python 3.8: %s" % (name, error))

registry = CommandRegistry()
registry.register("a", lambda: 1)
raises(ValueError, lambda: registry.register("a", lambda: 1), "'a' is defined twice", "a name defined twice")
for name in ("", "a/b", ".", "..", "a\n", 5, None, "x" * 256):
    raises(ValueError, lambda: registry.register(name, lambda: 1), "no name of a command", "no name: %.20r" % (name,))
raises(TypeError, lambda: registry.register("b", 5), "cannot be called", "no function")
raises(ValueError, lambda: registry.register("b", lambda x: 1, args=[CommandArg("y")]), "no parameter 'y'", "an argument that the function has not")
raises(ValueError, lambda: registry.register("b", lambda x: 1, args=[CommandArg("x"), CommandArg("x")]), "given twice", "an argument twice")
raises(TypeError, lambda: registry.register("b", lambda x: 1, args=["x"]), "no CommandArg", "an argument that is none")
raises(ValueError, lambda: CommandArg("x", "number"), "no type of an argument", "an unknown type")
for timeout in (0, -1, float("nan"), float("inf"), "5", True):
    raises(ValueError, lambda: registry.register("b", lambda: 1, timeout=timeout), "positive number", "a timeout of %r" % (timeout,))
raises(ValueError, lambda: registry.register("b", lambda: 1, scopes=("a b",)), "no scope", "a scope with a blank")
registry.register("b", lambda: 1, scopes="one", timeout=1.5)
equal(registry.describe()[1], {"name": "b", "description": "", "args": [], "hidden": False, "scopes": ["one"], "timeout": 1.5}, "scopes, timeout")
equal([CommandArg("x", kind).type for kind in (int, float, bool, str, "int", "integer")],
      ["integer", "float", "boolean", "string", "integer", "integer"], "types by class and by name")


def defaults(a=object(), b=float("nan"), c=2 ** 63, d={1: 2}, e=(1, "x"), f={"k": [None]}, g=-2 ** 63):
    return 1


registry.register("defaults", defaults)
equal([arg["default"] for arg in registry.describe()[2]["args"]], [None, None, None, None, (1, "x"), {"k": [None]}, -2 ** 63],
      "only defaults that JSON can show, so that the table is the same in every process")
equal(registry.get("defaults").bind({}), ([], {"a": defaults.__defaults__[0], "b": defaults.__defaults__[1], "c": 2 ** 63, "d": {1: 2},
                                               "e": (1, "x"), "f": {"k": [None]}, "g": -2 ** 63}), "the function gets its own all the same")
registry.register("min", min)
registry.freeze()
raises(RuntimeError, lambda: registry.register("c", lambda: 1), "too late", "a frozen registry")


@command
def bare():
    """Bare."""


ok("bare" in default_registry() and bare() is None, "@command without parentheses leaves the function as it is")
for annotation, expected in ((int, "integer"), (float, "float"), (bool, "boolean"), (str, "string"), (list, "string"), (Optional[int], "integer"),
                             (Union[int, str], "string"), (Union[None, bool], "boolean"), (List[int], "string"), ("int", "integer"),
                             ("Optional[float]", "float"), ("typing.Optional[bool]", "boolean"), ("int | None", "integer"),
                             ("None|float", "float"), ("int | str", "string"), ("Unknown", "string"), ("'int'", "integer"),
                             (Optional["int"], "integer"), (5, "string"), ([], "string"), (None, "string")):
    equal(type_of_annotation(annotation, {}), expected, "annotation %r" % (annotation,))

table = RouteTable()
raises(ValueError, lambda: table.disable_group(CapabilityGroup.CORE), "core", "core cannot be disabled")
raises(ValueError, lambda: table.disable_group("core"), "core", "nor by its name")
raises(ValueError, lambda: table.enable_group("cores"), "no group", "an unknown group")
table.enable_group(CapabilityGroup.CORE)
table.enable_group(CapabilityGroup.DEV_TOOLS)
table.enable_group("agents")
table.disable_group("dev_tools")
equal(table.groups(), {"core": True, "dev_tools": False, "agents": True}, "the last word counts")
equal(str(CapabilityGroup.FILE_OPS) + CapabilityGroup.FILE_OPS.value, "file_opsfile_ops", "a group's name")
table.route("GET", "/a/{b}", group="file_ops", name="mine")(lambda request: {})
raises(ValueError, lambda: table.route("GET", "/a/{c}/")(lambda request: {}), "defined twice", "the same requests")
raises(ValueError, lambda: table.route("POST", "/x", name="mine")(lambda request: {}), "defined twice", "the same name")
table.route("POST", "/a/{c}")(lambda request: {})
table.route("GET", "/a/b")(lambda request: {})
equal([route.id for route in table], ["mine", "POST /a/{c}", "GET /a/b"], "other methods and literal paths are other routes")
raises(ValueError, lambda: table.route("PUT", "/x")(lambda request: {}), "method", "a method that there is not")
raises(ValueError, lambda: table.route("GET", "/x", group="no")(lambda request: {}), "no group", "a group that there is not")
for path in ("x", "", "/a//b", "/a b", "/{a}/{a}", "/{a", "/a{b}", "/a?b", "/a#b", "/%41", "/../a", "/./a", "/a\nb", "/{}", "/{1}", None):
    raises(ValueError, lambda: table.route("GET", path)(lambda request: {}), "path", "no path: %r" % (path,))
table.freeze()
raises(RuntimeError, lambda: table.route("GET", "/y")(lambda request: {}), "too late", "a frozen table")
raises(RuntimeError, lambda: table.disable_group("agents"), "too late", "and its groups")
ok(default_table() is default_table(), "one default table")

raises(ValueError, lambda: ServerResponse(99), "no status", "a status that there is not")
raises(ValueError, lambda: ServerResponse.error(True, "x"), "no status", "nor that")
raises(ValueError, lambda: ServerResponse.ok({}, headers={"a b": "c"}), "no header", "a header that is none")
raises(TypeError, lambda: SSEResponse(event_iterator=5), "iterated", "an iterator that is none")
raises(ValueError, lambda: SandboxServer(registry=CommandRegistry()).serve(port="9000"), "no port", "a port that is none")
raises(ValueError, lambda: SandboxServer(registry=CommandRegistry()).serve(port=70000), "no port", "a port that there is not")
done()
