"""Settings: the only reader of the environment.

A setting comes from the first of these that has it: an option of the command line, an environment variable
(`WAYLORE_STORE`, `WAYLORE_HTTP_PORT`), a secret in a file (`/run/secrets/waylore_store`), the file `.env`, the file
`waylore.toml` of the working directory, the user's own `waylore/config.toml`, its default. `told` says which it was.
Nothing here opens a store or loads a model.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_settings import (
    NoDecode,
)

EMBEDDERS = Literal["none", "fastembed", "model2vec", "openai", "hashing"]
EXTRACTORS = Literal["rules", "spacy", "llm", "none"]


def _split(value: Any) -> Any:
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]  # with commas, or a list in a file


class Section(BaseModel):
    """A table of the file; a name that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Embedding(Section):
    """Who makes vectors: nobody, a model on this machine, or a server that speaks OpenAI's protocol."""

    provider: EMBEDDERS = Field(default="none", description="none, fastembed, model2vec, openai or hashing")
    model: str = Field(default="", description="the model's name; the provider's own default if empty")
    path: Path | None = Field(
        default=None, description="a folder with the model's files, for use without a network"
    )
    url: str = Field(default="https://api.openai.com/v1", description="the server, for openai")
    key: SecretStr = Field(default=SecretStr(""), description="the server's API key")
    threads: int = Field(default=0, ge=0, description="texts embedded at the same time; 0 for one a core")


class Extraction(Section):
    """Who finds names and facts in what is added."""

    provider: EXTRACTORS = Field(default="rules", description="rules, spacy, llm or none")
    model: str = Field(default="", description="spaCy's pipeline, or the language model")
    url: str = Field(default="https://api.openai.com/v1", description="the server, for llm")
    key: SecretStr = Field(default=SecretStr(""), description="the server's API key")
    cache: Path | None = Field(default=None, description="a folder that keeps the language model's answers")
    tokens: int = Field(default=1_000_000, ge=1, description="the most tokens that a run may spend, for llm")


class Http(Section):
    """The HTTP service: where it listens, and how much it takes from one caller."""

    host: str = Field(default="127.0.0.1", description="the address to listen on; 0.0.0.0 for all")
    port: int = Field(default=8080, ge=0, le=65_535, description="the port to listen on")
    workers: int = Field(default=1, ge=1, description="processes that answer")
    auth: bool = Field(default=True, description="ask for an API key or a token; turn it off on loopback only")
    max_body: int = Field(default=10_000_000, ge=1, description="the most bytes of a request, uploads excepted")
    max_upload: int = Field(default=1_000_000_000, ge=1, description="the most bytes of one uploaded file")
    seconds: float = Field(
        default=30.0, gt=0, description="the longest that a request may take, uploads excepted"
    )
    stall: float = Field(
        default=10.0, gt=0, description="the longest wait for the next bytes of a request, in seconds"
    )
    rate: int = Field(
        default=600, ge=0, description="requests a minute for each key and process; 0 for any number"
    )
    spool: Path | None = Field(default=None, description="a folder for uploads until they are added")
    uploads: int = Field(default=16, ge=1, description="uploads that one process takes at the same time")
    pace: int = Field(
        default=10_000, ge=0, description="bytes a second that an upload must keep up, on average"
    )
    jobs: int = Field(
        default=2,
        ge=0,
        description="jobs that one process does at the same time; 0 leaves them to `waylore worker`",
    )
    takeover: float = Field(
        default=30.0, gt=0, description="seconds without a sign of life after which another takes over a job"
    )
    cors: Words = Field(default=(), description="web pages that may call, as https://app.example")


class Oidc(Section):
    """Bearer tokens of an OpenID Connect provider, beside API keys."""

    issuer: str = Field(default="", description="the provider's address; none are taken if empty")
    audience: str = Field(default="waylore", description="what a token must be meant for")
    collections: str = Field(
        default="waylore_collections", description="the claim that lists a caller's collections"
    )
    scope: str = Field(default="scope", description="the claim that holds read, write or admin")
    labels: str = Field(
        default="waylore_labels",
        description="the claim that lists the labels a caller reads; all, if it is absent",
    )


class Telemetry(Section):
    """What is told to whom; nothing, unless configured."""

    traces: str = Field(default="", description="an OTLP address such as http://localhost:4318; none if empty")
    metrics: bool = Field(default=False, description="count and time, and serve /metrics")
    logs: Literal["text", "json"] = Field(default="text", description="how log lines are written")
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="the least that is logged"
    )
    content: bool = Field(default=False, description="put questions and texts into traces; they may be private")
