"""Load the ONNX models of fastembed, embedders and cross-encoders: by name, or from a directory without a network.

A named model is downloaded once, into the cache of fastembed. Nothing here calls a model.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from waylore.errors import ModelUnavailable
from waylore.providers.hub import check_hub, mute_logs
from waylore.providers.optional import require


class ModelKind(NamedTuple):
    """A class of fastembed, and the setting with the directory of its model.

    `is_uniform` if all its models are run in the same way, so a directory may have any of them.
    """

    module: str
    name: str
    setting: str
    is_uniform: bool


EMBEDDING = ModelKind("fastembed", "TextEmbedding", "embedding.path", is_uniform=False)
CROSS_ENCODER = ModelKind("fastembed.rerank.cross_encoder", "TextCrossEncoder", "reranking.path", is_uniform=True)


def load_model(kind: ModelKind, model: str, path: Path | None) -> Any:
    """Load a model from the directory `path`, or by its name; one thread runs it."""
    # The ONNX runtime (from 1.29 on) sends telemetry, unless this is set before it is imported.
    os.putenv("ORT_DISABLE_TELEMETRY", "1")
    loader = getattr(require(kind.module, extra="local"), kind.name)
    try:
        with mute_logs():
            return _load_directory(loader, kind, model, path) if path else _load_by_name(loader, kind, model)
    except ModelUnavailable:
        raise
    except Exception as error:
        raise ModelUnavailable(
            f"fastembed cannot load {model} from {path or 'its hub'}: {error}\nCheck the name with "
            f"`{kind.name}.list_supported_models()`, the network, or pass a directory as `path`"
        ) from error


def find_weights(path: Path) -> Path:
    """Return the file of the weights in a directory."""
    found = sorted(path.rglob("*.onnx"))
    if len(found) != 1:
        raise ModelUnavailable(
            f"{path} must contain one .onnx file beside tokenizer.json, tokenizer_config.json and "
            f"config.json; it contains {len(found)}"
        )
    return found[0]


def _load_by_name(loader: Any, kind: ModelKind, model: str) -> Any:
    """Load a model from the cache of fastembed, or download it."""
    try:
        return loader(model, threads=1, local_files_only=True)
    except ValueError:
        if model.lower() in map(str.lower, _list_names(loader)):
            check_hub(model, kind.setting)
        return loader(model, threads=1)


def _load_directory(loader: Any, kind: ModelKind, model: str, path: Path) -> Any:
    weights = find_weights(path)
    name = _list_names(loader)[0] if kind.is_uniform else model
    loaded = loader(name, threads=1, specific_model_path=str(path), lazy_load=True)
    # Fastembed expects the file name of its own export; a directory may have another file, such as int8.
    loaded.model.model_description = replace(loaded.model.model_description, model_file=str(weights.relative_to(path)))
    loaded.model.load_onnx_model()
    return loaded


def _list_names(loader: Any) -> list[str]:
    return [each["model"] for each in loader.list_supported_models()]
