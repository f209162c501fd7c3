"""The tables of `waylore.toml` as frozen models, with the default and a description of every setting.

A description is a noun phrase with its unit; `waylore config` and `docs/reference/settings.md` print it. Nothing here
reads the environment.
"""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from waylore.dates import find_timezone
from waylore.errors import ArgumentError

EMBEDDERS = ("none", "fastembed", "model2vec", "openai", "hashing")
EXTRACTORS = ("rules", "spacy", "llm", "none")
RERANKERS = ("fastembed", "endpoint")
OPENAI_URL = "https://api.openai.com/v1"


def _split(value: Any) -> Any:
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


def _check_days(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if not re.fullmatch(r"[^=]+=[1-9][0-9]{0,5}", word):
            raise ValueError(
                f"must be the name of a collection and a number of days, such as team=400, got {word!r:.60}"
            )
    return words


def _check_timezone(name: str) -> str:
    try:
        find_timezone(name)
    except ArgumentError as error:
        raise ValueError(str(error).removeprefix("timezone ")) from error
    return name


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]  # text separated by commas, or a list in a file


class Section(BaseModel):
    """A table of the file; an unknown name in it is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EmbeddingSettings(Section):
    """The model that makes vectors."""

    provider: str = Field(
        default="none", description="none, fastembed, model2vec, openai, hashing, or the name of a plugin"
    )
    model: str = Field(default="", description="name of the model; the provider's default if empty")
    path: Path | None = Field(default=None, description="folder with the files of the model, for use without a network")
    base_url: str = Field(default=OPENAI_URL, description="address of the server, for openai")
    api_key: SecretStr = Field(default=SecretStr(""), description="API key of the server; OPENAI_API_KEY if empty")
    threads: int = Field(default=0, ge=0, description="texts embedded at the same time; 0 for one per core")


class ExtractionSettings(Section):
    """The extractor that finds names and facts in added texts."""

    provider: str = Field(default="rules", description="rules, spacy, llm, none, or the name of a plugin")
    model: str = Field(default="", description="name of spaCy's pipeline, or of the language model")
    base_url: str = Field(default=OPENAI_URL, description="address of the server, for llm")
    api_key: SecretStr = Field(default=SecretStr(""), description="API key of the server; OPENAI_API_KEY if empty")
    cache: Path | None = Field(default=None, description="folder for cached answers of the language model")
    max_tokens: int = Field(default=1_000_000, ge=1, description="maximum tokens that a run may spend, for llm")


class FilesSettings(Section):
    """The files that are added, on every surface."""

    seconds: int = Field(
        default=60, ge=1, description="processor time of one file in seconds, for files that another process reads"
    )


class SecretsSettings(Section):
    """Keys, passwords, card numbers and other secrets in added texts, on every surface."""

    scrub: bool = Field(default=True, description="replace secrets in added texts by a mark")
    keep_in: Words = Field(default=(), description="collections that store secrets even if scrub is on")

    def is_scrubbed(self, collection: str) -> bool:
        """Return whether secrets are left out of texts added to a collection."""
        return self.scrub and collection not in self.keep_in


class RetentionSettings(Section):
    """How long documents are kept. `waylore forget --expired` forgets older ones."""

    days: Annotated[Words, AfterValidator(_check_days)] = Field(
        default=(), description="days that documents of a collection are kept, such as team=400; * for all others"
    )

    def get_age(self, collection: str) -> timedelta | None:
        """Return the age at which documents of a collection are forgotten; None if they are kept."""
        days = dict(word.split("=") for word in self.days)
        kept = days.get(collection, days.get("*"))
        return None if kept is None else timedelta(days=int(kept))


class SearchSettings(Section):
    """The defaults of a search, on every surface."""

    method: str = Field(default="auto", description="auto, graph, hybrid, vector, keyword or another recipe")
    top_k: int = Field(default=0, ge=0, le=10_000, description="number of hits; 0 for the recipe's own (10)")
    recipe: Words = Field(default=(), description="values of the recipe to change, such as walk.max_hops=2")
    reranker: str = Field(
        default="", description="fastembed, endpoint, or the name of a plugin that reorders the hits; none if empty"
    )


class RerankingSettings(Section):
    """The model of the reranker, if `search.reranker` is fastembed or endpoint."""

    model: str = Field(default="", description="name of the model; the provider's default if empty, for fastembed")
    path: Path | None = Field(default=None, description="folder with the files of the model, for use without a network")
    base_url: str = Field(default="", description="address of the server, such as https://api.jina.ai/v1")
    api_key: SecretStr = Field(default=SecretStr(""), description="API key of the server; none is sent if empty")
    threads: int = Field(default=0, ge=0, description="passages scored at the same time; 0 for one per core")


class HttpSettings(Section):
    """The HTTP service: its address, and the limits for a caller."""

    host: str = Field(default="127.0.0.1", description="address to listen on; 0.0.0.0 for all")
    hosts: Words = Field(
        default=(), description="further names of the service in a Host header, as memory.example or *.example"
    )
    port: int = Field(default=8080, ge=0, le=65_535, description="port to listen on")
    workers: int = Field(default=1, ge=1, description="number of processes")
    auth: bool = Field(default=True, description="require an API key or a token; turn it off on loopback only")
    max_body_bytes: int = Field(
        default=10_000_000, ge=1, description="maximum size of a request in bytes, uploads excepted"
    )
    max_upload_bytes: int = Field(default=1_000_000_000, ge=1, description="maximum size of an uploaded file in bytes")
    request_timeout: float = Field(
        default=30.0, gt=0, description="time limit of a request in seconds, uploads and exports excepted"
    )
    export_seconds: float = Field(default=600.0, gt=0, description="time limit of an export in seconds")
    idle_timeout: float = Field(
        default=10.0, gt=0, description="maximum wait for the next bytes of a request in seconds"
    )
    rate_limit: int = Field(
        default=600, ge=0, description="requests per minute for each key and process; 0 for no limit"
    )
    upload_dir: Path | None = Field(default=None, description="folder for uploads until they are added")
    max_concurrent_uploads: int = Field(default=16, ge=1, description="uploads that one process accepts at once")
    min_upload_rate: int = Field(default=10_000, ge=0, description="minimum average upload speed in bytes per second")
    cors_origins: Words = Field(default=(), description="origins of web pages that may call, as https://app.example")


class McpSettings(Section):
    """The tools of agents over MCP, from `waylore mcp` and at `/mcp` of the service."""

    text: bool = Field(
        default=False, description="answer with text only, for clients that would show their model the JSON"
    )
    deep_research: bool = Field(
        default=False, description="also list the tools search and fetch, which deep-research clients expect"
    )


class JobsSettings(Section):
    """Background jobs of the service and of `waylore worker`."""

    concurrency: int = Field(
        default=2,
        ge=0,
        description="jobs that a process runs at once, plus two of other callers; 0 leaves them to `waylore worker`",
    )
    heartbeat_timeout: float = Field(
        default=30.0, gt=0, description="seconds without a heartbeat after which another worker runs a job"
    )


class OidcSettings(Section):
    """Bearer tokens of an OpenID Connect provider, beside API keys."""

    issuer: str = Field(default="", description="address of the provider; tokens are refused if empty")
    audience: str = Field(default="waylore", description="audience that a token must have")
    client_id: str = Field(
        default="", description="id of this service at the provider, for signing in to the explorer; no login if empty"
    )
    collections: str = Field(default="waylore_collections", description="claim with the collections of the caller")
    scope: str = Field(default="scope", description="claim with read, write or admin")
    labels: str = Field(
        default="waylore_labels",
        description="claim with the labels of the caller, who sees only public documents without it; empty gives all "
        "labels to every caller",
    )


class TelemetrySettings(Section):
    """Traces, metrics and logs; off by default."""

    otlp_endpoint: str = Field(
        default="", description="OTLP address for traces, such as http://localhost:4318; none if empty"
    )
    metrics: bool = Field(default=False, description="collect metrics and serve them at /metrics")
    log_format: Literal["text", "json"] = Field(default="text", description="format of log lines")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="warning", description="minimum log level")
    capture_content: bool = Field(default=False, description="put questions and texts into traces; they may be private")


class Settings(Section):
    """Every setting with its default."""

    store: str = Field(default="memory.waylore", description="file, postgresql://…, or cells+ and a catalogue")
    collection: str = Field(default="default", description="collection to use")
    timezone: Annotated[str, AfterValidator(_check_timezone)] = Field(
        default="UTC",
        description="IANA name of the zone of words such as yesterday and of printed times, as Europe/Berlin; dates "
        "without an offset are UTC",
    )
    single_valued: Words = Field(default=(), description="predicates with one object at a time for each subject")
    embedding: EmbeddingSettings = EmbeddingSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    files: FilesSettings = FilesSettings()
    secrets: SecretsSettings = SecretsSettings()
    retention: RetentionSettings = RetentionSettings()
    search: SearchSettings = SearchSettings()
    reranking: RerankingSettings = RerankingSettings()
    http: HttpSettings = HttpSettings()
    mcp: McpSettings = McpSettings()
    jobs: JobsSettings = JobsSettings()
    oidc: OidcSettings = OidcSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


RENAMED = {  # settings of version 0.1, for errors that name the new setting
    "functional": "single_valued",
    "embedding.url": "embedding.base_url",
    "embedding.key": "embedding.api_key",
    "extraction.url": "extraction.base_url",
    "extraction.key": "extraction.api_key",
    "extraction.tokens": "extraction.max_tokens",
    "http.seconds": "http.request_timeout",
    "http.stall": "http.idle_timeout",
    "http.rate": "http.rate_limit",
    "http.pace": "http.min_upload_rate",
    "http.spool": "http.upload_dir",
    "http.uploads": "http.max_concurrent_uploads",
    "http.max_body": "http.max_body_bytes",
    "http.max_upload": "http.max_upload_bytes",
    "http.jobs": "jobs.concurrency",
    "http.takeover": "jobs.heartbeat_timeout",
    "http.cors": "http.cors_origins",
    "telemetry.traces": "telemetry.otlp_endpoint",
    "telemetry.logs": "telemetry.log_format",
    "telemetry.level": "telemetry.log_level",
    "telemetry.content": "telemetry.capture_content",
}
