"""Run the recipes for agents of the docs with real packages and a model that follows a script."""
