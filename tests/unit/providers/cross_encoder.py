"""Write a tiny cross-encoder with ONNX, tokenizer and configuration, as fastembed loads it.

Its score is how often the passage has words of the question, as `loopback.score_text` counts them, so a test knows the
order. No package that writes ONNX is a dependency, so the few messages of its protobuf are written here by hand.
"""

import json
import re
import struct
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

FLOAT, INT64 = 1, 7  # TensorProto.DataType
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
# Counts pairs of equal words, of which the first is in the question and the second in the passage.
NODES = (
    ("Unsqueeze", "input_ids last", "row"),
    ("Unsqueeze", "input_ids middle", "column"),
    ("Equal", "row column", "is_same"),
    ("Cast", "is_same", "same"),
    ("Greater", "input_ids last_special", "is_word"),
    ("Cast", "is_word", "word"),
    ("Cast", "token_type_ids", "second"),
    ("Mul", "word second", "passage"),
    ("Sub", "word passage", "question"),
    ("Unsqueeze", "passage last", "of_passage"),
    ("Unsqueeze", "question middle", "of_question"),
    ("MatMul", "same of_passage", "counts"),
    ("MatMul", "of_question counts", "sum"),
    ("Squeeze", "sum last", "logits"),
)
CONSTANTS = {"middle": 1, "last": 2, "last_special": len(SPECIAL) - 1}


def write_cross_encoder(folder: Path, texts: Iterable[str], *, output: str = "logits") -> Path:
    """Write the model into a folder, with the words of some texts as its vocabulary. `output` is what it returns."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").write_bytes(_make_model(output))
    words = sorted({word for text in texts for word in re.findall(r"\w+", text.lower())})
    _make_tokenizer(words).save(str(folder / "tokenizer.json"))
    configuration = {"model_max_length": 512, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    return folder


def _make_tokenizer(words: list[str]) -> Tokenizer:
    vocabulary = {word: at for at, word in enumerate((*SPECIAL, *words))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


def _make_model(output: str) -> bytes:
    graph = [_field(1, _make_node(*node)) for node in NODES]
    graph += [_field(2, b"overlap"), *(_field(5, _make_constant(*constant)) for constant in CONSTANTS.items())]
    graph += [_field(11, _describe_tensor(name, INT64)) for name in ("input_ids", "token_type_ids")]
    graph.append(_field(12, _describe_tensor(output, FLOAT)))
    opset = _field(8, _field(1, b"") + _number(2, 13))
    return _number(1, 8) + opset + _field(7, b"".join(graph))


def _make_node(kind: str, inputs: str, output: str) -> bytes:
    attribute = _field(5, _field(1, b"to") + _number(3, FLOAT) + _number(20, 2)) if kind == "Cast" else b""
    named = [_field(1, name.encode()) for name in inputs.split()]
    return b"".join([*named, _field(2, output.encode()), _field(4, kind.encode()), attribute])


def _make_constant(name: str, value: int) -> bytes:
    return _number(1, 1) + _number(2, INT64) + _field(8, name.encode()) + _field(9, struct.pack("<q", value))


def _describe_tensor(name: str, kind: int) -> bytes:
    return _field(1, name.encode()) + _field(2, _field(1, _number(1, kind)))


# -- protobuf ------------------------------------------------------------------------------------------


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _to_varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _to_varint(number << 3) + _to_varint(value)


def _to_varint(value: int) -> bytes:
    head = b""
    while value > 127:
        head += bytes([value & 127 | 128])
        value >>= 7
    return head + bytes([value])
