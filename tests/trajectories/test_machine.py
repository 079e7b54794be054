"""A training in which anything may come next, in smolgrad and PyTorch: each line runs in both, and all must agree.

Every rule is a line of Python that both libraries understand, so that what fails is a short program in them.
"""

from contextlib import suppress
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from smolgrad import nn, optim
from spec.faults.killing import randomness

IMPORTS = {
    "smolgrad": "import smolgrad as lib\nfrom smolgrad import nn, optim\n\nF, array = lib.functional, lib.tensor",
    "torch": "import torch as lib\nfrom torch import nn, optim\n\nF, array = nn.functional, lib.tensor",
}
# A bias in front of the normalisation has a gradient of rounding noise, of which Adam makes steps.
COMMON = """
import copy, pickle, tempfile
import numpy as np
from spec.oracles.pytorch import there_and_back

folder = tempfile.TemporaryDirectory()

def stored(state):
    lib.save(state, folder.name + "/state") if lib.__name__ == "torch" else lib.save(folder.name + "/state", state)
    return lib.load(folder.name + "/state")

x, y = array(np.sin(np.arange(6.0)).reshape(3, 2)), array(np.cos(np.arange(6.0)).reshape(3, 2))
model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 2)).double()
with lib.no_grad():
    for i, p in enumerate(model.parameters()):
        p.copy_(array(np.cos(np.arange(float(np.prod(p.shape)))).reshape(p.shape) + i))
losses, saved = [], None
"""
# PyTorch from parameters that are a few units in the last place off: how far it comes to be from PyTorch is how much
# the training so far makes of a rounding error.
NUDGE = """
with lib.no_grad():
    for p in model.parameters():
        p.mul_(array(1 + 2.0**-50 * np.cos(np.arange(float(np.prod(p.shape)))).reshape(p.shape)))
"""
OPTIMIZERS = [
    "optim.SGD(model.parameters(), lr=0.1)",
    "optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)",
    "optim.Adam(model.parameters(), lr=0.1, eps=1e-3, amsgrad=True)",
    "optim.AdamW(model.parameters(), lr=0.1, eps=1e-3, weight_decay=0.1)",
]
LOSSES = [
    "F.mse_loss(model(x), y)",
    "(model[0](x) ** 2).sum()",  # a part of the model
    "(model[0](x).detach() * model[1](model[0](x))).sum()",
]
# Lines that write: what was recorded before is let go, since the libraries differ in how much of a sweep that is
# refused has already been added to the gradients.
WRITES = [
    "step.step()",
    "model.train()",
    "model.eval()",
    "model[0].weight.requires_grad_(False)",
    "model[0].weight.requires_grad_(True)",
    "with lib.no_grad(): model[3].bias.mul_(0.5)",
    "with lib.no_grad(): model[3].weight[0] = 0.25",
]
LINES = [
    "step.zero_grad()",
    "step.zero_grad(set_to_none=False)",
    "model.zero_grad()",
    "step.param_groups[0]['lr'] = 0.01",
    "step.param_groups[0]['lr'] = 0.0",
]
# All state is written to a file, or loaded into the other library: what comes back is kept.
SAVES = ["saved = stored((model.state_dict(), step.state_dict()))", "saved = there_and_back(model, step)"]
CLIPS = ["nn.utils.clip_grad_norm_(model.parameters(), 0.5)", "nn.utils.clip_grad_value_(model.parameters(), 0.1)"]
COPIES = ["copy.deepcopy(model)", "pickle.loads(pickle.dumps(model))"]


