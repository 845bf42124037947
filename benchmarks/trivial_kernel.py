"""Imports numba and calls one trivial kernel from its disk cache: the least that a user of numba waits."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def total(values: NDArray[np.float64]) -> float:
    """The sum of an array."""
    result = 0.0
    for value in values:
        result += value
    return result


if __name__ == "__main__":
    print(total(np.ones(100)))
