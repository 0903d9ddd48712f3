"""Prints what gpt2-megatron notes beside a vocabulary that it trained on the text that lies in DATA_DIR.

With that note, its preparation takes the vocabulary that is there.
"""

from __future__ import annotations

from prepare import made_of, read_order

if __name__ == "__main__":
    order = read_order()
    print(order.folder / "vocabulary", made_of(order))
