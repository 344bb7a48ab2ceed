#!/usr/bin/env python3
"""A process for each of many lines: `baton up --exec-once` beside `xargs -P` and GNU parallel, in turns.

    python3 bench/exec_once.py --baton target/release/baton --lines 10000 --rounds 3

What is not installed is left out by name. Baton keeps books of every line in an SQLite file, and in Redis if a server is
on the PATH; the others keep nothing.
"""

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default="target/release/baton")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    baton = os.path.abspath(arguments.baton)
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "lines")
        with open(lines, "w") as file:
            file.writelines(f"{number}\n" for number in range(arguments.lines))
        server = redis_server(folder)
        try:
            measure(arguments, baton, folder, lines, server)
        finally:
            if server:
                server[0].terminate()
                server[0].wait()


def measure(arguments, baton, folder, lines, server):
    at_once = str(arguments.at_once)
    stores = {"baton on sqlite": None}
    if server:
        stores["baton on redis"] = f"redis://127.0.0.1:{server[1]}/0"
    ways = {"xargs -P": ["xargs", "-P", at_once, "-n", "1", "-a", lines, "true"]}
    if shutil.which("parallel"):
        ways["parallel"] = ["parallel", "--will-cite", "-j", at_once, "-a", lines, "true"]
    else:
        print("GNU parallel is not installed: left out", file=sys.stderr)
    rates = {}
    for round_ in range(arguments.rounds):
        for name, command in ways.items():
            rates.setdefault(name, []).append(rate(command, arguments.lines))
        for name, url in stores.items():
            url = url or f"sqlite:{folder}/{round_}.db"
            command = [baton, "--store", url, "--fleet", f"round{round_}", "up", "-q", "--lines", lines,
                       "--exec-once", "true {}", "--concurrency", at_once, "--until-done"]
            rates.setdefault(name, []).append(rate(command, arguments.lines))
    yardstick = statistics.median(rates["xargs -P"])
    for name, measured in rates.items():
        middle = statistics.median(measured)
        print(f"{name:16} {middle:8.0f} lines/s  {middle / yardstick:5.2f} x xargs -P {at_once}")


def rate(command, lines):
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return lines / (time.perf_counter() - begun)


def redis_server(folder):
    """A server of its own and its port, if there is a program for one."""
    if not shutil.which("redis-server"):
        return None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server, port
        except OSError:
            time.sleep(0.02)
    server.kill()
    return None


if __name__ == "__main__":
    main()
