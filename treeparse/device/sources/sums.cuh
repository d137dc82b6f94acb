// Sums over the trees of one sentence, whatever the kind of numbers.
#pragma once

#include "elimination.cuh"

// Write every arc's value to a matrix (size, size), 0 for what is no arc.
template <class A>
__device__ void store(const Item& item, Work<A>& work, double* result) {
    if (A::in_logs) {  // columns are normalised, which takes the common part of the rounding out
        for (int j = 1 + thread(); j <= item.n; j += threads()) {
            auto total = A::real(A::zero());
            for (int i = 0; i <= item.n; i++) {
                total = add(total, A::arc(work.at(j, i), work.log_weight(item, j, i), work.slope(item, j, i)));
            }
            work.totals(0)[j] = total;
        }
        __syncthreads();
    }
    for (int i = warp(); i < item.size; i += warps()) {
        for (int j = lane(); j < item.size; j += WARP) {
            double value = 0.0;
            if (1 <= j && j <= item.n && i <= item.n && work.log_weight(item, j, i) > -INF) {
                auto arc = A::arc(work.at(j, i), work.log_weight(item, j, i), work.slope(item, j, i));
                value = last_of(A::in_logs ? divide(arc, work.totals(0)[j]) : arc);
            }
            result[i * item.size + j] = work.scale * value;
        }
    }
}

// Log Z of an item with one kind of numbers, not a number where that does not serve. Arcs' values go to the result, if
// any.
template <class A>
__device__ double sum_with(const Item& item, double* memory, bool single_root, double* result) {
    Work<A> work(memory, item.n);
    double shift = load(item, work);
    if (shift == -INF) return shift;
    double log_z = solve(work, single_root, result != nullptr);
    if (result != nullptr && log_z > -INF) store(item, work, result);
    return shift + log_z;
}

// Log Z of an item, by plain weights where that is safe. The compiler knows shared memory as such only by its name.
template <class Linear, class Logarithmic>
__device__ double sum_trees(const Item& item, double* memory, bool single_root, double* result) {
    double log_z = memory == shared_memory ? sum_with<Linear>(item, shared_memory, single_root, result)
                                           : sum_with<Linear>(item, memory, single_root, result);
    if (isnan(log_z)) log_z = sum_with<Logarithmic>(item, memory, single_root, result);
    if (result != nullptr && !(log_z > -INF)) {
        for (int entry = thread(); entry < item.size * item.size; entry += threads()) result[entry] = 0.0;
    }
    return log_z;
}
