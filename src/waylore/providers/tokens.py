"""Count tokens with tiktoken, as OpenAI's models do. For a budget, the counts are close enough for other models.

Without tiktoken, `waylore.text.estimate_tokens` estimates. Tiktoken downloads the vocabulary at first use. To
use it without a network, put the file into a directory under the name that tiktoken gives it (the SHA-1 of its
address) and set TIKTOKEN_CACHE_DIR to that directory. Tiktoken deletes damaged files there.
"""

from waylore.errors import ModelUnavailable
from waylore.protocols import CountTokens
from waylore.providers.optional import require


def create_counter(name: str = "o200k_base") -> CountTokens:
    """Return a function that counts the tokens of an encoding. Names of special tokens count as plain text."""
    tiktoken = require("tiktoken", extra="tokens")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:
        raise ModelUnavailable(
            f"tiktoken cannot load {name}: {error}\nCheck the name with `tiktoken.list_encoding_names()`, "
            "the network, or set TIKTOKEN_CACHE_DIR to a directory that contains its file"
        ) from error
    return lambda text: len(encoding.encode_ordinary(text))
