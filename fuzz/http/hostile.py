"""Peers that mean harm, over bare sockets: each says what it expects, and none may be answered with a 5xx that is not meant."""

import random
import resource
import socket
import time

HEAD_SECONDS = 10
MEANT = {503}
# A connection that is closed with much of a head unread may take the answer along.
TOO_LONG = {414, 431, None}


class Gateway:
    def __init__(self, port):
        self.port = port

    def connect(self):
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return peer

    def status(self, data, patience=20):
        """The status of the answer to these bytes; nothing if there is none in time."""
        with self.connect() as peer:
            try:
                peer.sendall(data)
                peer.settimeout(patience)
                answer = peer.recv(65536)
            except OSError:
                return None
        words = answer.split(b" ", 2)
        return int(words[1]) if answer.startswith(b"HTTP/1.") and len(words) > 1 else None

    def is_alive(self):
        with self.connect() as peer:
            peer.sendall(request("GET", "/health"))
            return b"I'm alive!" in peer.recv(4096)


def request(method, path, headers=(), body=b"", host="localhost"):
    lines = [f"{method} {path} HTTP/1.1".encode(), f"host: {host}".encode()]
    lines += [f"{name}: {value}".encode() for name, value in headers]
    if body:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


JSON = [("content-type", "application/json")]


def expect(what, found, wanted):
    if found not in wanted:
        raise AssertionError(f"{what}: answered {found}, not one of {sorted(map(str, wanted))}")


def malformed(gateway):
    for data, wanted in [
        (b"\x00" * 100 + b"\r\n\r\n", {400}),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 40000 + b"\r\n\r\n", TOO_LONG),
        (b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\n\r\n", TOO_LONG),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(200)) + b"\r\n", TOO_LONG),
        (b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", {400}),
        (b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n", {400}),
        (b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello", {400}),
        (request("POST", "/push/q", JSON, b"{"), {400}),
        (request("POST", "/push/q", JSON, b"[" * 1_000_000), {400}),
        (request("POST", "/push/%00", JSON, b"1"), {400}),
        (request("POST", "/push/..%2f..%2fetc", JSON, b"1"), {400}),
        (request("POST", "/push/q", JSON + [("content-encoding", "gzip")], b"\x1f\x8b"), {415}),
        (request("GET", "/messages/q/99999999999999999999"), {400}),
        (request("GET", "/messages/q/1/events?from=-1"), {400}),
        (request("GET", "/subsetSum?data=" + "[" * 5000), {400}),
        (request("GET", "/totalSales?item=%ff"), {400}),
        (request("GET", "/totalSales?item=" + "x" * 5000), {400}),
        (request("GET", "/totalSales?item=__proto__&item=constructor"), {400}),
        (request("GET", "/totalSales", [("baton-min-generation", "-1")]), {400}),
        (request("POST", "/sales", JSON, b'[{"transaction_id":"a","item":"x","amount":1},{}]'), {400}),
        (request("POST", "/sales", JSON, b'{"transaction_id":"a","item":"x","amount":1e400}'), {400}),
        (request("POST", "/sales", JSON, b"[" * 1_000_000), {400}),
    ]:
        expect(f"malformed {data[:60]!r}", gateway.status(data), wanted)


def rebinding(gateway):
    for host in ["evil.example", "127.0.0.1.nip.io", "localhost.evil.example", "10.0.0.1", "[::ffff:10.0.0.1]", "a" * 300]:
        for method in ["GET", "POST", "DELETE", "OPTIONS"]:
            expect(f"host {host}", gateway.status(request(method, "/push/q", JSON, host=host)), {421})
    for header in [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]:
        expect(f"page {header}", gateway.status(request("POST", "/push/q", JSON + [header], b"1")), {403})


def oversized(gateway):
    body = b'"' + b"x" * (1 << 20) + b'"'
    expect("oversized", gateway.status(request("POST", "/push/q", JSON, body)), {413})
    lines = [("content-type", "application/x-ndjson")]
    expect("oversized line", gateway.status(request("POST", "/push/q", lines, b"1\n" + body)), {413})
    head = b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n"
    expect("told to be oversized", gateway.status(head), {413, None})


def mutated(gateway, chance, count):
    """Good requests with some bytes changed."""
    good = [
        request("POST", "/push/q", JSON, b'{"a":[1,2,{"b":"c"}]}'),
        request("POST", "/push/q", [("content-type", "application/x-ndjson")], b"1\n2\n[3]\n"),
        request("POST", "/call/work", JSON + [("baton-share", "1")], b"7"),
        request("GET", "/messages/work/1/events", [("last-event-id", "work/1:1"), ("accept", "text/event-stream")]),
        request("DELETE", "/messages/work/1"),
        request("GET", "/subsetSum?data=[1,2,-3]&sum=0"),
        request("GET", "/totalSales?item=constructor&cache=batch", [("if-none-match", '"0123456789abcdef"')]),
        request("POST", "/sales", JSON, b'[{"transaction_id":"t","item":"__proto__","amount":12.50}]'),
        request("GET", "/say"),
    ]
    for _ in range(count):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            deed = chance.randrange(3)
            if deed == 0:
                data[at] = chance.randrange(256)
            elif deed == 1:
                del data[at]
            else:
                data.insert(at, chance.randrange(256))
        # A call to a queue that nobody works would stream for ever.
        if b"/call/" in data and b"/call/work " not in data:
            continue
        status = gateway.status(bytes(data), patience=0.2)
        if status is not None and status >= 500 and status not in MEANT and status != 505:
            raise AssertionError(f"answered {status}: {bytes(data)!r}")


def slowloris(gateway, count):
    """Silent and dripping peers are gone after the time for a head, and others are answered meanwhile."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 500, hard), hard))
    peers = [gateway.connect() for _ in range(count)]
    begun = time.monotonic()
    slowest = 0.0
    dripping = peers[: count // 2]
    while time.monotonic() - begun < HEAD_SECONDS + 3:
        for peer in dripping:
            try:
                peer.send(b"x")
            except OSError:
                pass
        asked = time.monotonic()
        if not gateway.is_alive():
            raise AssertionError("not alive among slow peers")
        slowest = max(slowest, time.monotonic() - asked)
        time.sleep(0.2)
    left = 0
    for peer in peers:
        peer.settimeout(0.5)
        try:
            left += peer.recv(1) != b""
        except TimeoutError:
            left += 1
        except OSError:
            pass
        peer.close()
    if left:
        raise AssertionError(f"{left} of {count} slow peers are still connected")
    return slowest


def run(port, seed, mutations=2000, slow=2000):
    gateway, chance = Gateway(port), random.Random(seed)
    malformed(gateway)
    rebinding(gateway)
    oversized(gateway)
    mutated(gateway, chance, mutations)
    slowest = slowloris(gateway, slow)
    print(f"hostile: {mutations} mutated requests, {slow} slow peers gone; the slowest answer meanwhile took {slowest * 1000:.0f} ms")
