"""Chats for TASK=sft as packed token shards, in which the tokens of the answers alone count in the loss.

A line of *.jsonl, or a row of *.parquet, has "messages" (objects with "role" and "content", of any roles that
the template takes, and "tools" beside them), or "prompt" and "completion". A model's own template renders
them, as transformers does it.
"""

from __future__ import annotations

import array
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from trainkit.data.hub_text import fetched_documents
from trainkit.data.rows import Rows
from trainkit.data.shards import FIRST, TRAINED, Manifest, ShardError, sha256_of
from trainkit.data.text_shards import TOKENIZER, TOKENIZER_CONFIG, TextShards
from trainkit.data.tokenize_unit import ARRAY_TYPES, Encode, Recipe, Unit
from trainkit.run.run import reason

TEMPLATE = "chat_template.jinja"
ANSWERS = "assistant"
# Increase it when the same chats give other examples.
FORMAT = 1
Spans = list[tuple[int, int]]
Render = Callable[..., str]


@dataclass(frozen=True, kw_only=True)
class Chats(TextShards):
    """The shards of the chats of one text, in sequences of one length."""

    suffixes: ClassVar[Sequence[str]] = (".jsonl", ".parquet")
    other_text: ClassVar[str] = "DATA=NAME, a folder of datasets/"
    # Ids of four bytes, of which a token of text has about four, and the rest of each sequence.
    shard_bytes_a_text_byte: ClassVar[float] = 1.5
    kind: ClassVar[str] = "chats"
    called: ClassVar[str] = "examples"
    group: ClassVar[int] = 1
    """Number of examples that stay together in a sequence, or are left out together."""
    weights: Path
    """The model's folder, with its tokenizer and the template of chats."""
    seq_len: int

    @property
    def rows(self) -> Rows:
        """Rules for the rows of the files."""
        return CHATS

    @property
    def encoder(self) -> ChatEncoder:
        """The encoder of the rows."""
        return ChatEncoder(self.weights)

    @property
    def sum(self) -> str:
        """Checksum of what makes tokens of chats."""
        files = (self.weights / name for name in (TOKENIZER, TOKENIZER_CONFIG, TEMPLATE))
        sums = [sha256_of(file) for file in files if file.is_file()]
        return hashlib.sha256("".join(sums).encode()).hexdigest()

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        return self.data / f"{self.name}-{self.kind}-{self.sum[:8]}-{self.seq_len}"

    def recipe(self, units: tuple[Unit, ...]) -> Recipe:
        """Return the inputs of the shards."""
        encoder = self.encoder
        tokenizer, end = encoder.open()
        encoder.renderer()  # a missing template is refused before the processes start
        return self.recipe_with(
            encoder,
            units,
            vocab_size=tokenizer.get_vocab_size(),
            tokenizer_sha256=self.sum,
            source={"kind": self.kind},
            layout=f"{self.kind} {FORMAT}",
            read=partial(fetched_documents, rows=self.rows),
            pack=self.seq_len,
            group=self.group,
            padding=end,
        )

    def counts(self, manifest: Manifest, **_: object) -> str:
        """Return the number of examples of each split, and what was left out."""
        return (
            f"{super().counts(manifest, called=self.called)}; {manifest.dropped:,} longer than "
            f"SEQ_LEN={self.seq_len} are left out"
        )


