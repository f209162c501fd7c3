"""Test which settings of a folder need trust: every one that is not known to be harmless."""

from pathlib import Path

import pytest

from waylore.settings.names import NAMES
from waylore.settings.trust import HARMLESS, find_guarded

GUARDED = {
    *("embedding.base_url", "embedding.api_key", "extraction.base_url", "extraction.api_key", "extraction.max_tokens"),
    *("reranking.base_url", "reranking.api_key"),
    *("http.host", "http.hosts", "http.auth", "http.cors_origins"),
    *("oidc.issuer", "oidc.audience", "oidc.client_id", "oidc.collections", "oidc.scope", "oidc.labels"),
    *("telemetry.otlp_endpoint", "telemetry.capture_content", "secrets.scrub", "secrets.keep_in"),
    "retention.days",
}
BY_VALUE = {
    "store",
    "extraction.cache",
    "http.upload_dir",
    "embedding.provider",
    "extraction.provider",
    "search.reranker",
}


def needs_trust(folder: Path, name: str, value: object) -> bool:
    return bool(find_guarded({tuple(name.split(".")): value}, folder / "waylore.toml"))


def test_settings_that_send_or_admit_need_trust(tmp_path: Path) -> None:
    known = {".".join(name) for name in NAMES}
    assert known >= GUARDED | BY_VALUE
    assert {".".join(name) for name in HARMLESS} <= known - GUARDED - BY_VALUE
    assert all(needs_trust(tmp_path, name, "x") for name in GUARDED)
    assert needs_trust(tmp_path, "http.setting_of_tomorrow", "x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("memory.waylore", False),
        ("sqlite:///data/memory.waylore", False),
        ("data/../memory.waylore", False),
        (":memory:", False),
        ("../memory.waylore", True),
        ("/tmp/memory.waylore", True),
        ("sqlite:////tmp/memory.waylore", True),
        ("~/memory.waylore", True),
        ("link/memory.waylore", True),
        ("postgresql://evil.example/x", True),
        ("postgres://evil.example/x", True),
        ("cells+sqlite:///cells.db", True),
        ("plugin://evil.example", True),
    ],
)
def test_store_outside_of_the_folder_needs_trust(tmp_path: Path, value: str, expected: bool) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    assert needs_trust(tmp_path / "folder", "store", value) == expected


@pytest.mark.parametrize("setting", ["embedding.provider", "extraction.provider", "search.reranker"])
def test_provider_that_sends_texts_needs_trust(tmp_path: Path, setting: str) -> None:
    local = ("none", "fastembed", "model2vec", "hashing", "rules", "spacy")
    assert not any(needs_trust(tmp_path, setting, name) for name in local)
    assert all(needs_trust(tmp_path, setting, name) for name in ("openai", "llm", "endpoint", "plugin", ["openai"]))
