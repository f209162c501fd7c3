"""FastReranker with the real TextCrossEncoder of fastembed and a cross-encoder that the test writes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from unit.providers.cross_encoder import write_cross_encoder
from unit.providers.loopback import score_text
from waylore.deadline import Deadline
from waylore.errors import DeadlineExceeded, ModelUnavailable
from waylore.protocols import Reranker
from waylore.providers.onnx import load_model
from waylore.providers.rerankers.fastembed import FastReranker

QUESTION = "Who keeps the lighthouse of Kiel?"
TEXTS = [
    "Ada keeps bees.",
    "The lighthouse of Kiel: Nils keeps the lighthouse.",
    "Rain is expected.",
    "Kiel has a lighthouse, and the harbour of Kiel has two.",
    "",
]
EXPECTED = [score_text(QUESTION, text) for text in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("models") / "overlap", [QUESTION, *TEXTS])


@pytest.mark.parametrize(("batch_size", "threads"), [(1, 1), (1, None), (2, 2), (64, 1)])
def test_scores_are_those_of_the_model_in_order(folder: Path, batch_size: int, threads: int | None) -> None:
    reranker = FastReranker("own/overlap", path=folder, batch_size=batch_size, threads=threads)
    assert isinstance(reranker, Reranker)
    assert reranker.name == "own/overlap"
    assert EXPECTED == [1.0, 7.0, 0.0, 5.0, 0.0]
    assert reranker.rerank(QUESTION, TEXTS) == EXPECTED
    assert reranker.rerank(QUESTION, []) == []


def test_folder_may_be_text(folder: Path) -> None:
    assert FastReranker(path=str(folder)).rerank(QUESTION, TEXTS) == EXPECTED


def test_threads_share_one_model_that_is_loaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []

    def load(*given: Any) -> object:
        loaded.append(load_model(*given))
        return loaded[-1]

    monkeypatch.setattr("waylore.providers.rerankers.fastembed.load_model", load)
    reranker = FastReranker(path=folder)
    assert not loaded
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: reranker.rerank(QUESTION, TEXTS), range(16)))
    assert answers == [EXPECTED] * 16
    assert len(loaded) == 1


def test_long_passage_is_cut(folder: Path) -> None:
    assert FastReranker(path=folder).rerank(QUESTION, ["rain " * 5_000 + "lighthouse"]) == [0.0]


def test_deadline_ends_scoring(folder: Path) -> None:
    reranker = FastReranker(path=folder)
    assert reranker.rerank(QUESTION, TEXTS) == EXPECTED
    with Deadline(0.0).activate(), pytest.raises(DeadlineExceeded):
        reranker.rerank(QUESTION, TEXTS)


def test_directory_without_weights_raises_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"one \.onnx file"):
        FastReranker(path=tmp_path)


def test_damaged_weights_raise(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    expected = f"cannot load own/overlap from {tmp_path}"
    with pytest.raises(ModelUnavailable, match=expected):
        FastReranker("own/overlap", path=tmp_path).rerank(QUESTION, TEXTS)


def test_model_without_scores_of_pairs_raises(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "model", TEXTS, output="last_special")
    with pytest.raises(ModelUnavailable, match="Use a cross-encoder"):
        FastReranker(path=folder).rerank(QUESTION, TEXTS)


def test_unknown_name_raises() -> None:
    with pytest.raises(ModelUnavailable, match=r"TextCrossEncoder\.list_supported_models"):
        FastReranker("nobody/nothing").rerank(QUESTION, TEXTS)


def test_hub_that_cannot_be_reached_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    with pytest.raises(ModelUnavailable, match=r"ms-marco-MiniLM-L-6-v2 cannot be downloaded.*reranking\.path"):
        FastReranker().rerank(QUESTION, TEXTS)


def test_missing_library_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[local\]'"):
        FastReranker()


def test_library_is_imported_at_first_use(folder: Path) -> None:
    check = "import sys, pathlib; from waylore.providers.rerankers.fastembed import FastReranker\n"
    check += "made = FastReranker(path=pathlib.Path(sys.argv[1])); assert 'fastembed' not in sys.modules\n"
    check += "made.rerank('a', ['b']); assert 'fastembed' in sys.modules"
    subprocess.run([sys.executable, "-c", check, str(folder)], check=True)
