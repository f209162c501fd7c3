"""The conformance suite for authors of stores."""
