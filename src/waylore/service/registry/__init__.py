"""The registry of a service: API keys, collections, and cached responses for idempotency keys."""
