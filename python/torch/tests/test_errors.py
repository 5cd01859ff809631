"""Wrong operands raise where PyTorch's processor does: the wrong calls of PyTorch's operator database."""
import re

import pytest
import torch
from torch.utils._pytree import tree_leaves

DEVICE = "halyard"


def raised(op, wrong, device):
    """None where the call raises what the database expects, else what it does."""
    sample = wrong.sample_input
    try:
        for result in tree_leaves(op(sample.input, *sample.args, **sample.kwargs)):
            if isinstance(result, torch.Tensor):
                result.cpu()  # where wrong indices are reported
    except Exception as error:
        expected = isinstance(error, wrong.error_type) and re.search(wrong.error_regex, str(error))
        return None if expected else f"{type(error).__name__}: {error}"
    return f"no error on {device}"


@pytest.mark.filterwarnings("ignore")
def test_wrong_operands_of_the_operator_database():
    from torch.testing._internal.common_methods_invocations import op_db
    count, different = 0, []
    for op in (op for op in op_db if op.error_inputs_func is not None):
        for i, (theirs, ours) in enumerate(zip(op.error_inputs("cpu"), op.error_inputs(DEVICE))):
            if raised(op, theirs, "cpu") is None:
                count += 1
                difference = raised(op, ours, DEVICE)
                different += [f"{op.name}, {i}: {difference}"] if difference else []
    assert not different
    assert count > 500
