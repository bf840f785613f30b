#!/usr/bin/env python3
"""
What a command in Python costs: rates and times of one that says hello, one that waits for 5 ms and one that computes for about 1 ms,
at 1 and 16 connections, beside a ThreadingHTTPServer of Python that does the same; and what 10,000 calls leave behind.

    ABX_BUILDDIR=build t/bench/python.py [rounds [seconds]]

Needs wrk. Rounds are interleaved, since machines drift: quote the medians and ratios.
"""
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib", "python"))
from server import Server, children_of, free_port
from tap import wait_for

CODE = '''
import time
from agent_sandbox.server import command, start

@command()
def hello(name: str = "World"):
    return "Hello, %s!" % name

@command()
def waits():
    time.sleep(0.005)
    return True

@command()
def computes():
    return sum(i * i for i in range(10000))

start(0)
'''
SCRIPT = 'wrk.method = "POST"; wrk.body = "{\\"name\\": \\"Ada\\"}"; wrk.headers["Content-Type"] = "application/json"\n'

rounds, seconds = [int(word) for word in sys.argv[1:3]] + [5, 3][len(sys.argv) - 1:]


def measure(port, name, connections):
    """Requests a second, and the median of their times in microseconds."""
    said = subprocess.run(["wrk", "-t1", "-c%d" % connections, "-d%ds" % seconds, "--latency", "-s", script,
                           "http://127.0.0.1:%d/commands/%s" % (port, name)], stdout=subprocess.PIPE, universal_newlines=True).stdout
    if "Non-2xx" in said:
        raise SystemExit(said)
    number, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", said).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1)), float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def state(server):
    """Of abx-commands and the worker: resident KiB, descriptors, threads."""
    found = []
    for pid in children_of(server.process.pid):
        with open("/proc/%d/comm" % pid) as file:
            name = file.read().strip()
        if name == "abx-commands" or name.startswith("python"):
            with open("/proc/%d/status" % pid) as file:
                status = dict(line.split(":", 1) for line in file)
            found.append((name, int(status["VmRSS"].split()[0]), len(os.listdir("/proc/%d/fd" % pid)), int(status["Threads"])))
    return sorted(found)


with Server(CODE, env={"ABX_LOG_LEVEL": "warning"}) as ours:
    script = ours.write("post.lua", SCRIPT)
    port = free_port()
    theirs = subprocess.Popen([sys.executable, os.path.join(HERE, "python_server.py"), str(port), ours.dir], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: subprocess.run(["wrk", "-t1", "-c1", "-d1s", "http://127.0.0.1:%d/health" % port], stdout=subprocess.PIPE).stdout.count(b"Latency"))
        for connections in (1, 16):
            results = {}
            for _ in range(rounds):
                for name in ("hello", "waits", "computes"):
                    for who, at in (("ours", ours.port), ("theirs", port)):
                        results.setdefault((name, who), []).append(measure(at, name, connections))
            for name in ("hello", "waits", "computes"):
                rate, p50 = [{who: statistics.median(pair[i] for pair in results[name, who]) for who in ("ours", "theirs")} for i in (0, 1)]
                print("%2d connections  %-8s  %6.0f requests/s, ThreadingHTTPServer %6.0f (%.2f of it)   p50 %6.0f us, %6.0f (%.2f of it)" % (
                    connections, name, rate["ours"], rate["theirs"], rate["ours"] / rate["theirs"], p50["ours"], p50["theirs"],
                    p50["ours"] / p50["theirs"]), flush=True)
    finally:
        theirs.terminate()
    print("process, resident KiB, descriptors, threads after the load:", state(ours))
    for _ in range(10000):
        ours.command("hello", name="Ada")
    print("and after 10,000 calls more:                               ", state(ours))
