"""TAP for tests in Python."""

import sys
import time

_count = 0
_failed = 0

PATIENCE = 30


def ok(passed, name):
    global _count, _failed
    _count += 1
    if not passed:
        _failed += 1
    print("%sok %d - %s" % ("" if passed else "not ", _count, name.replace("#", "\\#")), flush=True)
    return bool(passed)


def diag(text):
    for line in str(text).splitlines():
        print("# " + line, file=sys.stderr, flush=True)


def equal(got, expected, name):
    if ok(got == expected, name):
        return True
    diag("     got: %.1000r" % (got,))
    diag("expected: %.1000r" % (expected,))
    return False


def matches(got, pattern, name):
    import re

    if not ok(re.search(pattern, got or "", re.S), name):
        diag("     got: %.3000r" % (got,))
        diag(" pattern: %r" % (pattern,))


def raises(kind, function, pattern, name):
    """The exception that was raised, or None."""
    try:
        function()
    except kind as error:
        matches(str(error), pattern, name)
        return error
    ok(False, name + ": nothing was raised")
    return None


def wait_for(condition):
    """Wait until the condition holds. Returns what it said last."""
    end = time.monotonic() + PATIENCE
    found = condition()
    while not found and time.monotonic() < end:
        time.sleep(0.01)
        found = condition()
    return found


def skip_all(reason):
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def done():
    print("1..%d" % _count, flush=True)
    sys.exit(1 if _failed else 0)
