"""Leave secrets out of what is added: keys, tokens, passwords, card numbers and private parts."""
