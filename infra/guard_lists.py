"""The lists of guards: read, held against the sources, and written as a table.

A guard is an entry of a file in `tests/guards/`; `guards.py` says what it is for.
"""

from __future__ import annotations

import re
import sys
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
    "ages": ("-p", "workflow", "--test", "ages"),
    "letters": ("-p", "workflow", "--test", "letters"),
    "paypal": ("-p", "workflow", "--test", "paypal"),
    "fetch": ("-p", "workflow", "--test", "fetch"),
    "fetch-keys": ("-p", "workflow", "--test", "fetch_keys"),
    "providers": ("-p", "workflow", "--test", "providers"),
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


class Wrong(Exception):
    """The lists contradict the sources or themselves."""


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


def check(guards: list[Guard], moments: dict[int, dict[str, str]]) -> int:
    wrong = list(misplaced(guards, ROOT))
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


def misplaced(guards: Iterable[Guard], root: Path) -> Iterable[str]:
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
        f"{len(guards)} guards. The word before a test's name is its suite: see `SUITES` in `infra/guard_lists.py`.",
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
