"""Text to token shards: corpus, tokens, and the bucket that keeps them."""
