"""How the algorithms of the literature are compiled, so that nothing but the algorithm sets them apart."""

import numba

# As treeparse's kernels of sums are compiled, but cached beside each script.
jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
