"""What the worker itself has to tell."""

import sys


def say(text):
    """A line for the server's log, in one write."""
    try:
        sys.stderr.write(text.rstrip("\n") + "\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        # A template may have closed its standard error, or taken it away: the call goes on.
        pass
