"""A character model on Tiny Shakespeare: ``python -m experiments.char``.

The next character from the 16 before it, after Bengio et al., "A Neural Probabilistic Language Model" (2003): an
embedding of each, side by side, and one hidden layer with layer normalization; 299,105 parameters. Its loss on held-out
text is set beside that of guessing by the frequencies of characters and of pairs of characters.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import plots, run, text
from .run import Data, Library, Run, Side, Task

CONTEXT, WIDTH, HIDDEN, BATCH, STEPS = 16, 32, 512, 256, 6000
RATE, LEVEL = 3e-3, 0.75  # the rate stays level for this part of the steps, and falls to 0 in a straight line
AT_MOST = 1.80  # nats a character, on held-out text


def network(library: Library, symbols: int, hidden: int, dtype: str) -> Any:
    """Token numbers (N, CONTEXT) give the logits (N, symbols) of the next. In either library."""
    nn, kind = library.nn, getattr(library.root, dtype)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(symbols, WIDTH, dtype=kind)
            self.layers = nn.Sequential(
                nn.Linear(CONTEXT * WIDTH, hidden, dtype=kind),
                nn.LayerNorm(hidden, dtype=kind),
                nn.Tanh(),
                nn.Linear(hidden, symbols, dtype=kind),
            )

        def forward(self, tokens: Any) -> Any:
            return self.layers(self.embedding(tokens).reshape(-1, CONTEXT * WIDTH))

    return Network()


def baselines(learned: np.ndarray, held_out: np.ndarray, symbols: int) -> dict[str, float]:
    """Nats a held-out character costs, guessed evenly, by its frequency, and by its frequency after the one before.

    Each count begins at 1, so that nothing is impossible.
    """
    single = np.bincount(learned, minlength=symbols) + 1.0
    pairs = np.bincount(learned[:-1] * symbols + learned[1:], minlength=symbols**2).reshape(symbols, symbols) + 1.0
    after = pairs / pairs.sum(axis=1, keepdims=True)
    return {
        "uniform": float(np.log(symbols)),
        "unigram": float(-np.log(single / single.sum())[held_out].mean()),
        "bigram": float(-np.log(after)[held_out[:-1], held_out[1:]].mean()),
    }


def main(arguments: list[str] | None = None) -> int:
    """Train, write some text, draw: 0 where the bounds are met, 1 otherwise."""
    parser = run.parser("experiments.char", __doc__)
    run.add_twin(parser)
    parser.add_argument("--steps", type=run.positive, default=STEPS, help=f"({STEPS}; at most 150 with --quick)")
    options = parser.parse_args(arguments)
    alphabet, learned, held_out = text.split()
    hidden = HIDDEN
    if options.quick:
        hidden, options.steps, held_out = 64, min(options.steps, 150), held_out[:10_000]
    judged = text.windows(held_out, np.arange(len(held_out) - CONTEXT), CONTEXT + 1)

    def batch(step: int) -> Data:
        drawn = text.drawn(learned, CONTEXT + 1, BATCH, options.seed, step)
        return drawn[:, :-1], drawn[:, -1]

    def evaluate(side: Side) -> dict[str, float]:
        return {text.MEASURE: side.mean_loss(judged[:, :-1], judged[:, -1], size=1024)}

    task = Task(
        model=lambda library: network(library, len(alphabet), hidden, options.dtype),
        optimizer=lambda library, parameters: library.root.optim.AdamW(parameters),
        batch=batch,
        rate=lambda step: RATE * min(1.0, (1 - step / options.steps) / (1 - LEVEL)),
        evaluate=evaluate,
        steps=options.steps,
        every=max(250, options.steps // 10),
    )
    training = Run("char", options)
    sides = training.train(task)
    training.results["baselines"] = baselines(learned, held_out, len(alphabet))
    text.judge(training, sides, AT_MOST, STEPS)
    text.sample(training, sides[0], alphabet, held_out[:CONTEXT])
    plots.training(training, text.MEASURE, text.UNIT, lines=training.results["baselines"])
    return training.finish()


if __name__ == "__main__":
    sys.exit(run.command(main))
