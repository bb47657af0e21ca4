"""The whole of Oncehook on this machine: template.yaml, deployed to an AWS emulator on one loopback port.

    local.py up       start the emulator, deploy, write DIR/env; again: deploy what changed, if anything
    local.py status   say where it is and how much waits in its queues; exit 1 if it is not up
    local.py down     stop every process it started and remove its files

Everything one stack owns lies below its directory, so several stacks, each with its own directory and
port, know nothing of one another. Nothing here, in the emulator or in a function reaches beyond loopback.
make runs this with the Python of .venv; see infra/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

# Until main() can answer it properly, Ctrl-C ends this without a traceback through half-done imports.
signal.signal(signal.SIGINT, signal.SIG_DFL)

try:
    from botocore.exceptions import BotoCoreError, ClientError

    import deployment
    import emulator
    import package
    from emulator import Emulator
except ModuleNotFoundError as missing:
    sys.exit(
        f"local.py: the Python package {missing.name} is not installed; run it through make, or with .venv/bin/python"
    )

PORT = 4566
OWN_FILES = ("build", "home", "tmp", "sam", "env", "state.json", "deploy.log", "emulator.log", "lock")


class UsageError(Exception):
    """Something the caller can put right; the text says what."""


@dataclass(frozen=True)
class State:
    """What `up` leaves in `state.json` for the next command."""

    pid: int
    started: str
    port: int
    auth: bool
    functions_env: dict[str, str]
    digest: str

    @property
    def emulator(self) -> Emulator:
        return Emulator(self.pid, self.started, self.port)


def main() -> int:
    arguments = _parse()
    # `kill` is answered like Ctrl-C, so that it leaves nothing behind either.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.default_int_handler)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except (UsageError, deployment.DeployError, emulator.EmulatorError) as error:
        print(f"local.py: {error}", file=sys.stderr)
        return 1
    except (BotoCoreError, ClientError) as error:
        print(f"local.py: the emulator did not do as asked: {error}", file=sys.stderr)
        return 1


def up(arguments: argparse.Namespace) -> int:
    directory = arguments.dir.resolve()
    _require_binaries(arguments.binaries)
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        state = _read_state(directory)
        if state is not None and (arguments.fresh or not state.emulator.is_healthy()):
            print("stopping what was up" if arguments.fresh else "the emulator of the last run is gone")
            _stop(directory)
            state = None
        if state is None:
            return _start_and_deploy(arguments, directory)
        _refuse_other_settings(arguments, state)
        plan = _plan(arguments, directory, state.emulator)
        digest = plan.digest()
        if state.digest == digest:
            print(f"already up: {deployment.api_url(plan.endpoint)}")
            return 0
        # A failure from here on leaves the stack as it was: the next `up` tries again.
        _deploy(plan)
        _write_state(directory, replace(state, digest=digest))
        return 0


def down(arguments: argparse.Namespace) -> int:
    directory = arguments.dir.resolve()
    if not directory.exists():
        print("nothing is up")
        return 0
    with _alone(directory):
        was_up = _stop(directory)
    print("stopped" if was_up else "nothing was up")
    return 0


def status(arguments: argparse.Namespace) -> int:
    directory = arguments.dir.resolve()
    state = _read_state(directory)
    if state is None or not state.emulator.is_healthy():
        print("not up; start it with: make up")
        return 1
    outputs = deployment.stack_outputs(state.emulator.url)
    sqs = deployment.client("sqs", state.emulator.url)
    rows = {
        "url": outputs["Url"],
        "aws": f"{state.emulator.url}  (pid {state.pid}, IAM roles {'enforced' if state.auth else 'not enforced'})",
        "queue": _depth(sqs, outputs["QueueUrl"]),
        "dead letters": _depth(sqs, outputs["DlqUrl"]),
        "ledger": outputs["LedgerTable"],
        "state": outputs["StateTable"],
        "variables": str(directory / "env"),
    }
    for name, value in rows.items():
        print(f"{name:<14}{value}")
    return 0


def _require_binaries(binaries: Path) -> None:
    if missing := package.missing_binaries(binaries):
        raise UsageError(
            f"no {', '.join(missing)} in {binaries}; build first: cargo build --workspace --bins"
        )


def _plan(arguments: argparse.Namespace, directory: Path, target: Emulator) -> deployment.Plan:
    return deployment.Plan(
        directory=directory,
        binaries=arguments.binaries.resolve(),
        endpoint=target.url,
        policy_overrides=arguments.overrides,
        release=arguments.release,
        parameters=dict(arguments.parameter),
    )


def _start_and_deploy(arguments: argparse.Namespace, directory: Path) -> int:
    port = PORT if arguments.port is None else arguments.port or emulator.free_port()
    if not emulator.port_is_free(port):
        raise UsageError(
            f"port {port} is in use by another program; stop that, or choose another port: "
            f"make ... PORT={port + 1}, or --port"
        )
    functions_env = dict(arguments.function_env)
    try:
        with _step(f"starting the AWS emulator on {emulator.HOST}:{port}"):
            started = emulator.start(directory, port, auth=arguments.auth, functions_env=functions_env)
        # Written before the stack is there, so that `down` finds the process whatever happens next.
        state = State(started.pid, started.started, started.port, arguments.auth, functions_env, digest="")
        _write_state(directory, state)
        plan = _plan(arguments, directory, started)
        digest = plan.digest()
        _deploy(plan)
        _write_state(directory, replace(state, digest=digest))
    except KeyboardInterrupt:
        _stop(directory)
        raise
    except BaseException:
        _stop(directory, keep=("deploy.log", "emulator.log"))
        raise
    return 0


def _deploy(plan: deployment.Plan) -> None:
    with _step("laying out the functions"):
        deployment.place_build(plan)
    with _step("deploying template.yaml with sam deploy"):
        deployment.deploy(plan)
    with _step("storing the test secrets"):
        outputs = deployment.stack_outputs(plan.endpoint)
        deployment.finish(outputs, plan.endpoint)
        deployment.write_environment(plan.directory / "env", deployment.environment(outputs, plan.endpoint))
    print(f"up: {outputs['Url']}")


def _refuse_other_settings(arguments: argparse.Namespace, state: State) -> None:
    """A running emulator cannot change these; to ignore a wish for others would be worse than to refuse."""
    wishes = {
        "--port": (arguments.port or state.port, state.port),
        "--no-auth": (arguments.auth, state.auth),
        "--function-env": (dict(arguments.function_env), state.functions_env),
    }
    if differing := [name for name, (wanted, have) in wishes.items() if wanted != have]:
        raise UsageError(
            f"already up on port {state.port} with another {', '.join(differing)}; add --fresh to start anew, "
            "or use another --dir for a second stack"
        )


def _stop(directory: Path, keep: tuple[str, ...] = ()) -> bool:
    """Stop what `directory` says was started and remove its files; whether there was anything to stop."""
    state = _read_state(directory)
    if state is not None:
        state.emulator.stop()
    for name in OWN_FILES:
        path = directory / name
        if name in keep or name == "lock":
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return state is not None


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One command at a time for each directory; the folder goes at the end if nothing else is in it."""
    lock = directory / "lock"
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another command is working on {directory}; wait for it to end") from None
        try:
            yield
        finally:
            if [path.name for path in directory.iterdir()] == ["lock"]:
                lock.unlink()
                directory.rmdir()


