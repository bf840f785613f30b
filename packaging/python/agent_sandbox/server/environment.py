"""Variables that a worker and its children must not have: they go out of os.environ, and out of what /proc/<pid>/environ shows."""

import os

WORKER_FDS = "ABX_WORKER_FDS"


def is_own(name):
    """True for the server's own variables, the token above all."""
    return name.startswith(b"ABX_")


def _overwrite(unwanted):
    """
    The kernel shows the memory in which it laid down the environment at the program's start; removing a variable does
    not touch it, so its bytes are overwritten where they are.
    """
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    if not 0 < start < end:
        return
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        at = start
        for entry in os.pread(memory.fileno(), end - start, start).split(b"\0"):
            name, equals, _ = entry.partition(b"=")
            if equals and unwanted(name):
                os.pwrite(memory.fileno(), b"\0" * len(entry), at)
            at += len(entry) + 1


def remove(unwanted):
    """Take the variables out for which unwanted(name) is true; names are bytes. OSError when /proc cannot be written to."""
    for name in list(os.environb):
        if unwanted(name):
            del os.environb[name]
    _overwrite(unwanted)
