"""The catalog over REST: reading for every key, writing for keys with the scope catalog:write."""
