"""The AWS emulator as a process: start it, ask how it is, stop it with everything it started.

The emulator runs in a session of its own, so that Ctrl-C in a terminal does not reach it half-way and so
that one signal to its process group ends it together with the function processes it spawned. A process
id alone proves nothing after a reboot, so the time the process started is kept beside it.

Its environment is built from nothing: functions inherit all of it, and a stray AWS_PROFILE or proxy
setting of the developer's shell would send them, and the money they handle, somewhere real.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
REGION = "us-east-1"
START_S = 30.0
STOP_S = 10.0
SITE = Path(__file__).resolve().parent / "emulator_site"


class EmulatorError(Exception):
    """The emulator could not be started or stopped; the text says why and what to do."""


@dataclass(frozen=True)
class Emulator:
    """A started emulator: enough to find it again from another process."""

    pid: int
    started: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def is_alive(self) -> bool:
        """Whether the very process that was started still runs."""
        return any(p.pid == self.pid and p.started == self.started for p in _processes())

    def is_healthy(self) -> bool:
        return self.is_alive() and _answers_health(self.port)

    def stop(self) -> None:
        """End the emulator and every process of its group; a second call does nothing.

        A group id stays taken while any member lives. So if a process has the emulator's id but another
        start time, the group is gone and the id belongs to a stranger, who is left alone.
        """
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if not self._members():
                return
            _signal_group(self.pid, sign)
            deadline = time.monotonic() + STOP_S / 2
            while self._members() and time.monotonic() < deadline:
                time.sleep(0.05)
        if left := self._members():
            raise EmulatorError(
                f"processes {left} do not end; stop them by hand: kill -9 {' '.join(map(str, left))}"
            )

    def _members(self) -> list[int]:
        processes = _processes()
        if any(p.pid == self.pid and p.started != self.started for p in processes):
            return []
        return [p.pid for p in processes if p.group == self.pid]


def start(directory: Path, port: int, *, auth: bool, functions_env: dict[str, str]) -> Emulator:
    """Start the emulator with its files below `directory` and wait until it answers.

    `auth` makes it enforce the functions' IAM roles. `functions_env` is added to its environment, and so
    to that of every function.
    """
    home = directory / "home"
    scratch = directory / "tmp"
    for folder in (home, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    log_file = directory / "emulator.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=_environment(home, scratch, port, auth) | functions_env,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        emulator = Emulator(process.pid, _started(process.pid), port)
        _await_health(process, port, log_file)
    except BaseException:
        Emulator(process.pid, _started(process.pid), port).stop()
        raise
    return emulator


def free_port() -> int:
    """A port nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are still winding down is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _environment(home: Path, scratch: Path, port: int, auth: bool) -> dict[str, str]:
    url = f"http://{HOST}:{port}"
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(SITE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": HOST,  # in queue URLs
        # Two more listeners it would open, on every interface.
        "IOT_MTLS_ENABLED": "false",
        "SFTP_ENABLED": "false",
        "AUTH": "true" if auth else "false",
        "LOG_LEVEL": "WARNING",
        # For the functions: without an endpoint of their own they would call AWS.
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        # What Lambda sets where the template asks for JSON logs; the emulator does not.
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
    }


def _await_health(process: subprocess.Popen[bytes], port: int, log_file: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if _answers_health(port):
            return
        if process.poll() is not None:
            raise EmulatorError(f"the emulator ended at once; its last words:\n{_tail(log_file)}")
        time.sleep(0.05)
    raise EmulatorError(
        f"the emulator did not answer within {START_S:.0f} s; its last words:\n{_tail(log_file)}"
    )


def _answers_health(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/_ministack/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _tail(log_file: Path, lines: int = 15) -> str:
    text = log_file.read_text(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in text[-lines:]) or "  (nothing)"


def _started(pid: int) -> str:
    return next((process.started for process in _processes() if process.pid == pid), "")


def _signal_group(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, sign)


@dataclass(frozen=True)
class _Process:
    pid: int
    group: int
    started: str


def _processes() -> list[_Process]:
    """Every live process; zombies are dead. From /proc where there is one, else from ps."""
    proc = Path("/proc/self/stat")
    if not proc.exists():
        return _processes_by_ps()
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except OSError:
            continue  # it ended while we looked
        # The command name, in brackets, may hold spaces and brackets; what follows it does not.
        state, _parent, group, *rest = text.rpartition(")")[2].split()
        if state not in "ZX":
            found.append(_Process(int(stat.parent.name), int(group), rest[16]))
    return found


def _processes_by_ps() -> list[_Process]:
    output = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat=,lstart="], capture_output=True, text=True, check=True
    ).stdout
    found = []
    for line in output.splitlines():
        pid, group, state, started = line.split(None, 3)
        if not state.startswith("Z"):
            found.append(_Process(int(pid), int(group), started.strip()))
    return found
