"""Switches every guard off, one at a time, and demands that the test named beside it fails.

A guard is a condition, a fence, a comparison, a limit or an order of steps that the promises rest on. The lists in
`tests/guards/` say for each: the exact text in the sources, the text without it, and the test that must notice.
`run` works on a copy of the tree with a build folder of its own, so an interrupted run leaves nothing changed.
`check` compiles nothing: it finds every text and every named test in the sources, so that the lists cannot rot, and
holds the table in `tests/guards/README.md` to them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "tests" / "guards"
TABLE = LISTS / "README.md"
# The lists, in the order of the table.
ORDER = ("verbs", "store", "times", "receiver", "consumer", "state-and-replay", "steward", "edges", "verifier")
SCRATCH = ROOT / "target" / "guards"
TREE = SCRATCH / "tree"
BUILD = SCRATCH / "build"

# The word before a test's name -> what cargo is told.
SUITES: dict[str, tuple[str, ...]] = {
    "ledger": ("-p", "ledger", "--lib"),
    "scenarios": ("-p", "ledger", "--test", "scenarios"),
    "verifier": ("-p", "verifier", "--test", "suite"),
    "verifier-unit": ("-p", "verifier", "--lib"),
    "config": ("-p", "config", "--lib"),
    "config-rules": ("-p", "config", "--test", "rules"),
    "config-errors": ("-p", "config", "--test", "errors"),
    "workflow": ("-p", "workflow", "--lib"),
    "receiver": ("-p", "workflow", "--test", "receiver"),
    "consumer": ("-p", "workflow", "--test", "consumer"),
    "steward": ("-p", "workflow", "--test", "steward"),
    "bodies": ("-p", "workflow", "--test", "bodies"),
    "keys": ("-p", "workflow", "--test", "keys"),
    "messages": ("-p", "workflow", "--test", "messages"),
    "letters": ("-p", "workflow", "--test", "letters"),
    "paypal": ("-p", "workflow", "--test", "paypal"),
    "fetch": ("-p", "workflow", "--test", "fetch"),
    "sequence": ("-p", "workflow", "--test", "sequence"),
    "replay-route": ("-p", "workflow", "--test", "replay_route"),
    "ledger-replay": ("-p", "workflow", "--test", "ledger_replay"),
    "simulation": ("-p", "workflow", "--test", "simulation"),
    # With `tests`, or the SDK is compiled again with other features.
    "aws": ("-p", "aws", "-p", "tests", "--lib"),
    "edge": ("-p", "receiver", "--bin", "receiver"),
    "oncehook": ("-p", "oncehook", "--bin", "oncehook"),
    "batch": ("-p", "consumer", "--bin", "consumer"),
    "contract": ("-p", "tests", "--test", "contract"),
    "cases": ("-p", "tests", "--test", "cases"),
    "replay": ("-p", "tests", "--test", "replay"),
    "troubles": ("-p", "tests", "--test", "troubles"),
}  # fmt: skip
# Suites whose runner takes one filter, not several.
ONE_AT_A_TIME = {"contract"}

BUILD_LIMIT_S = 1_200
TEST_LIMIT_S = 300

FAILED = re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE)
PASSED = re.compile(r"^test (\S+) \.\.\. ok", re.MULTILINE)


@dataclass(frozen=True)
class Guard:
    name: str
    rule: str
    """The row of the table it stands under."""
    without: str
    """What happens once it is off, in a few words."""
    file: str
    before: str
    after: str
    tests: tuple[tuple[str, str], ...]
    """Suite and full name of each test that must fail."""
    moments: tuple[int, ...]
    """Which of the moments of `moments.toml` it is for."""

    def text_without(self, text: str) -> str:
        return text.replace(self.before, self.after)


@dataclass(frozen=True)
class Verdict:
    guard: str
    outcome: str
    """`noticed`, `unnoticed`, `broken` (the entry is at fault: it does not compile, or hangs)."""
    said: str
    seconds: float


class Wrong(Exception):
    """The lists contradict the sources or themselves."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="find every guard's text and compare the table; compiles nothing")
    commands.add_parser("table", help="write the table")
    run = commands.add_parser("run", help="switch each guard off and run its tests")
    run.add_argument("--only", metavar="NAME", action="append", default=[], help="this guard, or all of this rule")
    run.add_argument("--json", action="store_true", help="print one JSON object a line, the tally last")
    arguments = parser.parse_args()
    try:
        guards, moments = read_lists()
        match arguments.command:
            case "check":
                return check(guards, moments)
            case "table":
                TABLE.write_text(table(guards, moments))
                return 0
            case _:
                return run_all(chosen(guards, arguments.only), arguments.json)
    except Wrong as wrong:
        print(f"guards: {wrong}", file=sys.stderr)
        return 1


