"""detect_anomaly: where a NaN, an infinity or a write past the engine came from."""

import inspect
import threading

import numpy as np
import pytest

import smolgrad
from smolgrad.autograd import detect_anomaly


def leaf(values):
    return smolgrad.tensor(np.array(values, "float64"), requires_grad=True)


X = [0.0, 1.0, 4.0]


def line(offset=0):
    """The line that calls this."""
    return inspect.currentframe().f_back.f_lineno + offset


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_the_first_infinity_is_told_with_op_shapes_and_line():
    x, w = leaf(X), leaf([[2.0], [1.0]])
    with detect_anomaly():
        y, at = (x * 2.0).sqrt(), line()
        z = (y * w).sum()
        with pytest.raises(RuntimeError) as told:
            z.backward()
    message = str(told.value)
    assert "backward through sqrt() gave an infinity in the gradient of input 0" in message
    assert "its inputs have shapes (3,)" in message
    assert f'File "{__file__}", line {at}, in test_the_first_infinity_is_told_with_op_shapes_and_line' in message
    assert message.endswith("y, at = (x * 2.0).sqrt(), line()")
    assert x.grad is None
    assert w.grad is None


def test_the_first_nan_is_told_though_more_follow():
    x = leaf(X)
    with detect_anomaly():
        y = (x.exp() - 1).sqrt() * 0.0
        with pytest.raises(RuntimeError, match=r"sqrt\(\) gave NaN in the gradient of input 0; .*shapes \(3,\), and"):
            y.sum().backward()


def test_a_composed_op_is_told_by_the_line_of_the_user():
    x = leaf([[np.inf, 0.0]])
    with detect_anomaly(), pytest.raises(RuntimeError) as told:
        smolgrad.nn.Sequential(smolgrad.nn.Tanh()).forward(smolgrad.functional.layer_norm(x, (2,))).sum().backward()
    assert f'File "{__file__}", line {line(-1)}' in str(told.value)


@pytest.mark.parametrize("create_graph", [False, True])
def test_second_order_is_watched(create_graph):
    x = leaf([0.0])
    with detect_anomaly():
        (slope,) = smolgrad.grad((x**1.5).sum(), [x], create_graph=True)
        with pytest.raises(RuntimeError, match=r"backward through pow\(\) gave an infinity"):
            slope.sum().backward(create_graph=create_graph)


def test_a_graph_from_before_is_watched_without_its_line():
    y = leaf(X).sqrt()
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"sqrt\(\) gave .* recorded before detect_anomaly\(\)"):
        y.sum().backward()


def test_a_graph_from_within_is_watched_afterwards():
    with detect_anomaly():
        y = leaf(X).sqrt()
    with pytest.raises(RuntimeError, match=r"sqrt\(\) gave an infinity"):
        y.sum().backward()


# --- writes past the engine -------------------------------------------------------------------------------------------


def test_a_write_into_data_is_found():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with detect_anomaly():
        y = a * b
        b.data[0] = 7.0
        with pytest.raises(RuntimeError, match=r"mul\(\) reads input 1, which was written to since.*\(2,\), \(2,\)"):
            y.sum().backward()


def test_a_write_into_an_output_is_found():
    with detect_anomaly():
        y = leaf([1.0, 2.0]).exp()
        y.data[1] = 0.0
        with pytest.raises(RuntimeError, match=r"exp\(\) reads its output"):
            y.sum().backward()


def test_a_write_into_one_of_several_inputs_is_found():
    a, b, c = leaf([1.0]), leaf([2.0]), leaf([3.0])
    with detect_anomaly():
        y = smolgrad.cat([a * b, b * c])
        c.data[0] = 5.0
        with pytest.raises(RuntimeError, match=r"mul\(\) reads input 1"):
            y.sum().backward()


def test_writes_that_nobody_reads_are_allowed():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with detect_anomaly():
        y = a + b
        a.data[0] = 9.0
        y.data[0] = 9.0
        y.sum().backward()
    assert a.grad.data.tolist() == [1, 1]


def test_writes_that_the_engine_sees_are_told_by_the_engine_and_those_in_the_graph_are_no_anomaly():
    x = leaf([1.0, 2.0])
    with detect_anomaly():
        y = x * 3
        z = y.exp()
        y.mul_(2)
        (z.sum() + y.sum()).backward()
        assert x.grad.data == pytest.approx(3 * np.exp(3 * x.data) + 6)
        y = x * 3
        z = y * y
        y.mul_(2)
        with pytest.raises(RuntimeError, match="it was written in place since"):
            z.sum().backward()


# --- the mode ---------------------------------------------------------------------------------------------------------


def test_right_programs_get_the_same_bits():
    def gradients():
        x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([0.5, -1.0])
        loss = smolgrad.cat([(x @ w).tanh(), x[[0, 0], 1] * 2, smolgrad.where(x > 2, x, 0.0).sum(0)]).sum()
        loss.backward()
        return x.grad.data, w.grad.data

    plain = gradients()
    with detect_anomaly():
        watched = gradients()
    decorated = detect_anomaly()(gradients)()
    for found in (watched, decorated):
        assert all(np.array_equal(a, b) for a, b in zip(found, plain, strict=True))


def test_the_mode_ends_nests_and_is_of_its_thread():
    def passes():
        (leaf(X) * 1).sqrt().sum().backward()

    with detect_anomaly():
        with detect_anomaly():
            pass
        with pytest.raises(RuntimeError):
            passes()
        worked = []
        thread = threading.Thread(target=lambda: (passes(), worked.append(True)))
        thread.start()
        thread.join()
        assert worked
    passes()
    with pytest.raises(ZeroDivisionError), detect_anomaly():
        raise ZeroDivisionError
    passes()