class Machine(RuleBasedStateMachine):
    """Two libraries, one program."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.names = {library: {} for library in IMPORTS}
        for library, imports in IMPORTS.items():
            exec(imports + COMMON, self.names[library])
        self.nudged = {}
        exec(IMPORTS["torch"] + COMMON + NUDGE, self.nudged)

    def run(self, line):
        """Run a line in both, which refuse it both or neither."""
        self.lines.append(line)
        refused = {}
        for library, names in self.names.items():
            try:
                exec(line, names)
            except RuntimeError as error:
                refused[library] = error
        with suppress(RuntimeError):
            exec(line, self.nudged)
        if refused:
            self.lines[-1] = f"try: {line}\nexcept RuntimeError as error: print(error)"
        self.require(len(refused) != 1, f"refused by one alone: {refused}")

    def require(self, holds, otherwise):
        if not holds:
            raise AssertionError(f"{otherwise}\n\n{self.script()}")  # raised, so that pytest does not indent it

    def script(self, library="smolgrad"):
        """The program so far."""
        return "\n".join([IMPORTS[library] + COMMON, *self.lines])

    @initialize(optimizer=st.sampled_from(OPTIMIZERS))
    def begin(self, optimizer):
        self.optimizer = optimizer
        self.run(f"step = {optimizer}")

    @rule(loss=st.sampled_from(LOSSES))
    def forward(self, loss):
        self.run(f"losses.append({loss})")

    @rule(loss=st.sampled_from(LOSSES))
    def forward_without_a_graph(self, loss):
        self.run(f"with lib.no_grad(): losses.append({loss})")

    @precondition(lambda self: self.names["smolgrad"]["losses"])
    @rule(which=st.integers(0, 9), keep=st.booleans())
    def backward(self, which, keep):
        which %= len(self.names["smolgrad"]["losses"])
        self.run(f"losses[{which}].backward(retain_graph={keep})")

    @rule(loss=st.sampled_from(LOSSES), steps=st.integers(1, 3))
    def train(self, loss, steps):
        for _ in range(steps):
            self.run(f"losses.append({loss})")
            self.run("losses[-1].backward(retain_graph=False)")
            self.write("step.step()")

    @rule(line=st.sampled_from(LINES))
    def any_line(self, line):
        self.run(line)

    @rule(line=st.sampled_from(CLIPS))
    def clip(self, line):
        if any(p.grad is not None for p in self.names["smolgrad"]["model"].parameters()):  # PyTorch fails without any
            self.run(line)

    @rule(line=st.sampled_from(WRITES))
    def any_write(self, line):
        self.write(line)

    def write(self, line):
        self.run(line)
        self.run("losses.clear()")

    @rule(way=st.sampled_from(SAVES))
    def save(self, way):
        self.run(way)

    @precondition(lambda self: self.names["smolgrad"]["saved"])
    @rule()
    def load(self):
        self.run("model.load_state_dict(saved[0])")
        self.run("step.load_state_dict(copy.deepcopy(saved[1]))")
        self.run("losses.clear()")

    @rule(way=st.sampled_from(SAVES))
    def resume(self, way):
        self.save(way)
        self.load()

    @rule(way=st.sampled_from(COPIES))
    def copy(self, way):
        self.run(f"model = {way}")
        self.run(f"step = {self.optimizer}")
        self.run("losses.clear()")

    @invariant()
    def all_agrees(self):
        ours, theirs, nudged = map(numbers, (*self.names.values(), self.nudged))
        self.require(ours.keys() == theirs.keys(), f"in one alone: {ours.keys() ^ theirs.keys()}")
        for name, a in ours.items():
            b = theirs[name]
            allowed = 1e-12 * max(1.0, np.abs(b).max(initial=0)) + 16 * np.abs(nudged[name] - b).max(initial=0)
            close = a.shape == b.shape and (np.abs(a - b) <= allowed).all()
            self.require(close, f"{name}: {a}, in PyTorch {b}")


def numbers(names):
    """All parameters, gradients, buffers, losses, rates and what the optimizer remembers, as arrays by name."""
    found = {name: x.detach().numpy() for name, x in names["model"].state_dict().items()}
    for name, p in names["model"].named_parameters():
        if p.grad is not None:
            found[f"{name}.grad"] = p.grad.detach().numpy()
        found |= {
            f"{key} of {name}": np.asarray(value, float)
            for key, value in (names["step"].state.get(p, {}) if "step" in names else {}).items()
            if value is not None
        }
    found |= {f"losses[{i}]": loss.detach().numpy() for i, loss in enumerate(names["losses"])}
    found["training"] = np.array([module.training for module in names["model"].modules()], float)
    return found


TestMachine = Machine.TestCase
# A program of twenty lines in two libraries takes as long as dozens of other examples.
TestMachine.settings = settings(max_examples=max(1, settings().max_examples // 4), stateful_step_count=20)


def faulty(change):
    """A step of SGD's with another gradient."""
    right = optim.SGD._update
    return patch.object(optim.SGD, "_update", lambda self, p, g, state, group: right(self, p, change(g), state, group))


# Faults that the machine must find, and how many lines its program may have at the most.
FAULTS = {
    "goes uphill": (lambda: faulty(np.negative), 9),
    "zeros left": (lambda: patch.object(nn.module.Tensor, "zero_", lambda self: self), 9),
    "training forgotten": (lambda: patch.object(nn.Module, "eval", lambda self: self), 9),
}


@pytest.mark.everything
def test_a_fault_is_found_and_shrinks_to_a_short_program(everything):
    light = settings(
        max_examples=2000, stateful_step_count=10, phases=(Phase.generate, Phase.shrink), database=None, deadline=None
    )
    for fault in FAULTS if everything else [randomness("machine").choice([*FAULTS])]:
        plant, most = FAULTS[fault]
        with plant(), pytest.raises(AssertionError) as failure:
            run_state_machine_as_test(Machine, settings=light)
        program = str(failure.value).partition("\n\n")[2]
        lines = program.partition("losses, saved = [], None\n")[2].strip().splitlines()
        print(program)
        assert 1 < len(lines) <= most
        exec(program, {})  # the program runs as printed
