"""Give gpt2-megatron or roberta a vocabulary as one that its preparation trained on the text in DATA_DIR.

python made_of.py VOCABULARY
"""

import shutil
import sys

from prepare import shards_of_run

if __name__ == "__main__":
    vocabulary = sys.argv.pop()
    shards = shards_of_run(None)
    file = shards.own_bpe.files[-1]
    shards.train_once(file, lambda: shutil.copytree(vocabulary, file.parent, dirs_exist_ok=True))
