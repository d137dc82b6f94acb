// One sentence in the memory of its block: the matrix on which elimination runs, and lines of a number for every node.
//
// Matrices are dependent-major: at(j, i) is the weight of the arc i -> j, node 0 the root; there is no row 0, and
// at(j, j) is no arc. Strides are odd, so that neither rows nor columns meet in the banks of shared memory. The layout
// is computed again in treeparse/device/nonprojective.py.
#pragma once

#include "arithmetic.cuh"

constexpr int PARTS = 4;  // into which long sums are split, whatever the block
constexpr int NUMBER_LINES = 2 * PARTS + 5;
constexpr double MIN_SCALE = 1e-300;  // of derivatives; not 0, by which one cannot divide

struct Item {
    const double* scores;   // (size, size), head-major
    const double* vectors;  // likewise, or null
    int n, size;            // words; nodes of the batch
    int first, moved;       // the words from `first` on that change places with as many from word 1 on

    // Where a node of the matrix stands in the scores.
    __device__ int node(int j) const {
        if (j == 0 || first == 1) return j;
        return j <= moved ? j + first - 1 : first <= j && j < first + moved ? j - first + 1 : j;
    }
    __device__ int place(int j, int i) const { return node(i) * size + node(j); }
    // Loads that no store can change, so that several wait for memory at once.
    __device__ double score(int j, int i) const { return __ldg(scores + place(j, i)); }
    __device__ double vector(int j, int i) const { return __ldg(vectors + place(j, i)); }
};

template <class A>
struct Work {
    using Number = typename A::Number;

    Number* matrix;
    Number* lines;
    double *top, *centre, *sums;  // of columns of scores: maxima; derivatives of their arcs; logs of sums of weights
    int n, stride;
    double scale;  // of the derivatives

    __device__ Work(double* memory, int n) : n(n), stride((n + 1) | 1), scale(1.0) {
        matrix = reinterpret_cast<Number*>(memory);
        lines = matrix + n * stride;
        top = reinterpret_cast<double*>(lines + NUMBER_LINES * stride);
        centre = top + stride;
        sums = centre + stride;
    }
    __device__ Number& at(int j, int i) const { return matrix[(j - 1) * stride + i]; }
    __device__ Number* totals(int part) const { return lines + part * stride; }
    __device__ Number* gradients(int part) const { return lines + (PARTS + part) * stride; }
    __device__ Number* shares(int k) const { return lines + (2 * PARTS + k % 2) * stride; }  // for steps in turn
    __device__ Number* throughs(int k) const { return lines + (2 * PARTS + 2 + k % 2) * stride; }
    __device__ Number* pivots() const { return lines + (2 * PARTS + 4) * stride; }

    __device__ double log_weight(const Item& item, int j, int i) const {
        return i == j ? -INF : item.score(j, i) - top[j];
    }
    __device__ double slope(const Item& item, int j, int i) const {
        if (item.vectors == nullptr || !(log_weight(item, j, i) > -INF)) return 0.0;
        return item.vector(j, i) / scale - centre[j] / scale;
    }
};

// Fill the matrix with the numbers of an item whose columns are scaled to maximum 1. Returns the sum of what was taken
// off the columns' scores; if some word has no arc at all, that is -inf, and the matrix is not to be used.
template <class A>
__device__ double load(const Item& item, Work<A>& work) {
    int n = item.n;
    __syncthreads();  // nobody reads what was in this memory before
    for (int j = 1 + lane(); j <= n; j += WARP) {
#pragma unroll 4
        for (int i = warp(); i <= n; i += warps()) {
            double score = i == j ? -INF : item.score(j, i);
            bool counts = item.vectors != nullptr && score > -INF;
            set(work.at(j, i), score, counts ? item.vector(j, i) : 0.0);
        }
    }
    __syncthreads();
    for (int j = 1 + thread(); j <= n; j += threads()) {
        double top = -INF, centre = 0.0, largest = 0.0;
        for (int i = 0; i <= n; i++) {
            auto number = work.at(j, i);
            if (value_of(number) > top) {
                top = value_of(number);
                centre = slope_of(number);
            }
            largest = fmax(largest, fabs(slope_of(number)));
        }
        work.top[j] = top;
        work.centre[j] = centre;
        work.sums[j] = largest;
    }
    __syncthreads();
    double shift = 0.0, largest = 0.0;
    for (int j = 1 + lane(); j <= n; j += WARP) {
        shift += work.top[j];
        largest = fmax(largest, work.sums[j]);
    }
    shift = warp_sum(shift);
    work.scale = item.vectors == nullptr ? 1.0 : fmax(warp_max(largest), MIN_SCALE);
    if (shift == -INF) return shift;
    for (int i = warp(); i <= n; i += warps()) {
        for (int j = 1 + lane(); j <= n; j += WARP) {
            auto raw = work.at(j, i);
            double slope = slope_of(raw) / work.scale - work.centre[j] / work.scale;
            work.at(j, i) = A::of(value_of(raw) - work.top[j], slope);
        }
    }
    __syncthreads();
    return shift;
}

// The logarithms of the columns' sums, added up.
template <class A>
__device__ double sum_of_log_sums(Work<A>& work) {
    for (int j = 1 + thread(); j <= work.n; j += threads()) {
        double total = 0.0;
        for (int i = 0; i <= work.n; i++) total += value_of(work.at(j, i));
        work.sums[j] = log(total);
    }
    __syncthreads();
    double bound = 0.0;
    for (int j = 1 + lane(); j <= work.n; j += WARP) bound += work.sums[j];
    return warp_sum(bound);
}
