"""The SBOM has the pinned packages only, with their hashes and without paths of the machine that wrote it."""

from typing import Any

from tools.supply.pins import Pin
from tools.supply.sbom import describe, join_hashes

PINS = [Pin("typing-extensions", "4.16", ("a" * 64, "b" * 64)), Pin("numpy", "2.4", ("c" * 64,))]


def make_component(name: str, version: str) -> dict[str, Any]:
    link = {"type": "distribution", "url": "file:///home/someone/project"}
    other = {"type": "website", "url": "https://example.org"}
    return {"bom-ref": f"{name}=={version}", "name": name, "version": version, "externalReferences": [link, other]}


LISTED = {
    "metadata": {"component": {"bom-ref": "root", "name": "waylore"}},
    "components": [
        make_component("typing_extensions", "4.16") | {"licenses": [{"license": {"id": "PSF-2.0"}}]},
        make_component("numpy", "2.5"),
        make_component("pytest", "9"),
    ],
    "dependencies": [
        {"ref": "root", "dependsOn": ["numpy==2.5", "pytest==9"]},
        {"ref": "numpy==2.5"},
        {"ref": "pytest==9", "dependsOn": ["typing_extensions==4.16"]},
    ],
}


def test_pinned_packages_have_the_hashes_of_their_version() -> None:
    typing, numpy = join_hashes(LISTED, PINS, "1.2")["components"]
    assert [one["content"] for one in typing["hashes"]] == ["a" * 64, "b" * 64]
    assert (numpy["version"], "hashes" in numpy) == ("2.5", False)


def test_what_is_left_out_is_left_out_everywhere() -> None:
    sbom = join_hashes(LISTED, PINS, "1.2")
    assert sbom["dependencies"] == [
        {"ref": "root", "dependsOn": ["numpy==2.5"]},
        {"ref": "numpy==2.5", "dependsOn": []},
    ]
    assert "file:" not in str(sbom)
    assert "https://example.org" in str(sbom)


def test_it_names_the_version_of_waylore() -> None:
    sbom = join_hashes(LISTED, PINS, "1.2")
    assert sbom["metadata"]["component"] == {"bom-ref": "root", "name": "waylore", "version": "1.2"}
    assert describe(sbom) == "2 components, 1 with a licence, 1 with hashes"
