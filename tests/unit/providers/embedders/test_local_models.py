"""Local models with real weights: texts with similar meaning have similar vectors, in any batch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from requirements import find_model
from waylore.errors import ModelUnavailable
from waylore.protocols import Embedder
from waylore.providers.embedders.fastembed import BGE_QUESTION, FastEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder

pytestmark = pytest.mark.slow

PASSAGES = [
    "The Eiffel Tower in Paris is 330 metres high.",
    "Bread is baked from flour, water, salt and yeast.",
    "A long passage about the sea. " * 60,
    "",
    "Ludwig van Beethoven composed nine symphonies.",
]
QUESTION = "How tall is the landmark of the French capital?"


@pytest.fixture(scope="module")
def bge() -> FastEmbedder:
    return FastEmbedder(path=find_model("bge-small"), threads=1)


@pytest.fixture(scope="module")
def potion() -> Model2VecEmbedder:
    return Model2VecEmbedder(find_model("potion"))


def test_folder_of_a_model_has_one_name_as_text_and_as_path() -> None:
    folder, weights = find_model("potion"), find_model("bge-small")
    assert Model2VecEmbedder(str(folder)).name == Model2VecEmbedder(folder).name
    assert FastEmbedder(path=str(weights)).name == FastEmbedder(path=weights).name


@pytest.fixture(params=["bge", "potion"])
def model(request: pytest.FixtureRequest) -> Embedder:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Embedder)
    return found


@pytest.mark.model
def test_rows_are_float32_unit_vectors(model: Embedder) -> None:
    rows = model.embed_passages(PASSAGES)
    assert rows.shape == (len(PASSAGES), model.dimension)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert model.embed_query("").shape == (model.dimension,)
    assert model.embed_passages([]).shape == (0, model.dimension)


@pytest.mark.model
def test_paraphrase_is_nearer_than_other_subject(model: Embedder) -> None:
    said, meant, other = model.embed_passages(
        ["The film was praised by critics.", "Reviewers liked the movie.", "Iron melts at 1538 °C."]
    )
    assert said @ meant > said @ other + 0.1


@pytest.mark.model
def test_question_is_nearest_to_its_passage(bge: FastEmbedder) -> None:
    assert np.argmax(bge.embed_passages(PASSAGES) @ bge.embed_query(QUESTION)) == 0


@pytest.mark.model
def test_row_is_that_of_its_text_alone(model: Embedder) -> None:
    alone = np.concatenate([model.embed_passages([text]) for text in PASSAGES])
    np.testing.assert_array_equal(model.embed_passages(PASSAGES), alone)


@pytest.mark.model
def test_bge_prefix_is_added_once(bge: FastEmbedder) -> None:
    question, prefixed, plain = (
        bge.embed_query(QUESTION),
        bge.embed_passages([BGE_QUESTION + QUESTION])[0],
        bge.embed_passages([QUESTION])[0],
    )
    np.testing.assert_allclose(question, prefixed, atol=1e-6)
    assert question @ plain < 0.99


@pytest.mark.model
def test_name_changes_with_weights(bge: FastEmbedder, potion: Model2VecEmbedder, tmp_path: Path) -> None:
    assert bge.name == "BAAI/bge-small-en-v1.5@6c9c6101"
    assert potion.name == "potion@f65d0f32"
    other = shutil.copytree(find_model("bge-small"), tmp_path / "bge")
    with (other / "onnx" / "model_quantized.onnx").open("ab") as onnx:
        onnx.write(b"\x72\x00")  # an empty field of the protobuf: the same model in other bytes
    assert FastEmbedder(path=other, threads=1).name not in ("BAAI/bge-small-en-v1.5", bge.name)


def test_directory_without_weights_raises(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"one \.onnx file"):
        FastEmbedder(path=tmp_path)
    with pytest.raises(ModelUnavailable, match=r"config\.json"):
        Model2VecEmbedder(tmp_path)


def test_unknown_fastembed_model_raises(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    with pytest.raises(ModelUnavailable, match="list_supported_models"):
        FastEmbedder("nobody/nothing", path=tmp_path)


def test_missing_library_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[local\]'"):
        FastEmbedder()
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[model2vec\]'"):
        Model2VecEmbedder()


@pytest.mark.model
def test_onnx_runtime_sends_no_telemetry(tmp_path: Path) -> None:
    load = "import sys, pathlib; from waylore.providers.embedders import fastembed as f\n"
    load += "f.FastEmbedder(path=pathlib.Path(sys.argv[1]))"
    kept = ("PATH", "PYTHONPATH", "VIRTUAL_ENV")
    env = {name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(tmp_path)}
    env["FASTEMBED_CACHE_PATH"] = str(tmp_path / "models")
    subprocess.run([sys.executable, "-c", load, find_model("bge-small")], env=env, cwd=tmp_path, check=True)
    assert {file.name for file in tmp_path.rglob("*")} == {"models"}
