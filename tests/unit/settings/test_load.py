"""Settings: who wins, where each came from, and what is said of one that cannot be used."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from waylore.errors import ConfigError
from waylore.settings import load as settings
from waylore.settings.load import load, told, unknown_variables


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return tmp_path


def origins(**options: object) -> dict[str, tuple[str, str]]:
    return {s.name: (s.value, s.source) for s in told(load(**options), **options)}


def test_first_come_first_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own" / "waylore").mkdir(parents=True)
    (folder / "own" / "waylore" / "config.toml").write_text(
        '[http]\nport = 1\nworkers = 5\nrate = 7\nhost = "h"\n[oidc]\nissuer = "own"\n'
    )
    (folder / "waylore.toml").write_text("[http]\nport = 2\nworkers = 2\nrate = 2\n")
    (folder / ".env").write_text("WAYLORE_HTTP_PORT=3\nWAYLORE_HTTP_WORKERS=3\nOTHER=1\n")
    monkeypatch.setenv("WAYLORE_HTTP_PORT", "4")
    known = origins(collection="team")
    own = str(folder / "own" / "waylore" / "config.toml")
    assert known["collection"] == ("team", "option")
    assert known["http.port"] == ("4", "environment")
    assert known["http.workers"] == ("3", ".env")
    assert known["http.rate"] == ("2", "waylore.toml")
    assert known["http.host"] == ("h", own)
    assert known["oidc.issuer"] == ("own", own)
    assert known["http.seconds"] == ("30.0", "default")


def test_every_setting_has_a_variable_that_sets_it_and_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in told(load()):
        assert one.description, one.name
        monkeypatch.setenv(one.variable, one.value or "x")
        assert origins()[one.name][1] == "environment", one.variable
        monkeypatch.delenv(one.variable)


def test_lists_have_commas_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "waylore.toml").write_text('functional = ["a", "b"]\n')
    assert load().functional == ("a", "b")
    monkeypatch.setenv("WAYLORE_FUNCTIONAL", "works_at, lives_in")
    assert load().functional == ("works_at", "lives_in")


def test_secrets_may_be_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = folder / "secrets"
    secrets.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(secrets))
    (secrets / "waylore_store").write_text("postgresql://me:sesame@host/x\n")
    (secrets / "WAYLORE_EMBEDDING_KEY").write_text("sesame")
    (secrets / "somebody_elses").write_bytes(b"\xff")
    (secrets / "waylore_folder").mkdir()
    (folder / ".env").write_text("WAYLORE_STORE=weaker\nWAYLORE_COLLECTION=team\n")
    assert load().store == "postgresql://me:sesame@host/x"
    assert load().embedding.key.get_secret_value() == "sesame"
    known = origins()
    assert known["store"] == ("postgresql://me:**********@host/x", str(secrets))
    assert known["embedding.key"] == ("**********", str(secrets))
    assert known["collection"] == ("team", ".env")
    monkeypatch.setenv("WAYLORE_STORE", "stronger")
    assert load().store == "stronger"


def test_a_secret_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as secrets:
        Path(secrets).chmod(0o755)
        monkeypatch.chdir(secrets)
        monkeypatch.setenv("XDG_CONFIG_HOME", secrets)
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", secrets)
        (Path(secrets) / "waylore_store").write_text("x")
        (Path(secrets) / "waylore_store").chmod(0o000)
        with as_nobody(), pytest.raises(ConfigError, match=r"waylore_store cannot be read: Permission denied"):
            load()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so be someone else for a moment."""
    if is_root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_EMBEDDING_KEY", "sesame")
    for url in ("postgresql://me:sesame@host/x", "postgresql://host/x?user=me&password=sesame&a=b"):
        monkeypatch.setenv("WAYLORE_STORE", url)
        assert "sesame" not in repr(list(told(load())))
    assert "sesame" not in repr(load().embedding)


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[http]\nport = 'x'\n", r"http\.port: .*integer.* \(waylore\.toml\)"),
        ("[http]\nprt = 1\n", r"http\.prt: .*not permitted \(waylore\.toml\)"),
        ("[embedding]\nprovider = 'gpt'\n", r"embedding\.provider: .*'fastembed'.*\(waylore\.toml\)"),
        ("[http\n", r"waylore\.toml .*is not TOML"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(folder: Path, toml: str, says: str) -> None:
    (folder / "waylore.toml").write_text(toml)
    with pytest.raises(ConfigError, match=says):
        load()


def test_a_mistyped_variable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_STROE", "x")
    assert unknown_variables() == ("WAYLORE_STROE",)


def test_only_surfaces_read_the_environment() -> None:
    package = Path(settings.__file__).parents[1]
    readers = [p for p in package.rglob("*.py") if "os.environ" in p.read_text("utf-8")]
    assert [p.relative_to(package).as_posix() for p in readers] == ["settings/load.py"]
