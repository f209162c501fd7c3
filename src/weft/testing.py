"""For authors of stores: the Store protocol as tests."""
