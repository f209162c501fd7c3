"""`python -m tools.audit`: known weaknesses in what is installed, by pip-audit; fails if there are any.

Where no database of advisories can be reached, nothing is audited: that is said, and is no failure. (pip-audit
itself calls that "no known vulnerabilities found".)
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
OUT_OF_REACH = ("ConnectionError", "ConnectTimeout", "ReadTimeout", "ServiceError")


def main() -> None:
    """Audit this environment."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        if any(word in done.stderr for word in OUT_OF_REACH):
            sys.exit(print("no database of advisories can be reached from here: nothing was audited"))
        sys.exit(f"pip-audit failed: {done.stderr.strip()[-2_000:]}")
    sys.exit(report(json.loads(done.stdout)["dependencies"]))


def report(dependencies: Sequence[dict[str, Any]]) -> str | None:
    """Tell what was found; what is wrong, if anything is."""
    audited = [one for one in dependencies if "skip_reason" not in one]
    weak = [f"{one['name']} {one['version']}: {weakness['id']}" for one in audited for weakness in one["vulns"]]
    if not audited:
        print("no database of advisories knows any of what is installed: nothing was audited")
    else:
        print(f"{len(audited)} audited, {len(dependencies) - len(audited)} unknown to the database")
    return "\n".join(["known weaknesses, upgrade:", *weak]) if weak else None


if __name__ == "__main__":
    main()