def checked(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without names that have no value; raises what Rows allows if one says nothing."""
    # A column of parquet has all names in each row, and templates ask which of them a message has.
    kept = [{k: v for k, v in each.items() if v is not None or k == "content"} for each in messages]
    for message in kept:
        content = message.get("content")
        if not (isinstance(content, str) and content) and not message.get("tool_calls"):
            raise ValueError("a content is empty or not text")
    return kept


def chat_of(row: dict[str, Any]) -> str:
    """Return a row's messages and tools as JSON; raises what Rows allows if it is no chat."""
    messages = row.get("messages") or [
        {"role": role, "content": row[name]} for role, name in (("user", "prompt"), (ANSWERS, "completion"))
    ]
    messages = checked(messages)
    roles = [message["role"] for message in messages]
    if ANSWERS not in roles[1:]:
        raise ValueError(f"its roles are {roles}, and none is an answer ({ANSWERS}) to another")
    return json.dumps({"messages": messages, "tools": row.get("tools") or None})


CHATS = Rows(
    columns=("messages", "tools", "prompt", "completion"),
    wanted='a chat, {"messages": [{"role": "user", "content": ...}, {"role": "assistant", "content": ...}]} '
    'or {"prompt": ..., "completion": ...}',
    document=chat_of,
)


@dataclass(frozen=True)
class ChatEncoder:
    """An encoder of chats, created in each process."""

    weights: Path

    def open(self) -> tuple[Any, int]:
        """Return the tokenizer and the id of the end of a text.

        Raises:
            ShardError: a file is missing, or names no end of text.
        """
        from tokenizers import Tokenizer  # noqa: PLC0415 (the rest of this file needs no package)

        tokenizer = Tokenizer.from_file(str(self.weights / TOKENIZER))
        if (end := tokenizer.token_to_id(self._named("eos_token"))) is None:
            raise ShardError(f"{self.weights / TOKENIZER_CONFIG} names no eos_token of {TOKENIZER}: fix it.")
        return tokenizer, int(end)

    def _named(self, name: str) -> Any:
        """Return a value of tokenizer_config.json; of a token, its text."""
        file = self.weights / TOKENIZER_CONFIG
        found = json.loads(file.read_text(encoding="utf-8")).get(name) if file.is_file() else None
        return found["content"] if isinstance(found, dict) else found or ""

    def renderer(self) -> Render:
        """Return a function that renders messages by the template.

        Raises:
            ShardError: there is none, or it has an error.
        """
        from jinja2 import TemplateError  # noqa: PLC0415
        from jinja2.ext import loopcontrols  # noqa: PLC0415
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

        file, named = self.weights / TEMPLATE, self._named("chat_template")
        if isinstance(named, list):  # several by name
            named = {each["name"]: each["template"] for each in named}.get("default")
        text = file.read_text(encoding="utf-8") if file.is_file() else named
        if not text:
            raise ShardError(
                f"{self.weights} has no template of chats: take an instruction-tuned model, or write {file}."
            )

        def refuse(message: str) -> None:
            raise TemplateError(message)

        made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        made.globals |= {
            "raise_exception": refuse,
            "strftime_now": lambda form: datetime.now().strftime(form),
            **{name: self._named(name) for name in ("bos_token", "eos_token", "pad_token", "unk_token")},
        }
        made.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
        # transformers' own mark of answers, which are found without it.
        text = re.sub(
            r"({%-?\s*)generation\b", r"\1if true", re.sub(r"({%-?\s*)endgeneration", r"\1endif", text)
        )
        try:
            return made.from_string(text).render
        except TemplateError as error:
            raise ShardError(f"the template of chats of {self.weights} cannot be read: {error}") from error

    def load(self) -> Encode:
        """Return a function that converts chats to the ids of their examples, with their bits."""
        # Each core has a process, so threads of the library would only compete with them.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        (tokenizer, end), render = self.open(), self.renderer()

        def ids_of(chat: str) -> list[int]:
            ids = list[int]()
            for text, spans in self._examples(render, chat):
                ids += with_bits(tokenizer.encode(text, add_special_tokens=False), spans, end)
            return ids

        return lambda chats: [array.array(ARRAY_TYPES["uint32"], ids_of(chat)) for chat in chats]

    def examples(self, render: Render, row: dict[str, Any]) -> Iterator[tuple[str, Spans]]:
        """Yield the texts of a row, each with the places of its answers."""
        return examples_of(render, row["messages"])

    def _examples(self, render: Render, text: str) -> list[tuple[str, Spans]]:
        chat = json.loads(text)
        try:
            return list(self.examples(partial(render, tools=chat["tools"]), chat))
        except Exception as error:  # of the template, which is code of the weights
            raise ShardError(
                f"the template of chats of {self.weights} refuses a chat ({reason(error, line=0)}): "
                f"{text:.300}"
            ) from error


def examples_of(render: Render, messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Spans]]:
    """Yield texts to train on, each with the places of its answers.

    An answer is what its render adds to the render of the messages before it, with the begin of an answer. A
    template may write earlier answers otherwise (Qwen3 leaves out their thoughts), as a model meets them in a
    chat: then each answer is an example of its own.
    """
    text, spans = "", Spans()
    for at, message in enumerate(messages):
        if message["role"] != ANSWERS:
            continue
        before = render(messages=messages[:at], add_generation_prompt=True)
        # Nothing is asked of the model behind the mark of its end.
        answered = render(messages=messages[: at + 1]).rstrip("\n")
        if spans and not answered.startswith(text):
            yield text, spans
            spans = []
        text = answered
        begin = os.path.commonprefix([before, answered])  # noqa: RUF071 (of characters)
        spans.append((len(begin), len(answered)))
    yield text, spans


def with_bits(encoded: Any, spans: Spans, end: int) -> list[int]:
    """Return the ids of an example with its bits, and with the end of text.

    Args:
        encoded: an Encoding of the tokenizers library.
        spans: the first and last place of each answer, in characters.
    """
    ids = list(encoded.ids)
    is_answer = [any(a <= start and stop <= b for a, b in spans) for start, stop in encoded.offsets]
    if ids[-1] != end:
        ids.append(end)
        is_answer.append(True)
    # The bit is the one of the token before, whose successor the model learns.
    ids = [number | TRAINED * follows for number, follows in zip(ids, [*is_answer[1:], False], strict=True)]
    return [ids[0] | FIRST, *ids[1:]]
