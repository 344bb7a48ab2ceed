"""Many followers of one call on one gateway: memory of each, and how long others wait meanwhile.

    python3 bench/gateway/followers.py [--baton PATH] [--followers N]
"""

import argparse
import os
import pathlib
import resource
import selectors
import signal
import socket
import subprocess
import tempfile
import time


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def ask(port, data, read=65536):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
        peer.sendall(data)
        return peer.recv(read)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--baton", default="target/release/baton")
    parser.add_argument("--followers", type=int, default=10_000)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (given.followers + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    baton = str(pathlib.Path(given.baton).resolve())
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HOME": folder, "BATON_STORE": f"sqlite:{folder}/baton.db", "PATH": os.environ["PATH"]}
        flags = ["up", "--queue", "work", "--handler", "noop", "--workers", "0", "--listen", "0"]
        log = pathlib.Path(folder, "log")
        up = subprocess.Popen([baton, *flags], env=environment, cwd=folder, stderr=log.open("w"))
        try:
            while "gateway=http://" not in log.read_text():
                time.sleep(0.1)
            port = int(log.read_text().split("gateway=http://127.0.0.1:")[1].split()[0])
            while b" 200 " not in ask(port, b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n"):
                time.sleep(0.1)
            # A call that nobody works for goes on.
            push = b"POST /push/idle HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n1"
            assert b" 202 " in ask(port, push)
            before = resident(up.pid)
            follow = b"GET /jobs/idle/1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n"
            peers = []
            for _ in range(given.followers):
                peer = socket.create_connection(("127.0.0.1", port), timeout=30)
                peer.sendall(follow)
                peers.append(peer)
            for peer in peers:
                assert b" 200 " in peer.recv(4096)
            grown = resident(up.pid) - before
            times = []
            for _ in range(2000):
                begun = time.monotonic()
                assert b" 202 " in ask(port, push)
                times.append(time.monotonic() - begun)
            times.sort()
            print(f"{len(peers)} followers: {grown / len(peers):.1f} KiB each ({before} KiB before); a push beside them, "
                  f"connection included: p50 {times[1000] * 1000:.1f} ms, p99 {times[1980] * 1000:.1f} ms")
            # The end of the call reaches each of them.
            begun = time.monotonic()
            worker = subprocess.Popen([baton, "node", "--queue", "idle", "--handler", "noop", "--quiet"], env=environment, cwd=folder)
            ends, selector = 0, selectors.DefaultSelector()
            for peer in peers:
                selector.register(peer, selectors.EVENT_READ)
            texts = {peer: b"" for peer in peers}
            while ends < len(peers) and time.monotonic() - begun < 60:
                for key, _ in selector.select(1):
                    peer = key.fileobj
                    texts[peer] += peer.recv(4096)
                    if b"event: end" in texts[peer]:
                        ends += 1
                        selector.unregister(peer)
            print(f"{ends} of them were told its end, the last {time.monotonic() - begun:.1f} s after a worker was started")
            worker.send_signal(signal.SIGTERM)
            worker.wait(30)
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(30)


if __name__ == "__main__":
    main()
