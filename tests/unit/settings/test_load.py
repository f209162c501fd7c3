"""Test settings: which place wins, where a value came from, and errors about values."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from waylore.errors import ConfigError
from waylore.settings import load as settings
from waylore.settings.load import check_settings, list_settings, load
from waylore.settings.names import find_unknown
from waylore.surfaces.open import open_collection


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return tmp_path


def list_origins(**options: object) -> dict[str, tuple[str, str]]:
    return {s.name: (s.value, s.source) for s in list_settings(load(**options), **options)}


def test_stronger_place_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own" / "waylore").mkdir(parents=True)
    (folder / "own" / "waylore" / "config.toml").write_text(
        '[http]\nport = 1\nworkers = 5\nrate_limit = 7\nhost = "h"\n[oidc]\nissuer = "own"\n'
    )
    (folder / "waylore.toml").write_text("[http]\nport = 2\nworkers = 2\nrate_limit = 2\n")
    (folder / ".env").write_text("WAYLORE_HTTP_PORT=3\nWAYLORE_HTTP_WORKERS=3\nOTHER=1\n")
    monkeypatch.setenv("WAYLORE_HTTP_PORT", "4")
    known = list_origins(collection="team")
    own = str(folder / "own" / "waylore" / "config.toml")
    assert known["collection"] == ("team", "option")
    assert known["http.port"] == ("4", "environment")
    assert known["http.workers"] == ("3", ".env")
    assert known["http.rate_limit"] == ("2", "waylore.toml")
    assert known["http.host"] == ("h", own)
    assert known["oidc.issuer"] == ("own", own)
    assert known["http.request_timeout"] == ("30.0", "default")


def test_settings_have_a_variable_and_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in list_settings(load()):
        assert one.description, one.name
        monkeypatch.setenv(one.variable, one.value or ("x=1" if one.name == "retention.days" else "x"))
        assert list_origins()[one.name][1] == "environment", one.variable
        monkeypatch.delenv(one.variable)


def test_variable_holds_a_list_with_commas(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "waylore.toml").write_text('single_valued = ["a", "b"]\n')
    assert load().single_valued == ("a", "b")
    monkeypatch.setenv("WAYLORE_SINGLE_VALUED", "works_at, lives_in")
    assert load().single_valued == ("works_at", "lives_in")


def test_secrets_are_read_from_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = folder / "secrets"
    secrets.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(secrets))
    (secrets / "waylore_store").write_text("postgresql://me:sesame@host/x\n")
    (secrets / "WAYLORE_EMBEDDING_API_KEY").write_text("sesame")
    (secrets / "somebody_elses").write_bytes(b"\xff")
    (secrets / "waylore_folder").mkdir()
    (folder / ".env").write_text("WAYLORE_STORE=weaker\nWAYLORE_COLLECTION=team\n")
    assert load().store == "postgresql://me:sesame@host/x"
    assert load().embedding.api_key.get_secret_value() == "sesame"
    known = list_origins()
    assert known["store"] == ("postgresql://me:**********@host/x", str(secrets))
    assert known["embedding.api_key"] == ("**********", str(secrets))
    assert known["collection"] == ("team", ".env")
    monkeypatch.setenv("WAYLORE_STORE", "stronger")
    assert load().store == "stronger"


def test_unreadable_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as secrets:
        Path(secrets).chmod(0o755)
        monkeypatch.chdir(secrets)
        monkeypatch.setenv("XDG_CONFIG_HOME", secrets)
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", secrets)
        (Path(secrets) / "waylore_store").write_text("x")
        (Path(secrets) / "waylore_store").chmod(0o000)
        with become_nobody(), pytest.raises(ConfigError, match=r"waylore_store cannot be read: Permission denied"):
            load()


@contextmanager
def become_nobody() -> Iterator[None]:
    """Change to a user without rights, because root may read everything."""
    if is_root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_EMBEDDING_API_KEY", "sesame")
    for url in ("postgresql://me:sesame@host/x", "postgresql://host/x?user=me&password=sesame&a=b"):
        monkeypatch.setenv("WAYLORE_STORE", url)
        assert "sesame" not in repr(list(list_settings(load())))
    assert "sesame" not in repr(load().embedding)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[http]\nport = 'x'\n", r"http\.port: .*integer.* \(waylore\.toml\)"),
        ("[http]\nprt = 1\n", r"unknown setting http\.prt \(waylore\.toml\); did you mean http\.port\?"),
        ("[telemetry]\nlog_format = 'xml'\n", r"telemetry\.log_format: .*'json'.*\(waylore\.toml\)"),
        ("timezone = 'Berlin'\n", r"timezone: .*IANA name.*'Berlin'.* \(waylore\.toml\)"),
        ("[http\n", r"waylore\.toml is not TOML"),
    ],
)
def test_error_names_the_setting_and_its_place(folder: Path, toml: str, message: str) -> None:
    (folder / "waylore.toml").write_text(toml)
    with pytest.raises(ConfigError, match=message):
        load()


def test_unknown_variable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_STROE", "x")
    assert find_unknown(os.environ) == ("WAYLORE_STROE",)


def test_variables_of_our_tools_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAYLORE_MODELS", "WAYLORE_TEXTSEARCH", "WAYLORE_QDRANT", "WAYLORE_DEBIAN_MIRROR"):
        monkeypatch.setenv(name, "x")
    assert find_unknown(os.environ) == ()


def test_only_settings_read_the_environment() -> None:
    package = Path(settings.__file__).parents[1]
    readers = [p for p in package.rglob("*.py") if "os.environ" in p.read_text("utf-8")]
    assert [p.relative_to(package).as_posix() for p in readers] == ["settings/load.py"]


def test_settings_are_found_in_a_parent_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    (folder / "waylore.toml").write_text('collection = "team"\n[embedding]\npath = "models/small"\n')
    below = folder / "docs" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    found = load()
    assert (found.collection, found.store) == ("team", str(folder / "memory.waylore"))
    assert found.embedding.path == folder / "models" / "small"
    assert list_origins()["collection"] == ("team", str(folder / "waylore.toml"))


def test_settings_above_the_repository_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "waylore.toml").write_text('collection = "other"\n')
    repository = folder / "repository"
    (repository / ".git").mkdir(parents=True)
    monkeypatch.chdir(repository)
    assert load().collection == "default"


def test_renamed_settings_are_named(folder: Path) -> None:
    (folder / "waylore.toml").write_text("[http]\nseconds = 3\n")
    with pytest.raises(ConfigError, match=r"unknown setting http\.seconds .*did you mean http\.request_timeout\?"):
        load()


def test_unknown_variable_in_dotenv_is_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / ".env").write_text("WAYLORE_STROE=x\nWAYLORE_COLLECTION=team\n")
    assert load().collection == "team"
    assert "WAYLORE_STROE in .env is not a setting" in caplog.text


def test_unknown_variable_of_the_environment_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WAYLORE_STROE", "x")
    load()
    assert "WAYLORE_STROE in the environment is not a setting" in caplog.text


def test_relative_store_of_the_own_file_counts_from_that_file(folder: Path) -> None:
    own = folder / "own" / "waylore"
    own.mkdir(parents=True)
    (own / "config.toml").write_text('store = "mine.waylore"\n')
    assert load().store == str(own / "mine.waylore")


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert load(store="~/mine.waylore").store == "/home/ada/mine.waylore"


def test_openai_key_is_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    assert load().embedding.api_key.get_secret_value() == "sesame"
    monkeypatch.setenv("WAYLORE_EMBEDDING_API_KEY", "own")
    assert load().embedding.api_key.get_secret_value() == "own"


def test_search_settings_apply_to_every_surface(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[search]\nmethod = "hybrid"\ntop_k = 2\n')
    with open_collection(load(store="m.waylore")) as memory:
        for text in ("Ada sails.", "Ada rows.", "Ada swims."):
            memory.add(text)
        result = memory.search("Ada")
    assert (result.recipe, len(result)) == ("hybrid", 2)


def test_value_of_an_unknown_setting_is_not_shown(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[embedding]\napikey = "sesame"\n')
    listed = list(check_settings())
    assert "embedding.apikey" in [one.name for one in listed]
    assert "sesame" not in repr(listed)
