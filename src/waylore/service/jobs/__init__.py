"""Background jobs: their states, the work they do, and the queues that run them."""
