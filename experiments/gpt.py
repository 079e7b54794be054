"""A small causal transformer on Tiny Shakespeare: ``python -m experiments.gpt``.

Pre-norm blocks of attention and of a GELU perceptron, made of the library's own modules, with the embedding used again
for the output. Keys have no bias: softmax does not see one, so its gradient is rounding noise, which AdamW would divide
by itself. ``--dtype float64 --steps 50 --torch-twin`` is the comparison with PyTorch.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from . import plots, run, text
from .run import Data, Library, Run, Side, Task

WIDTH, HEADS, BLOCKS, CONTEXT, BATCH = 128, 4, 3, 128, 6
STEPS, RATE, WARM_UP = 6500, 4e-3, 100
SHOWN = 24  # characters in the plot of attention
AT_MOST = 1.65  # nats a character, on held-out text


def transformer(library: Library, symbols: int, width: int, blocks: int, dtype: str) -> Any:
    """Token numbers (N, T ≤ CONTEXT) give logits (N·T, symbols). In either library."""
    nn, functional, kind = library.nn, library.functional, getattr(library.root, dtype)
    # What a character may see: nothing after itself.
    mask = library.root.tensor(np.triu(np.full((CONTEXT, CONTEXT), -np.inf, dtype), 1))

    def linear(inputs: int, outputs: int, bias: bool = True) -> Any:
        return nn.Linear(inputs, outputs, bias=bias, dtype=kind)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = linear(width, width), linear(width, width, bias=False)
            self.value, self.out = linear(width, width), linear(width, width)

        def heads(self, x: Any) -> Any:
            return x.reshape(*x.shape[:2], HEADS, width // HEADS).transpose(1, 2)

        def weights(self, x: Any) -> Any:
            """How much each character heeds each one before: (N, HEADS, T, T)."""
            query, key = self.heads(self.query(x)), self.heads(self.key(x))
            scores = query @ key.transpose(2, 3) * (1 / math.sqrt(width // HEADS))
            return functional.softmax(scores + mask[: x.shape[1], : x.shape[1]], dim=-1)

        def forward(self, x: Any) -> Any:
            mixed = self.weights(x) @ self.heads(self.value(x))
            return self.out(mixed.transpose(1, 2).reshape(x.shape))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.attention = nn.LayerNorm(width, dtype=kind), Attention()
            self.between, self.up, self.down = (
                nn.LayerNorm(width, dtype=kind),
                linear(width, 4 * width),
                linear(4 * width, width),
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.before(x))
            return x + self.down(library.gelu(self.up(self.between(x))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(symbols, width, dtype=kind)
            self.places = nn.Embedding(CONTEXT, width, dtype=kind)
            self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
            self.after = nn.LayerNorm(width, dtype=kind)

        def embedded(self, tokens: Any) -> Any:
            return self.tokens(tokens) + self.places.weight[: tokens.shape[1]]

        def forward(self, tokens: Any) -> Any:
            x = self.after(self.blocks(self.embedded(tokens)))
            return functional.linear(x.reshape(-1, width), self.tokens.weight)

    return small(Transformer(), blocks)


def small(model: Any, blocks: int) -> Any:
    """``model`` with small matrices, and the smaller the more of them add up: Radford et al. (2019)."""
    rng = np.random.default_rng(0)
    for name, p in model.named_parameters():
        if p.ndim == 2:
            adds_up = name.endswith(("out.weight", "down.weight"))
            p.detach().numpy()[...] = rng.normal(0, 0.02 / math.sqrt(2 * blocks if adds_up else 1), tuple(p.shape))
    return model


def attention_maps(side: Side, tokens: np.ndarray) -> list[np.ndarray]:
    """For each block the weights (HEADS, T, T) with which the ``tokens`` (T,) heed each other."""
    maps = []
    with side.library.root.no_grad():
        x = side.model.embedded(side.tensor(tokens[None]))
        for block in side.model.blocks:
            maps.append(block.attention.weights(block.before(x)).numpy()[0])
            x = block(x)
    return maps


def main(arguments: list[str] | None = None) -> int:
    """Train, write some text, draw: 0 where the bounds are met, 1 otherwise."""
    parser = run.parser("experiments.gpt", __doc__)
    run.add_twin(parser)
    parser.add_argument("--steps", type=run.positive, default=STEPS, help=f"({STEPS}; at most 50 with --quick)")
    options = parser.parse_args(arguments)
    alphabet, learned, held_out = text.split()
    width, blocks = WIDTH, BLOCKS
    if options.quick:
        width, blocks, options.steps, held_out = 32, 1, min(options.steps, 50), held_out[:2000]
    warm_up = min(WARM_UP, 1 + options.steps // 5)
    judged = text.windows(held_out, np.arange(0, len(held_out) - CONTEXT, CONTEXT), CONTEXT + 1)

    def batch(step: int) -> Data:
        drawn = text.drawn(learned, CONTEXT + 1, BATCH, options.seed, step)
        return drawn[:, :-1], drawn[:, 1:]

    def evaluate(side: Side) -> dict[str, float]:
        return {text.MEASURE: side.mean_loss(judged[:, :-1], judged[:, 1:], size=BATCH)}

    task = Task(
        model=lambda library: transformer(library, len(alphabet), width, blocks, options.dtype),
        optimizer=lambda library, parameters: library.root.optim.AdamW(parameters, betas=(0.9, 0.99), weight_decay=0.1),
        batch=batch,
        rate=lambda step: RATE * min((step + 1) / warm_up, 1 - step / options.steps),
        evaluate=evaluate,
        steps=options.steps,
        every=max(250, options.steps // 10),
    )
    training = Run("gpt", options)
    sides = training.train(task)
    text.judge(training, sides, AT_MOST, STEPS)
    text.sample(training, sides[0], alphabet, held_out[:CONTEXT])
    plots.training(training, text.MEASURE, text.UNIT)
    begin = held_out[:SHOWN]
    maps = attention_maps(sides[0], begin)
    plots.attention(maps, [alphabet[code] for code in begin], training.file("-attention.png"))
    return training.finish()


if __name__ == "__main__":
    sys.exit(run.command(main))
