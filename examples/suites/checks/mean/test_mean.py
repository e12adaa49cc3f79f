import pytest
from stats import mean


@pytest.mark.parametrize(
    ("numbers", "expected"), [([1, 3], 2), ([5], 5), ([], 0.0), ([1, 2, 3, 4], 2.5), ([-1, 1], 0), ([0.1] * 10, 0.1)]
)
def test_mean(numbers, expected):
    assert mean(numbers) == pytest.approx(expected)


def test_any_iterable():
    assert mean(number for number in (2, 4)) == 3
