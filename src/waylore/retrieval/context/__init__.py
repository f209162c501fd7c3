"""Write a search result as text for a model, within a budget of tokens."""
