"""The wheel and the source distribution: their metadata, their files, and the page of the package."""

import re
import tarfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from tools.supply.release import build, copy_checkout

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "waylore"
EPOCH = "1700000000"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    assert len(build(ROOT, folder, epoch=EPOCH)) == 2
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Mapping[str, bytes]:
    [path] = built.glob("*.whl")
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(wheel: Mapping[str, bytes]) -> Message:
    [name] = [name for name in wheel if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel[name].decode())


def test_wheel_has_every_file_of_the_package(wheel: Mapping[str, bytes]) -> None:
    files = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} == {name for name in wheel if "dist-info" not in name}
    assert "waylore/py.typed" in wheel


def test_metadata_names_author_licence_and_versions(metadata: Message) -> None:
    assert (metadata["Name"], metadata["License-Expression"]) == ("waylore", "Apache-2.0")
    assert metadata["Author"] == "The authors of Waylore"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"


def test_page_of_the_package_has_no_broken_link(metadata: Message) -> None:
    page = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "<img" not in page
    assert [link for link in re.findall(r"\]\(([^)]*)\)", page) if not link.startswith("http")] == []
    assert "a memory over MCP for Claude, Cursor or VS Code" in page


def test_source_distribution_has_tests_and_docs(built: Path) -> None:
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "docs/how-to/search.md", "tests/deploy/test_package.py"} <= names
    assert not [name for name in names if name.endswith((".pyc", ".waylore"))]


@pytest.mark.full
def test_a_copy_of_the_checkout_builds_equal_bytes(built: Path, tmp_path: Path) -> None:
    """Neither folder, nor time, nor permissions of files are in the packages."""
    copy_checkout(ROOT, tmp_path / "copy")
    again = build(tmp_path / "copy", tmp_path / "dist", epoch=EPOCH)
    assert {path.name: path.read_bytes() for path in built.iterdir()} == again
