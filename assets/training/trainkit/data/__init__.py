"""The way from text to token shards: documents, tokenizing, shards, and the bucket that keeps them."""
