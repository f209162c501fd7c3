"""The last steps of a release: an unfinished checkout is refused, sums can be checked, and a key signs them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tools.postgres.builds import MissingRequirement
from tools.supply.release import PAGE, copy_checkout, find_unfinished, sign, write_sums


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / PAGE).mkdir(parents=True)
    (root / PAGE / "index.html").write_text("page")
    (root / ".gitignore").write_text(f"{PAGE}/\n*.log\n")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


def test_a_clean_checkout_with_a_page_is_finished(checkout: Path) -> None:
    assert find_unfinished(checkout) == []


def test_a_change_and_a_missing_page_are_named(checkout: Path) -> None:
    shutil.rmtree(checkout / PAGE)
    (checkout / "new.txt").touch()
    changed, page = find_unfinished(checkout)
    assert (changed, page) == (
        "the checkout has changes that are not committed",
        "no page of the explorer; run `just explorer`",
    )


def test_a_copy_has_what_git_knows_and_the_page(checkout: Path, tmp_path: Path) -> None:
    (checkout / "run.log").touch()
    copy_checkout(checkout, tmp_path / "copy")
    files = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert files == {".gitignore", str(PAGE / "index.html")}


def test_sums_are_checked_by_sha256sum(tmp_path: Path) -> None:
    files = [tmp_path / "b.whl", tmp_path / "a.tar.gz"]
    for path in files:
        path.write_text(path.name)
    write_sums(files, tmp_path / "SHA256SUMS")
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    files[0].write_text("another")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_without_a_key_nothing_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLORE_RELEASE_KEY", raising=False)
    assert sign(tmp_path / "SHA256SUMS") == "SHA256SUMS is not signed: WAYLORE_RELEASE_KEY names no key of gpg"


def test_a_key_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("gpg"):
        raise MissingRequirement("there is no gpg here: install gnupg")
    home = tmp_path / "keys"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    monkeypatch.setenv("WAYLORE_RELEASE_KEY", "release@example.org")
    unlocked = ["--batch", "--passphrase", "", "--quick-generate-key", "release@example.org", "ed25519", "sign"]
    subprocess.run(["gpg", *unlocked], check=True, capture_output=True)
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("0 a\n")
    try:
        assert sign(sums) == "SHA256SUMS.asc is signed with release@example.org"
        verify = ["gpg", "--batch", "--verify", f"{sums}.asc", str(sums)]
        assert subprocess.run(verify, capture_output=True, check=False).returncode == 0
        sums.write_text("1 a\n")
        assert subprocess.run(verify, capture_output=True, check=False).returncode == 1
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False, capture_output=True)
