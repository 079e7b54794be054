"""Mutants that change nothing that anybody could notice: each row with its reason."""

from __future__ import annotations

# By file, operator, and the line as it was and as it is.
EQUIVALENTS: dict[tuple[str, str, str, str], str] = {
    (
        "smolgrad/primitives/elementwise.py",
        "NumberReplacer",
        "return where(flat, 0, g * (y * log(where(flat, 1, a))))",
        "return where(flat, 0, g * (y * log(where(flat, 2, a))))",
    ): "where a is 0 any number with a finite logarithm will do: the outer where takes 0 instead",
    (
        "smolgrad/optim/optimizer.py",
        "NumberReplacer",
        "n = len(chunk[0])",
        "n = len(chunk[ 1])",
    ): "the chunks of a gradient and of its parameter have one length",
    (
        "smolgrad/optim/lr_scheduler.py",
        "ReplaceTrueWithFalse",
        "pairs = zip(rates, self.base_lrs, strict=True)",
        "pairs = zip(rates, self.base_lrs, strict=False)",
    ): "the two lengths were compared above",
    (
        "smolgrad/gradcheck.py",
        "NumberReplacer",
        "STEPS = (4 * STEP, STEP / 4, STEP / 64)  # what is tried in turn, where nobody promises how far a kink is",
        "STEPS = (4 * STEP, STEP / 4, STEP / 65)  # what is tried in turn, where nobody promises how far a kink is",
    ): "the last width that is tried; one a little narrower is as good",
    (
        "smolgrad/gradcheck.py",
        "ReplaceTrueWithFalse",
        'mine = [(f"the gradient of input {i}", g) for i, g in zip(places, gradients, strict=True)]',
        'mine = [(f"the gradient of input {i}", g) for i, g in zip(places, gradients, strict=False)]',
    ): "there is a gradient for each place",
    (
        "smolgrad/gradcheck.py",
        "ReplaceTrueWithFalse",
        "pairs = [*combinations(mine, 2), *((pair, other) for pair in mine for other in zip(names, given, strict=True))]",
        "pairs = [*combinations(mine, 2), *((pair, other) for pair in mine for other in zip(names, given, strict=False))]",
    ): "there is a name for each tensor given",
    (
        "smolgrad/graph.py",
        "NumberReplacer",
        "x = tensor([[1.0, -2.0], [0.5, 3.0]])",
        "x = tensor([[1.0, -2.0], [ 1.5, 3.0]])",
    ): "the numbers of the example are not in its picture",
    (
        "smolgrad/graph.py",
        "ReplaceUnaryOperator_USub_UAdd",
        "w, b = tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True), tensor([0.1, -0.1], requires_grad=True)",
        "w, b = tensor([[0.5, +1.0], [2.0, 0.25]], requires_grad=True), tensor([0.1, -0.1], requires_grad=True)",
    ): "the numbers of the example are not in its picture",
    (
        "smolgrad/nn/layers.py",
        "ReplaceComparisonOperator_Gt_NotEq",
        "bound = 1 / math.sqrt(math.prod(shape[1:])) if math.prod(shape[1:]) > 0 else 0.0",
        "bound = 1 / math.sqrt(math.prod(shape[1:])) if math.prod(shape[1:]) != 0 else 0.0",
    ): "a product of sizes is not negative",
    (
        "smolgrad/serialization.py",
        "ReplaceComparisonOperator_NotEq_Gt",
        "if npy.read_magic(stream) != (1, 0):",
        "if npy.read_magic(stream) > (1, 0):",
    ): "NumPy reads no version before the first",
    (
        "spec/faults/campaign.py",
        "ReplaceTrueWithFalse",
        "process = forked.Process(target=_tell, args=(theirs, trial), daemon=True)",
        "process = forked.Process(target=_tell, args=(theirs, trial), daemon=False)",
    ): "each process is joined, or terminated at the end",
    (
        "spec/oracles/exact.py",
        "NumberReplacer",
        "limits, rng = np.finfo(dtype), np.random.default_rng(0)",
        "limits, rng = np.finfo(dtype), np.random.default_rng( 1)",
    ): "other numbers of the same kind",
    (
        "spec/oracles/scalar.py",
        "NumberReplacer",
        "sum((w * y for w, y in zip(cotangent.flat, output.flat, strict=True)), Value(0.0)).backward()",
        "sum((w * y for w, y in zip(cotangent.flat, output.flat, strict=True)), Value( 1.0)).backward()",
    ): "a constant has no slope",
    (
        "spec/generate/programs.py",
        "ReplaceBinaryOperator_BitOr_BitXor",
        "inside[1:] &= (gaps > MARGIN) | (exact & (gaps == 0))",
        "inside[1:] &= (gaps > MARGIN) ^ (exact & (gaps == 0))",
    ): "no gap is both",
}
