"""The Helm that the chart's tests run is the one that was pinned, or none."""

import io
import tarfile
from pathlib import Path

import pytest
from tools.helm import INSIDE, KEPT, unpacked
from tools.models import FetchError


def test_another_binary_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "carrier.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        entry = tarfile.TarInfo(INSIDE)
        entry.size = 4
        packed.addfile(entry, io.BytesIO(b"evil"))
    with pytest.raises(FetchError, match="does not hold the Helm that was pinned"):
        unpacked(archive, tmp_path / "helm")
    assert not (tmp_path / "helm").exists()


def test_it_is_kept_out_of_the_repository() -> None:
    assert KEPT.parent.name == ".cache"
