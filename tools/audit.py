"""Check packages for known vulnerabilities with pip-audit: `python -m tools.audit [--release]`.

It fails if there are any. If no database of advisories can be reached, it prints that nothing was audited, and does
not fail. (pip-audit itself prints "no known vulnerabilities found" in this case.) With `--release` it audits the pins
of a release instead of what is installed, and fails if nothing was audited.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

COMMAND = [
    sys.executable,
    "-m",
    "pip_audit",
    "--progress-spinner",
    "off",
    "--format",
    "json",
    "--timeout",
    "10",
]
UNREACHABLE_ERRORS = ("ConnectionError", "ConnectTimeout", "ReadTimeout", "ServiceError")


def audit(pins: Iterable[Path] = ()) -> list[dict[str, Any]]:
    """Return each package of the files, or of this environment, with its vulnerabilities; nothing if it is offline."""
    files = [f"--requirement={path}" for path in pins]
    options = ["--disable-pip", "--require-hashes", *files] if files else []
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        if any(word in done.stderr for word in UNREACHABLE_ERRORS):
            print("no database of advisories can be reached")
            return []
        sys.exit(f"pip-audit failed: {done.stderr.strip()[-2_000:]}")
    dependencies: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    return dependencies


def report(dependencies: Sequence[dict[str, Any]], *, release: bool = False) -> str | None:
    """Print how many packages were audited; return an error message if any has vulnerabilities.

    For a release, an audit without a database of advisories is an error too.
    """
    audited = [one for one in dependencies if "skip_reason" not in one]
    vulnerable = [f"{one['name']} {one['version']}: {found['id']}" for one in audited for found in one["vulns"]]
    if audited:
        print(f"packages audited: {len(audited)}, not in the database: {len(dependencies) - len(audited)}")
    elif release:
        return "no database of advisories has any of the packages: nothing was audited"
    else:
        print("the database of advisories has none of the packages; nothing was audited")
    return "\n".join(["known vulnerabilities; upgrade these packages:", *vulnerable]) if vulnerable else None


def main(arguments: Sequence[str]) -> None:
    """Audit this environment, or the pins of a release."""
    release = "--release" in arguments
    pins = sorted((Path(__file__).parents[1] / "pins").glob("*.txt")) if release else ()
    sys.exit(report(audit(pins), release=release))


if __name__ == "__main__":
    main(sys.argv[1:])