def read_lists() -> tuple[list[Guard], dict[int, dict[str, str]]]:
    guards: list[Guard] = []
    unlisted = {path.stem for path in LISTS.glob("*.toml")} - {*ORDER, "moments"}
    if unlisted:
        raise Wrong(f"add to ORDER: {', '.join(sorted(unlisted))}")
    for path in (LISTS / f"{stem}.toml" for stem in ORDER):
        for entry in tomllib.loads(path.read_text()).get("guard", []):
            guards.append(_guard(entry, path))
    names = [guard.name for guard in guards]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Wrong(f"two guards are called {', '.join(twice)}")
    moments = tomllib.loads((LISTS / "moments.toml").read_text())["moment"]
    return guards, {moment["n"]: moment for moment in moments}


def _guard(entry: dict[str, Any], path: Path) -> Guard:
    name = entry.get("name", "without a name")
    wanted = {"name", "rule", "without", "file", "before", "after", "tests"}
    odd = wanted - entry.keys() | entry.keys() - wanted - {"moments"}
    if odd:
        raise Wrong(f"{path.name}: guard {name}: missing or unknown: {', '.join(sorted(odd))}")
    tests = []
    for test in entry["tests"]:
        suite, _, full_name = test.partition(" ")
        if suite not in SUITES:
            raise Wrong(f"{path.name}: guard {name}: no suite {suite!r}; there are {', '.join(SUITES)}")
        tests.append((suite, full_name))
    return Guard(
        name,
        entry["rule"],
        entry["without"],
        entry["file"],
        # A text over several lines begins behind the opening quotes; its last line end belongs to the list.
        entry["before"].removesuffix("\n"),
        entry["after"].removesuffix("\n"),
        tuple(tests),
        tuple(entry.get("moments", ())),
    )


def chosen(guards: list[Guard], only: list[str]) -> list[Guard]:
    if not only:
        return guards
    unknown = [word for word in only if not any(word in (guard.name, guard.rule) for guard in guards)]
    if unknown:
        raise Wrong(f"no guard and no rule is called {', '.join(unknown)}")
    return [guard for guard in guards if guard.name in only or guard.rule in only]


# --- check ---------------------------------------------------------------------------------------------------


def check(guards: list[Guard], moments: dict[int, dict[str, str]]) -> int:
    wrong = list(_misplaced(guards, ROOT))
    for guard in guards:
        if not guard.tests or any(not name for _, name in guard.tests):
            wrong.append(f"{guard.name}: name the tests that must fail")
        wrong += [f"{guard.name}: there is no moment {n}" for n in guard.moments if n not in moments]
    functions = _functions()
    for guard in guards:
        gone = [name for _, name in guard.tests if name and name.rpartition("::")[2] not in functions]
        wrong += [f"{guard.name}: there is no test {name}" for name in gone]
    covered = {n for guard in guards for n in guard.moments}
    for n, moment in moments.items():
        if n not in covered and "elsewhere" not in moment:
            wrong.append(f"no guard is for moment {n}, {moment['when']}")
    if not TABLE.exists() or TABLE.read_text() != table(guards, moments):
        wrong.append(f"{TABLE.relative_to(ROOT)} is not what the lists say; run `make guards-table`")
    for text in wrong:
        print(f"guards: {text}", file=sys.stderr)
    print(f"guards: {len(guards)} texts looked up, {len(wrong)} wrong")
    return 1 if wrong else 0


def _misplaced(guards: Iterable[Guard], root: Path) -> Iterable[str]:
    for guard in guards:
        path = root / guard.file
        found = path.read_text().count(guard.before) if path.exists() else 0
        if found != 1:
            yield (
                f"{guard.name}: its text stands {found} times in {guard.file}, once is wanted; "
                "has the guard moved, or is it gone?"
            )
        elif guard.before == guard.after:
            yield f"{guard.name}: switching it off changes nothing"


def _functions() -> set[str]:
    """The names of all functions of the workspace's Rust sources."""
    sources = [path for folder in ("functions", "tests") for path in (ROOT / folder).rglob("*.rs")]
    return {name for path in sources for name in re.findall(r"\bfn (\w+)", path.read_text())}


