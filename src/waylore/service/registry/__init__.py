"""What a service must remember: API keys, collections, and responses for idempotency keys."""