def _read_state(directory: Path) -> State | None:
    try:
        return State(**json.loads((directory / "state.json").read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{directory / 'state.json'} is not readable ({error}); remove {directory}"
        ) from error


def _write_state(directory: Path, state: State) -> None:
    (directory / "state.json").write_text(json.dumps(asdict(state), indent=1))


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    print(f"{what} ... ", end="", flush=True)
    begun = time.monotonic()
    try:
        yield
    except BaseException as error:
        print("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", flush=True)
        raise
    print(f"{time.monotonic() - begun:.1f} s", flush=True)


def _depth(sqs: Any, url: str) -> str:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    waiting, hidden = (attributes[name] for name in names)
    return f"{waiting} waiting, {hidden} in work or backing off"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _json_object(text: str) -> str:
    try:
        if text and not isinstance(json.loads(text), dict):
            raise ValueError("it is not an object")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object: {error}") from error
    return text


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535; 0 takes a free one)")
    return int(text)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="local.py", description="Oncehook on a local AWS emulator.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(run=run)
        added.add_argument(
            "--dir",
            type=Path,
            default=package.ROOT / ".local",
            help="where this stack's files lie (default: .local)",
        )
        return added

    added = command("up", up, "start the emulator and deploy, or deploy what changed")
    added.add_argument("--port", type=_port, help=f"port on loopback; 0 takes a free one (default: {PORT})")
    added.add_argument(
        "--binaries",
        type=Path,
        default=package.ROOT / "target" / "debug",
        help="folder with the functions' binaries (default: target/debug)",
    )
    added.add_argument(
        "--overrides", type=_json_object, default="", metavar="JSON", help="PolicyOverrides of the template"
    )
    added.add_argument("--release", default="", metavar="ID", help="Release of the template")
    added.add_argument(
        "--parameter",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the template; may be repeated",
    )
    added.add_argument(
        "--function-env",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable for every function, beside the template's; may be repeated",
    )
    added.add_argument(
        "--no-auth",
        dest="auth",
        action="store_false",
        help="do not enforce the functions' IAM roles (needed behind a proxy that rewrites Host)",
    )
    added.add_argument("--fresh", action="store_true", help="stop what is up and start with empty tables")
    command("down", down, "stop everything and remove the files")
    command("status", status, "say what is up")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
