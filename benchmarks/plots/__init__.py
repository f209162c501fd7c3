"""Results that the docs show, as JSON, and the plots that are made of them."""
