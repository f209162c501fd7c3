"""One script for each peer. The peer's own interpreter runs it, so it imports nothing of ours but `frame`."""
