"""What `sam build` leaves behind, laid out from binaries that are compiled already.

    package.py target/lambda     after `cargo lambda build --release --arm64`; then: sam deploy --guided

Each function of template.yaml gets a folder with its `bootstrap`, and the template beside them points
there; nothing else of it changes. The local stack is laid out the same way from cargo's own binaries,
because a release build takes minutes and a development build seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "template.yaml"
# Where sam deploy looks when it is told nothing.
SAM_BUILD = ROOT / ".aws-sam" / "build"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="package.py", description="Lay out compiled functions for sam deploy."
    )
    parser.add_argument("binaries", type=Path, help="target/lambda or target/release")
    binaries = parser.parse_args().binaries
    if missing := missing_binaries(binaries):
        print(f"package.py: no {', '.join(missing)} in {binaries}; build first", file=sys.stderr)
        return 1
    place(binaries, SAM_BUILD)
    print(f"laid out in {SAM_BUILD.relative_to(ROOT)}; next: sam deploy --guided")
    return 0


def binaries_by_function() -> dict[str, str]:
    """Logical id of each function of the template -> name of its binary, as `sam build` is told it."""
    resources = yaml_parse(TEMPLATE.read_text())["Resources"]
    return {
        name: resource["Metadata"]["BuildProperties"]["Binary"]
        for name, resource in resources.items()
        if resource["Type"] == "AWS::Serverless::Function"
    }


def missing_binaries(binaries: Path) -> list[str]:
    names = binaries_by_function().values()
    return sorted(name for name in names if not os.access(compiled(binaries, name), os.X_OK))


def compiled(binaries: Path, name: str) -> Path:
    """cargo-lambda gives each binary a folder of its own, cargo does not."""
    own_folder = binaries / name / "bootstrap"
    return own_folder if own_folder.is_file() else binaries / name


def place(binaries: Path, build: Path, *, archived: bool = False) -> None:
    """Fill `build` anew: the functions' code, each in a folder with its name, and `template.yaml`.

    `archived` makes an archive of each instead. sam packs folders itself, as small as it can, which takes
    longer than everything else where the binaries are large and the way is short.
    """
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    template = yaml_parse(TEMPLATE.read_text())
    for name, binary in binaries_by_function().items():
        source = compiled(binaries, binary)
        code = build / (f"{name}.zip" if archived else name)
        if archived:
            _archive(source, code)
        else:
            code.mkdir()
            shutil.copy2(source, code / "bootstrap")
        template["Resources"][name]["Properties"]["CodeUri"] = code.name
    # JSON is YAML, and no tag or anchor of the original can be lost on the way.
    (build / "template.yaml").write_text(json.dumps(template, indent=1))


def _archive(source: Path, archive: Path) -> None:
    # A fixed date, so that the same code makes the same archive and is not deployed again.
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o100755 << 16
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(entry, source.read_bytes(), compresslevel=1)


if __name__ == "__main__":
    sys.exit(main())
