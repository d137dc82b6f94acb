// Elimination without subtraction ([GTH]) and its reverse by all threads of a block: what
// treeparse/kernels/sums/elimination.py says of words, pivots and the root word holds here, too.
//
// Row and column k stay as they were when word k went. The reverse step k is the last to read them, and writes the
// derivatives in their place, so that one matrix is all that is needed.
#pragma once

#include "item.cuh"

constexpr double LINEAR_LIMIT = -600.0;  // of log Z' - sum of log column sums: below, underflow may have lost trees

struct Eliminated {
    bool exists;    // whether there is a tree, as far as the words that went can say
    int root_word;  // past the end with many roots
};

__device__ inline int first_head(int k, int root_word) { return k <= root_word ? 0 : 1; }

// Eliminate the words behind `kept`, the last one first; one barrier a word.
template <class A>
__device__ Eliminated eliminate(Work<A>& work, int kept, bool single_root) {
    constexpr int ROWS = A::in_logs ? 1 : sizeof(typename A::Number) > 8 ? 2 : 4;
    int root_word = single_root ? 1 : work.n + 1;
    for (int k = work.n; k > kept; k--) {
        auto pivot = A::zero();
        for (int i = first_head(k, root_word) + lane(); i < k; i += WARP) pivot = A::add(pivot, work.at(k, i));
        pivot = warp_total<A>(pivot);
        bool is_root_word = A::is_zero(pivot) && root_word == 1;
        if (is_root_word) {  // the arcs from k take the place of those from node 0
            root_word = k;
            pivot = work.at(k, 0);
        }
        if (A::is_zero(pivot)) return {false, root_word};
        if (thread() == 0) work.pivots()[k] = pivot;
        for (int i = lane(); i < k; i += WARP) {
            auto share = A::divide(work.at(k, i), pivot);
            for (int first = 1 + warp(); first < k; first += ROWS * warps()) {
                typename A::Number sums[ROWS];  // all are loaded before any is stored
#pragma unroll
                for (int row = 0; row < ROWS; row++) {
                    int j = first + row * warps();
                    if (j >= k) continue;
                    auto weight = is_root_word && i == 0 ? A::zero() : work.at(j, i);
                    sums[row] = A::add_product(weight, work.at(j, k), share);
                }
#pragma unroll
                for (int row = 0; row < ROWS; row++) {
                    int j = first + row * warps();
                    if (j < k) work.at(j, i) = sums[row];
                }
            }
        }
        __syncthreads();
    }
    return {true, root_word};
}

// Log Z' after all words went.
template <class A>
__device__ double log_of_pivots(const Work<A>& work) {
    double total = 0.0;
    for (int k = 1 + lane(); k <= work.n; k += WARP) total += A::log(work.pivots()[k]);
    return warp_sum(total);
}

// Make ready what step k of the reverse needs, before its row and column are written over.
template <class A>
__device__ void prepare_step(const Work<A>& work, int k) {
    for (int x = thread(); x < k; x += threads()) {
        work.shares(k)[x] = A::divide(work.at(k, x), work.pivots()[k]);
        if (x > 0) work.throughs(k)[x] = work.at(x, k);
    }
}

template <class A>
__device__ typename A::Number sum_of_parts(const typename A::Number* first, int stride) {
    auto total = first[0];
    for (int part = 1; part < PARTS; part++) total = A::add(total, first[part * stride]);
    return total;
}

// Put the derivative of log Z' in every weight in the place of the weight: the reverse of `eliminate`.
template <class A>
__device__ void differentiate(Work<A>& work, int root_word) {
    for (int k = 1; k <= work.n; k++) {  // step 1 needs nothing
        const auto *shares = work.shares(k), *throughs = work.throughs(k);
        int chunks = (k + WARP - 1) / WARP;
        for (int task = warp(); task < 2 * PARTS * chunks; task += warps()) {
            int part = task % PARTS, x = task / PARTS / 2 * WARP + lane();
            bool is_row = task / PARTS % 2 == 0;
            if (x >= k) continue;
            auto total = A::zero();
            if (is_row && x > 0) {
                for (int i = part; i < k; i += PARTS) total = A::add_product(total, work.at(x, i), shares[i]);
            } else if (!is_row) {
                for (int j = 1 + part; j < k; j += PARTS) total = A::add_product(total, work.at(j, x), throughs[j]);
            }
            (is_row ? work.totals(part) : work.gradients(part))[x] = total;
        }
        __syncthreads();
        auto dependents = A::real(A::zero());
        for (int j = 1 + lane(); j < k; j += WARP) {
            auto total = sum_of_parts<A>(work.totals(0) + j, work.stride);
            dependents = add(dependents, A::real(A::multiply(total, throughs[j])));
        }
        dependents = warp_sum(dependents);
        if (k < work.n) prepare_step<A>(work, k + 1);
        for (int x = thread(); x < k; x += threads()) {
            auto gradient = sum_of_parts<A>(work.gradients(0) + x, work.stride);
            if (x >= first_head(k, root_word)) gradient = A::add_rest(gradient, dependents);
            work.at(k, x) = A::bounded(A::divide(gradient, work.pivots()[k]), 4.0 * work.n);
            if (x > 0) work.at(x, k) = sum_of_parts<A>(work.totals(0) + x, work.stride);
            if (x > 0 && k == root_word) work.at(x, 0) = A::zero();
        }
        if (thread() == 0) work.at(k, k) = A::zero();
        __syncthreads();
    }
}

// Whether all derivatives may be used.
template <class A>
__device__ bool is_finite(const Work<A>& work) {
    bool finite = true;
    for (int j = 1 + warp(); j <= work.n; j += warps()) {
        for (int i = lane(); i <= work.n; i += WARP) finite = finite && A::is_finite(work.at(j, i));
    }
    return __syncthreads_and(finite);
}

// Log Z' of an item that is loaded, not a number where this arithmetic does not serve. Derivatives, if wanted, are left
// in the matrix.
template <class A>
__device__ double solve(Work<A>& work, bool single_root, bool with_derivatives) {
    double limit = A::in_logs ? -INF : sum_of_log_sums(work) + LINEAR_LIMIT;
    auto [exists, root_word] = eliminate(work, 0, single_root);
    double log_z = exists ? log_of_pivots(work) : -INF;
    if (!(log_z >= limit && log_z < INF)) return NOT_A_NUMBER;
    if (with_derivatives && log_z > -INF) {
        differentiate(work, root_word);
        if (!is_finite(work)) return NOT_A_NUMBER;
    }
    return log_z;
}
