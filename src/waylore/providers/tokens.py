"""Token counts through tiktoken, as OpenAI's models count; other models are near enough to budget by.

It counts and does nothing else: where no tokenizer is installed, `waylore.text.pieces` estimates. Tiktoken
downloads the vocabulary at first use. Without a network, put the file into a directory under the name that
tiktoken gives it (the SHA-1 of its address) and set TIKTOKEN_CACHE_DIR to that directory; tiktoken deletes
a file there that is damaged.
"""

from waylore.errors import ModelUnavailable
from waylore.protocols import Count
from waylore.providers.optional import require


def counter(name: str = "o200k_base") -> Count:
    """Count tokens of this encoding; a special token's name in a text is text like any other."""
    tiktoken = require("tiktoken", extra="tokens")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:
        raise ModelUnavailable(
            f"tiktoken cannot load {name}: {error}\nCheck the name with `tiktoken.list_encoding_names()`, "
            "the network, or set TIKTOKEN_CACHE_DIR to a directory that holds its file."
        ) from error
    return lambda text: len(encoding.encode_ordinary(text))
