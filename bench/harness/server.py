"""A private Redis server for one measurement.

Guaranteed: a fresh server on a free loopback port, with its data in the given folder; it is the process started here
that answers, not another one; it is stopped by its process id. It fails with `ServerFailed`, one line that says why.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterator, Optional, Union

from .children import Child, ChildFailed, finish
from .interruption import pause

START_LIMIT_S = 10.0
ANSWER_LIMIT_S = 30.0
ATTEMPTS = 5

# What the modes add to the command line, and what they are called in the tables.
MODES = {
    "noaof": ("no AOF", ["--appendonly", "no"]),
    "aof": ("AOF everysec", ["--appendonly", "yes", "--appendfsync", "everysec"]),
}

Reply = Union[None, int, bytes, list["Reply"]]


class ServerFailed(Exception):
    """The server did not start or did not answer as a Redis server does."""


class Connection:
    """As much of the Redis protocol as asking for figures needs."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_LIMIT_S)
        self._reader = self._socket.makefile("rb")

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def ask(self, *words: str) -> Reply:
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            raw = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
        self._socket.sendall(b"".join(parts))
        return self._reply()

    def info(self, section: str) -> dict[str, str]:
        text = self.ask("INFO", section)
        if not isinstance(text, bytes):
            raise ServerFailed("INFO was not answered with text")
        return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)

    def _reply(self) -> Reply:
        line = self._reader.readline()
        if not line.endswith(b"\r\n"):
            raise ServerFailed("the server closed the connection")
        kind, value = line[:1], line[1:-2]
        if kind == b"-":
            raise ServerFailed(value.decode(errors="replace"))
        if kind == b"+":
            return value
        if kind == b":":
            return int(value)
        if kind == b"$":
            return None if int(value) < 0 else self._reader.read(int(value) + 2)[:-2]
        if kind == b"*":
            return None if int(value) < 0 else [self._reply() for _ in range(int(value))]
        raise ServerFailed(f"unexpected reply {line[:40]!r}")


class Server:
    """A running server: where it listens, and what it says about itself."""

    def __init__(self, port: int, connection: Connection, version: str) -> None:
        self.port = port
        self.version = version
        self._connection = connection

    def cpu_s(self) -> float:
        """Processor time the server has used so far, user and system."""
        figures = self._connection.info("cpu")
        return float(figures["used_cpu_user"]) + float(figures["used_cpu_sys"])

    def total_length(self, lengths: tuple[tuple[str, str], ...]) -> int:
        """The sum of length commands, such as `LLEN key`; a missing key counts as empty."""
        answers = [self._connection.ask(command, key) for command, key in lengths]
        return sum(answer for answer in answers if isinstance(answer, int))


def version_of(binary: str, folder: Path) -> str:
    """The version of a server binary; fails if it is none."""
    try:
        words = finish([binary, "--version"], folder / "version.log", START_LIMIT_S).split()
    except ChildFailed as error:
        raise ServerFailed(str(error)) from error
    versions = [word[2:] for word in words if word.startswith("v=")]
    if not versions:
        raise ServerFailed(f"{Path(binary).name} is not a Redis server")
    return versions[0]


@contextmanager
def serving(binary: str, mode: str, folder: Path) -> Iterator[Server]:
    """Runs a server for the length of the block."""
    with ExitStack() as stack:
        yield _start(binary, mode, folder, stack)


def _start(binary: str, mode: str, folder: Path, stack: ExitStack) -> Server:
    cause: Optional[Exception] = None
    for attempt in range(ATTEMPTS):  # a port that was free may be taken before the server binds it
        port = _free_port()
        data = folder / f"redis-{attempt}"
        data.mkdir()
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(data), "--save", "",
                   "--daemonize", "no", *MODES[mode][1]]
        try:
            child = stack.enter_context(Child(command, folder / f"redis-{attempt}.log"))
            connection, version = _connected(child, port)
        except _PortLost as error:
            cause = error
        except ChildFailed as error:
            raise ServerFailed(str(error)) from error
        else:
            stack.callback(connection.close)
            return Server(port, connection, version)
    raise ServerFailed(f"redis-server did not start: {cause}")


class _PortLost(Exception):
    """The server ended at once, or another one answers on its port: worth another try."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _connected(child: Child, port: int) -> tuple[Connection, str]:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if child.ended():
            raise _PortLost(child.last_words())
        try:
            connection = Connection(port)
        except OSError:
            pause(0.01)
            continue
        about = connection.info("server")
        if about.get("process_id") == str(child.pid):
            return connection, about["redis_version"]
        connection.close()
        raise _PortLost(f"port {port} is held by another server")
    raise ServerFailed(f"redis-server did not answer within {START_LIMIT_S:g} s")
