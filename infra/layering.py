"""Which crate may depend on which, and what may lie at the top of the repository.

Dependencies point one way: ledger, verifier, config <- workflow <- aws <- binaries. The pure crates reach
nothing that does I/O, not even through a third crate, so that every rule of the ledger can be tested
without a clock, a network or a runtime.
"""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

PURE = ("ledger", "verifier", "config")
LIBRARIES = (*PURE, "workflow", "aws")

# Crate -> the crates of this workspace it may use. A crate that is not listed may not exist.
MAY_USE: dict[str, tuple[str, ...]] = {
    "ledger": (),
    "verifier": (),
    "config": ("ledger", "verifier"),
    "workflow": PURE,
    "aws": (*PURE, "workflow"),
    "receiver": LIBRARIES,
    "consumer": LIBRARIES,
    "steward": LIBRARIES,
    "oncehook": LIBRARIES,
    "tests": (*LIBRARIES, "receiver", "consumer", "steward", "oncehook"),
}

SDK = ("aws-*", "aws_*", "lambda_*", "hyper", "hyper-*", "reqwest")
RUNTIME = ("tokio", "tokio-*", "async-*", "futures", "futures-*")
RANDOM = ("getrandom", "rand", "rand_*")

# Crate -> foreign crates it may not reach, directly or through another.
FORBIDDEN: dict[str, tuple[str, ...]] = dict.fromkeys(PURE, (*SDK, *RUNTIME)) | {"workflow": SDK}
# Crate -> foreign crates it may not use itself. Libraries of cryptography bring randomness along, unused.
FORBIDDEN_DIRECTLY: dict[str, tuple[str, ...]] = dict.fromkeys(PURE, RANDOM)

TOP_LEVEL = {
    "Cargo.toml", "Cargo.lock", "LICENSE", "Makefile", "README.md", "template.yaml",
    "events", "functions", "infra", "tests",
}  # fmt: skip
GENERATED = {"target", "samconfig.toml", "proptest-regressions"}


@dataclass(frozen=True)
class Crate:
    name: str
    uses: frozenset[str]
    """Package ids of its dependencies, without those of its tests and build script."""


def main() -> int:
    metadata = _cargo_metadata()
    crates = _crates(metadata)
    members = {crates[package].name: package for package in metadata["workspace_members"]}
    broken = [*_workspace_errors(crates, members), *_foreign_errors(crates, members), *_top_level_errors()]
    for text in broken:
        print(f"layering: {text}", file=sys.stderr)
    print(f"layering: {len(members)} crates checked, {len(broken)} rules broken")
    return 1 if broken else 0


def _workspace_errors(crates: dict[str, Crate], members: dict[str, str]) -> list[str]:
    names = {package: name for name, package in members.items()}
    broken = []
    for name, package in sorted(members.items()):
        if name not in MAY_USE:
            broken.append(
                f"{name} is not a crate of the agreed layout; add it to MAY_USE with what it may use"
            )
            continue
        used = {names[other] for other in crates[package].uses if other in names}
        broken += [f"{name} may not depend on {other}" for other in sorted(used - set(MAY_USE[name]))]
    return broken


def _foreign_errors(crates: dict[str, Crate], members: dict[str, str]) -> list[str]:
    broken = []
    for name, package in sorted(members.items()):
        for path in _paths_from(crates, package):
            reached = crates[path[-1]].name
            forbidden = FORBIDDEN.get(name, ())
            if len(path) == 2:
                forbidden = (*forbidden, *FORBIDDEN_DIRECTLY.get(name, ()))
            if any(fnmatch.fnmatch(reached, pattern) for pattern in forbidden):
                broken.append(f"{name} may not reach {reached}: {' -> '.join(crates[p].name for p in path)}")
    return broken


def _paths_from(crates: dict[str, Crate], start: str) -> list[list[str]]:
    """One shortest path to each package that `start` depends on."""
    paths = {start: [start]}
    queue = [start]
    for package in queue:
        for other in sorted(crates[package].uses):
            if other not in paths:
                paths[other] = [*paths[package], other]
                queue.append(other)
    return [path for package, path in paths.items() if package != start]


def _top_level_errors() -> list[str]:
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    return [f"{name} is not part of the agreed top level" for name in sorted(found - TOP_LEVEL - GENERATED)]


def _crates(metadata: dict[str, Any]) -> dict[str, Crate]:
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    return {
        node["id"]: Crate(
            names[node["id"]],
            frozenset(
                dependency["pkg"]
                for dependency in node["deps"]
                if any(kind["kind"] is None for kind in dependency["dep_kinds"])
            ),
        )
        for node in metadata["resolve"]["nodes"]
    }


def _cargo_metadata() -> dict[str, Any]:
    host = next(
        line.removeprefix("host: ")
        for line in subprocess.check_output(["rustc", "-vV"], text=True).splitlines()
        if line.startswith("host: ")
    )
    # For this machine only: it lists what is compiled here and fetches nothing for other systems.
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"layering: cargo metadata failed:\n{result.stderr}")
    metadata: dict[str, Any] = json.loads(result.stdout)
    return metadata


if __name__ == "__main__":
    sys.exit(main())
