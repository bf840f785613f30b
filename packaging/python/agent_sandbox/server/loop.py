"""
The one event loop of a worker, on a thread of its own, on which every async function runs. asyncio is imported with the first of
them: it takes longer to load than all the rest of the package.
"""

import inspect
import os
import threading

from .frames import Gone
from .log import say

_lock = threading.Lock()
_loop = None


def _ensure_loop():
    global _loop
    import asyncio

    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(_loop,), name="abx-loop", daemon=True).start()
    return _loop


def _run(loop):
    """
    Run the loop until it is closed. All calls share it, so none may end it: not with stop(), and not with SystemExit, which goes
    through a task to whoever awaits it and through the loop as well.
    """
    global _loop
    import asyncio

    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            pass
        except BaseException as error:
            say("abx: the event loop of the async functions cannot go on: %s: %s" % (type(error).__name__, error))
            break
    # It is gone with what ran on it; the next call begins another.
    with _lock:
        if _loop is loop:
            _loop = None


async def _attend(awaitable, sock):
    """Await something, and cancel it as soon as the other end of its call's socket has gone."""
    import asyncio

    loop = asyncio.get_running_loop()
    owner = os.getpid()
    task = asyncio.ensure_future(awaitable)
    gone = False

    def leave():
        nonlocal gone
        gone = True
        loop.remove_reader(sock)
        task.cancel()

    # Nothing but its end ever comes on the socket until a call has been answered.
    loop.add_reader(sock, leave)
    try:
        return await task
    except asyncio.CancelledError:
        if gone:
            raise Gone() from None
        raise
    finally:
        if os.getpid() != owner:
            # The function forked, and this is the child, which has come to its end: the call is the parent's.
            os._exit(0)
        loop.remove_reader(sock)


def _wait(coroutine):
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, _ensure_loop()).result()


def run(awaitable, sock):
    """Run an awaitable to its end, from a thread that serves a call. Gone when the caller leaves first."""
    return _wait(_attend(awaitable, sock))


# Nothing that can be awaited: most results are of these types, which saves asking.
_PLAIN = frozenset((str, int, float, bool, dict, list, type(None)))


def resolve(value, sock):
    """What a function returned or, of an async one, what it returns in the end."""
    return run(value, sock) if type(value) not in _PLAIN and inspect.isawaitable(value) else value


def iterate(iterator, sock):
    """Go through an async iterator from a thread that serves a call. Closed as a generator is."""

    async def following():
        return await iterator.__anext__()

    try:
        while True:
            try:
                item = run(following(), sock)
            except StopAsyncIteration:
                return
            yield item
    finally:
        if hasattr(iterator, "aclose"):
            _wait(iterator.aclose())
