"""Leave secrets out of added texts: keys, tokens, passwords, card numbers and private parts."""