def table(guards: list[Guard], moments: dict[int, dict[str, str]]) -> str:
    """What `tests/guards/README.md` holds."""
    lines = [
        "# The guards, and the test that notices when one is gone",
        "",
        "Written by `make guards-table` from the lists in this folder; `make check` holds it to them, and",
        "`make guards` switches each guard off in a copy of the sources and demands that the named tests fail.",
        "",
        f"{len(guards)} guards. The word before a test's name is its suite: see `SUITES` in `infra/guards.py`.",
        "",
    ]
    rules: dict[str, list[Guard]] = {}
    for guard in guards:
        rules.setdefault(guard.rule, []).append(guard)
    for rule, of_rule in rules.items():
        lines += [f"## {rule}", "", "| guard | without it | file | noticed by |", "|---|---|---|---|"]
        for guard in of_rule:
            tests = "<br>".join(f"`{suite} {name}`" for suite, name in guard.tests)
            lines.append(f"| {guard.name} | {guard.without} | `{guard.file}` | {tests} |")
        lines.append("")
    lines += ["## What must happen when ...", "", "| | moment | its guards |", "|---|---|---|"]
    for n, moment in moments.items():
        names = [guard.name for guard in guards if n in guard.moments]
        names += [moment["elsewhere"]] if "elsewhere" in moment else []
        lines.append(f"| {n} | {moment['when']} | {', '.join(names)} |")
    return "\n".join(lines) + "\n"


# --- run -----------------------------------------------------------------------------------------------------


