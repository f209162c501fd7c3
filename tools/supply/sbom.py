"""Write the list of components of a release (SBOM, CycloneDX): what is installed, with the hashes of its pins."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from tools.supply.pins import PROJECT_FILE, Pin


def list_components(python: Path) -> dict[str, Any]:
    """Return the components of an environment, as cyclonedx-py sees them; equal environments give equal lists."""
    options = ["--output-reproducible", "--of", "JSON", "--output-file", "-", "--pyproject", str(PROJECT_FILE)]
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *options, str(python)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    components: dict[str, Any] = json.loads(listed.stdout)
    return components


def join_hashes(listed: Mapping[str, Any], pins: Iterable[Pin], version: str) -> dict[str, Any]:
    """Return the pinned components, each with the SHA-256 of every file that its pin allows.

    A component at another version than its pin gets no hash. Addresses of local files are left out.
    """
    hashes = {(pin.name, pin.version): pin.hashes for pin in pins}
    names = {name for name, _ in hashes}
    components = [
        _add_hashes(one, hashes.get((canonicalize_name(one["name"]), one["version"]), ()))
        for one in listed["components"]
        if canonicalize_name(one["name"]) in names
    ]
    root = listed["metadata"]["component"] | {"version": version}
    kept = {one["bom-ref"] for one in components} | {root["bom-ref"]}
    dependencies = [
        one | {"dependsOn": [ref for ref in one.get("dependsOn", []) if ref in kept]}
        for one in listed["dependencies"]
        if one["ref"] in kept
    ]
    metadata = listed["metadata"] | {"component": root}
    return {**listed, "metadata": metadata, "components": components, "dependencies": dependencies}


def _add_hashes(component: Mapping[str, Any], hashes: Iterable[str]) -> dict[str, Any]:
    links = [one for one in component.get("externalReferences", []) if not one["url"].startswith("file:")]
    joined = {**component, "externalReferences": links}
    digests = [{"alg": "SHA-256", "content": digest} for digest in hashes]
    return joined | {"hashes": digests} if digests else joined


def describe(sbom: Mapping[str, Any]) -> str:
    """Return how many components an SBOM has, and how many have a licence and hashes."""
    components = sbom["components"]
    licensed, hashed = (sum(field in one for one in components) for field in ("licenses", "hashes"))
    return f"{len(components)} components, {licensed} with a licence, {hashed} with hashes"


def write_sbom(path: Path, python: Path, pins: Iterable[Pin], version: str) -> dict[str, Any]:
    """Write the SBOM of an environment, and return it."""
    sbom = join_hashes(list_components(python), pins, version)
    path.write_text(json.dumps(sbom, indent=2, sort_keys=True) + "\n", "utf-8")
    return sbom
