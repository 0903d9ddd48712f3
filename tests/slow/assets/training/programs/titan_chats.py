"""Prints "equal" if chats of one answer become the tokens and labels that torchtitan's own loader makes.

Usage: titan_chats.py WEIGHTS FOLDER
"""

# mypy: disable-error-code="import-not-found"
import shutil
import sys
from operator import itemgetter
from pathlib import Path

import cpu

cpu.install()

from datasets import Dataset  # noqa: E402
from torchtitan.components.loss import IGNORE_INDEX  # noqa: E402
from torchtitan.components.tokenizer import HuggingFaceTokenizer  # noqa: E402
from torchtitan.hf_datasets.text_datasets import ChatDataset  # noqa: E402
from trainkit.data.examples.chats import ChatEncoder, chat_of  # noqa: E402
from trainkit.data.shards import ID_BITS, TRAINED  # noqa: E402

CHATML = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PLAIN = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

weights, folder = map(Path, sys.argv[1:])
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copyfile(weights / name, folder / name)
for template in (CHATML, PLAIN):
    (folder / "chat_template.jinja").write_text(template)
    encode = ChatEncoder(folder).load()
    theirs = ChatDataset(
        dataset=Dataset.from_list([{}]),
        tokenizer=HuggingFaceTokenizer(tokenizer_path=str(folder)),
        sample_processor=itemgetter("messages"),
        seq_len=sys.maxsize,
    )
    for n in range(100):
        row = {"prompt": f"What is {n}\nplus {n} é€?", "completion": f"It is {2 * n}, été. "}
        messages = [
            {"role": "user", "content": row["prompt"]},
            {"role": "assistant", "content": row["completion"]},
        ]
        (ids,) = encode([chat_of(row)])
        tokens = [number & ID_BITS for number in ids]
        labels = [
            follows if number & TRAINED else IGNORE_INDEX
            for number, follows in zip(ids, tokens[1:], strict=False)
        ]
        assert (tokens[:-1], labels) == theirs._tokenize_sample({"messages": messages}), (template, row)
print("equal")