def run_all(guards: list[Guard], as_json: bool) -> int:
    signal.signal(signal.SIGTERM, _interrupted)
    misplaced = list(_misplaced(guards, ROOT))
    if misplaced:
        raise Wrong("\n        ".join(misplaced))
    began = time.monotonic()
    verdicts: list[Verdict] = []
    try:
        _say("copying the sources")
        _seed()
        _copy_sources()
        _baseline(guards)
        width = max(len(guard.name) for guard in guards)
        for number, guard in enumerate(guards, start=1):
            _say(f"{number}/{len(guards)} {guard.name}")
            verdict = _judge(guard)
            verdicts.append(verdict)
            if as_json:
                print(json.dumps(vars(verdict)), flush=True)
            else:
                mark = {"noticed": "ok  ", "unnoticed": "GAP ", "broken": "BAD "}[verdict.outcome]
                place = f"{number:>{len(str(len(guards)))}}/{len(guards)}"
                print(f"{mark} {place}  {guard.name:<{width}}  {verdict.said}  {verdict.seconds:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("guards: interrupted; the sources were not touched", file=sys.stderr)
        return 130
    finally:
        _say("")
    return _summary(verdicts, time.monotonic() - began, as_json)


def _summary(verdicts: list[Verdict], seconds: float, as_json: bool) -> int:
    tally = {outcome: 0 for outcome in ("noticed", "unnoticed", "broken")}
    for verdict in verdicts:
        tally[verdict.outcome] += 1
    if as_json:
        print(json.dumps({"switched_off": len(verdicts), **tally, "minutes": round(seconds / 60)}))
    else:
        print(
            f"guards: {len(verdicts)} switched off, {tally['noticed']} noticed, {tally['unnoticed']} unnoticed, "
            f"{tally['broken']} entries broken, {seconds / 60:.0f} min"
        )
    return 0 if tally["noticed"] == len(verdicts) else 1


def _judge(guard: Guard) -> Verdict:
    began = time.monotonic()
    path = TREE / guard.file
    whole = path.read_text()
    outcome, said = "broken", ""
    try:
        path.write_text(guard.text_without(whole))
        outcome, said = _outcome(guard)
    finally:
        path.write_text(whole)
    return Verdict(guard.name, outcome, said, time.monotonic() - began)


def _outcome(guard: Guard) -> tuple[str, str]:
    """Every test that is named must fail; where a suite is named without a test, any of that suite."""
    whole = [suite for suite, name in guard.tests if not name]
    unnoticed = ""
    for suite in dict.fromkeys(suite for suite, _ in guard.tests):
        built = _cargo([*SUITES[suite], "--no-run"], BUILD_LIMIT_S)
        if built is None:
            return "broken", f"{suite} was not built within {BUILD_LIMIT_S} s"
        if built.returncode != 0:
            error = next((line for line in built.stdout.splitlines() if line.startswith("error")), "no reason given")
            return "broken", f"does not compile: {error}"
        names = [name for of, name in guard.tests if of == suite and name]
        ran = _run_tests(suite, names)
        if ran is None:
            return "broken", f"{suite} did not end within {TEST_LIMIT_S} s"
        failed, passed = ran
        if not failed and not passed:
            return "broken", f"no test of {suite} ran"
        if suite in whole and failed:
            return "noticed", f"by {suite}: {', '.join(sorted(failed))}"
        missed = [name for name in names if name not in failed]
        if missed or not failed:
            unnoticed = f"passes without it: {', '.join(missed) or suite}"
            if suite not in whole:
                return "unnoticed", unnoticed
    if unnoticed:
        return "unnoticed", unnoticed
    return "noticed", "by " + ", ".join(name for _, name in guard.tests)


def _run_tests(suite: str, names: list[str]) -> tuple[set[str], set[str]] | None:
    """The tests that failed and those that passed; all of the suite if none is named."""
    rounds = [[name] for name in names] if suite in ONE_AT_A_TIME and names else [names]
    failed: set[str] = set()
    passed: set[str] = set()
    for filters in rounds:
        ran = _cargo([*SUITES[suite], "--", *(["--exact", *filters] if filters else [])], TEST_LIMIT_S)
        if ran is None:
            return None
        failed |= set(FAILED.findall(ran.stdout))
        passed |= set(PASSED.findall(ran.stdout))
    return failed, passed


def _baseline(guards: list[Guard]) -> None:
    """Every named test passes while nothing is switched off."""
    named: dict[str, list[str]] = {}
    for guard in guards:
        for suite, name in guard.tests:
            if name not in named.setdefault(suite, []):
                named[suite].append(name)
    for suite, names in named.items():
        _say(f"building {suite} and running its {len(names)} tests as they are")
        built = _cargo([*SUITES[suite], "--no-run"], BUILD_LIMIT_S)
        if built is None or built.returncode != 0:
            raise Wrong(f"{suite} does not build:\n{built.stdout[-2_000:] if built else 'no end in sight'}")
        ran = _run_tests(suite, [name for name in names if name])
        if ran is None:
            raise Wrong(f"{suite} does not end within {TEST_LIMIT_S} s with every guard in place")
        failed, passed = ran
        missing = [name for name in names if name and name not in passed]
        if failed or missing:
            raise Wrong(f"{suite}: fails or is missing with every guard in place: {', '.join([*failed, *missing])}")


def _cargo(arguments: list[str], limit_s: int) -> subprocess.CompletedProcess[str] | None:
    """Runs `cargo test` in the copy; `None` if it did not end in time. Its whole group ends with it."""
    environment = dict(os.environ)
    environment["CARGO_TARGET_DIR"] = str(BUILD)
    environment.setdefault("ONCEHOOK_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    environment["CARGO_TERM_COLOR"] = "never"
    # Nobody debugs what is built here; linking is most of a guard's time.
    environment["CARGO_PROFILE_DEV_DEBUG"] = "0"
    child = subprocess.Popen(
        ["cargo", "test", "--locked", *arguments],
        cwd=TREE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return subprocess.CompletedProcess(child.args, child.returncode, output, "")


def _copy_sources() -> None:
    """Makes the copy equal to the tree: an earlier run's leftovers go, what is equal keeps its time."""
    listed = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True
    )
    wanted = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for path in list(TREE.rglob("*")):
        if path.is_file() and str(path.relative_to(TREE)) not in wanted:
            path.unlink()
    for name in wanted:
        source, copy = ROOT / name, TREE / name
        content = source.read_bytes()
        if not copy.exists() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            shutil.copymode(source, copy)


def _seed() -> None:
    """What is compiled of foreign crates already is taken over: the SDK alone takes minutes."""
    compiled = ROOT / "target" / "debug"
    if BUILD.exists() or not compiled.exists():
        return
    ignored = shutil.ignore_patterns("incremental", "examples")

    def skipped(folder: str, names: list[str]) -> set[str]:
        skip = set(ignored(folder, names))
        if Path(folder).name == "deps":
            skip |= {name for name in names if "." not in name}
        return skip

    # Under a name of its own until it is whole.
    half = SCRATCH / "half"
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(compiled, half / "debug", ignore=skipped, symlinks=True)
    half.rename(BUILD)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    """A line that the next one replaces, for a person who watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
