"""Background jobs: their states, their work, the tables that store them and the workers that run them."""
