"""Find names and facts in passages, by rules and structure."""
