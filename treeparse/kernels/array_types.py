"""The arrays that kernels take and return."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
AnyFloatArray = NDArray[np.floating]  # float32 or float64
IntArray = NDArray[np.int64]
