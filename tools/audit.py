"""Check the installed packages for known vulnerabilities with pip-audit: `python -m tools.audit`.

It fails if there are any. If no database of advisories can be reached, it prints that nothing was audited and
does not fail. (pip-audit itself prints "no known vulnerabilities found" in this case.)
"""

import json
import subprocess
import sys
from collections.abc import Sequence
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


def main() -> None:
    """Audit this environment."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        if any(word in done.stderr for word in UNREACHABLE_ERRORS):
            sys.exit(print("no database of advisories can be reached; nothing was audited"))
        sys.exit(f"pip-audit failed: {done.stderr.strip()[-2_000:]}")
    sys.exit(report(json.loads(done.stdout)["dependencies"]))


def report(dependencies: Sequence[dict[str, Any]]) -> str | None:
    """Print how many packages were audited; return an error message if any has vulnerabilities."""
    audited = [one for one in dependencies if "skip_reason" not in one]
    vulnerable = [f"{one['name']} {one['version']}: {found['id']}" for one in audited for found in one["vulns"]]
    if not audited:
        print("the database of advisories has none of the installed packages; nothing was audited")
    else:
        print(f"packages audited: {len(audited)}, not in the database: {len(dependencies) - len(audited)}")
    return "\n".join(["known vulnerabilities; upgrade these packages:", *vulnerable]) if vulnerable else None


if __name__ == "__main__":
    main()
