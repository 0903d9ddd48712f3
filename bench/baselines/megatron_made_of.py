"""Print the fingerprint that gpt2-megatron stores beside a vocabulary trained on the text in DATA_DIR.

With that fingerprint, its preparation uses the existing vocabulary instead of training one.
"""

from __future__ import annotations

from prepare import made_of, read_config

if __name__ == "__main__":
    config = read_config()
    print(config.folder / "vocabulary", made_of(config))
