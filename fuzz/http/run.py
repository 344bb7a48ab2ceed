"""Tries to break the gateway of a fleet of its own: schemathesis by its description, then peers that mean harm.

    python3 fuzz/http/run.py [--baton PATH] [--seed N] [--examples N]

It fails if anything is answered with a 5xx that is not meant, if the process dies, panics or keeps memory, or if the books do
not balance afterwards. Schemathesis is installed with pip into a folder under target/.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import venv

import hostile

HERE = pathlib.Path(__file__).resolve().parent
# How much more memory the process may have in the end, beside what caches of its store take.
GROWTH_KIB = 96 << 10


def installed(folder):
    program = folder / "bin" / "schemathesis"
    if not program.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "-q", "install", "-r", HERE / "requirements.txt"], check=True)
    return program


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def until(what, condition):
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"never: {what}")
        time.sleep(0.1)


def is_ready(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5).status == 200
    except OSError:
        return False


def sweep(baton, environment, folder, over):
    """Works off every queue that is called and that nobody works: its streams would have no end."""
    run = lambda *flags: subprocess.run([baton, *flags], env=environment, cwd=folder, capture_output=True, text=True)
    while not over.wait(1):
        status = run("status", "--json")
        queues = json.loads(status.stdout)["queues"] if status.returncode == 0 else []
        for queue in queues:
            if queue["ready"] and queue["name"] not in ("work", "subset-sum"):
                run("node", "--queue", queue["name"], "--handler", "noop", "--until-done", "--quiet")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--baton", default="target/release/baton")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--examples", type=int, default=100)
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    schemathesis = installed(pathlib.Path("target/fuzz-http").resolve())
    baton, failed = str(pathlib.Path(given.baton).resolve()), []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HOME": folder, "BATON_STORE": f"sqlite:{folder}/baton.db", "PATH": os.environ["PATH"]}
        log = open(f"{folder}/log", "w+")
        flags = ["up", "--queue", "work", "--handler", "noop", "--workers", "0", "--recipes", "--listen", "0"]
        up = subprocess.Popen([baton, *flags], env=environment, cwd=folder, stderr=log, stdout=subprocess.DEVNULL)
        over = threading.Event()
        sweeper = threading.Thread(target=sweep, args=(baton, environment, folder, over))
        try:
            sweeper.start()
            said = lambda: pathlib.Path(log.name).read_text()
            until("the gateway is there", lambda: "gateway=http://" in said())
            port = int(said().split("gateway=http://127.0.0.1:")[1].split()[0])
            until("it is ready", lambda: is_ready(port))
            before = resident(up.pid)
            url = f"http://127.0.0.1:{port}/api/openapi.json"
            checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
            arguments = ["run", url, "--checks", checks, "--max-examples", str(given.examples), "--seed", str(given.seed)]
            arguments += ["--request-timeout", "20", "--no-color", "--generation-database", "none"]
            ran = subprocess.run([schemathesis, *arguments], env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)}, cwd=folder)
            if ran.returncode:
                failed.append("schemathesis found something")
            try:
                hostile.run(port, given.seed)
            except AssertionError as error:
                failed.append(str(error))
            if up.poll() is not None:
                failed.append(f"the process ended with {up.returncode}")
            else:
                grown = resident(up.pid) - before
                print(f"memory: {before} KiB before, {grown} KiB more in the end")
                if grown > GROWTH_KIB:
                    failed.append(f"{grown} KiB more memory")
        finally:
            over.set()
            sweeper.join()
            if up.poll() is None:
                up.send_signal(signal.SIGTERM)
                up.wait(30)
        if "a fault in baton" in said():
            failed.append("a panic: " + said()[-500:])
        audit = subprocess.run([baton, "audit", "--deep", "--json"], env=environment, cwd=folder, capture_output=True, text=True)
        if audit.returncode or not json.loads(audit.stdout)["balanced"]:
            failed.append(f"the books: {audit.stdout}{audit.stderr}")
    for what in failed:
        print(f"FAILED: {what}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
