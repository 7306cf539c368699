"""Find out whether the engine works on this processor: exit code 0 and silence, or an error.

Meant to run in a process of its own, as `python -m examples.language_model.check`: a processor that lacks an
instruction the engine was built for ends it with SIGILL.
"""

import sys
import threading

from examples.language_model.engine import Sampling

EXIT_UNUSABLE = 3
EXIT_MISSING = 4

# Any model continues a text that repeats itself; logits that a broken kernel made up do not. Longer than one
# prefill batch, so that the batches are checked as well.
REPEATED = "The capital of France is Paris."
EXPECTED = " The"


def main() -> int:
    try:
        from examples.language_model.smollm2 import SmolLM2

        model = SmolLM2(threads=1)
    except ModuleNotFoundError as missing:
        print(f"{missing}; run 'make .venv/.demo'", file=sys.stderr)
        return EXIT_MISSING
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return EXIT_UNUSABLE
    prompt = model.tokenize(" ".join([REPEATED] * 20))
    steps = model.generate(prompt, Sampling(max_tokens=1, temperature=0, top_p=1), threading.Event())
    text = "".join(step.text for step in steps)
    if text != EXPECTED:
        print(f"the engine computes wrong numbers here: {text!r} in place of {EXPECTED!r}", file=sys.stderr)
        return EXIT_UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
