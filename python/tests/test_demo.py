"""The demo learns."""
from halyard import demo


def test_network_learns_the_digits():
    assert demo.train(3, seed=1, report=None) > 0.93
