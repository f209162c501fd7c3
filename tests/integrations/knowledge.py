"""A small memory for the tests of both frameworks: a hit over the graph, a filter, and a name."""

from pathlib import Path

from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

QUESTION = "Who can help with the login?"


def open_memory(folder: Path) -> Waylore:
    """Open a memory with four documents. The second is found over a fact, and only admins read the last."""
    memory = Waylore.open(folder / "memory.waylore", embedder=HashingEmbedder(quiet=True))
    memory.add(
        "The login needs the session service.",
        title="Login",
        uri="docs/login.md",
        metadata={"team": "web", "tags": ["auth", "ui"], "year": 2024},
        facts=[("login", "needs", "session service")],
    )
    memory.add("Mara looks after tokens.", title="Mara", facts=[("Mara", "owns", "session service")])
    memory.add("Help is in the handbook.", uri="docs/help.md", metadata={"team": "docs", "waylore": "ours"})
    memory.add("The login of the vault is in the safe.", uri="docs/vault.md", labels=["admins"])
    memory.search(QUESTION)  # starts the thread that counts uses, which then belongs to no test
    return memory
