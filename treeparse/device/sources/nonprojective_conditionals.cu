// Log marginals without any subtraction ([GTH]): a block for every word of every sentence, O(n^4) in all.
//
// Word k hangs from h with a probability proportional to the weight of h -> k times g[h], which follows from
// eliminating all words but k: treeparse/kernels/sums/conditionals.py says why. Here k changes places with word 1, the
// only one that is kept.
#include "elimination.cuh"

constexpr double SMALL = 1e-140;  // a product of two such numbers, divided by a column sum, is far from underflow

// Whether products of these numbers cannot have underflowed.
__device__ inline bool is_safe(double number) { return number == 0.0 || number >= SMALL; }

// Whether all arcs that are allowed have safe weights, of which elimination makes no smaller ones but by fill-in.
template <class A>
__device__ bool are_weights_safe(const Work<A>& work, const Item& item) {
    bool safe = true;
    for (int j = 1 + warp(); j <= work.n; j += warps()) {
        for (int i = lane(); i <= work.n; i += WARP) {
            double weight = work.at(j, i);
            safe = safe && is_safe(weight) && (weight > 0.0 || work.log_weight(item, j, i) == -INF);
        }
    }
    return __syncthreads_and(safe);
}

template <class A>
__device__ bool is_matrix_safe(const Work<A>& work) {
    bool safe = true;
    for (int j = 1 + warp(); j <= work.n; j += warps()) {
        for (int i = lane(); i <= work.n; i += WARP) safe = safe && (i == j || is_safe(work.at(j, i)));
    }
    return __syncthreads_and(safe);
}

// Fill g from what `eliminate` left behind word 1; all by one warp, for each entry needs those before.
template <class A>
__device__ void substitute(Work<A>& work, int root_word, typename A::Number* g) {
    if (warp() == 0) {
        if (lane() == 0) {
            g[0] = A::one();
            g[1] = A::zero();
        }
        for (int e = 2; e <= work.n; e++) {
            __syncwarp();
            auto total = A::zero();
            for (int i = lane(); i < e; i += WARP) total = A::add_product(total, work.at(e, i), g[i]);
            total = A::divide(warp_total<A>(total), work.pivots()[e]);
            if (lane() == 0) {
                g[e] = total;
                if (e == root_word) g[0] = A::zero();
            }
        }
    }
    __syncthreads();
}

// What the probability of head i of the item's first word is proportional to.
template <class A>
__device__ typename A::Number head_weight(const Item& item, const Work<A>& work, int i, const typename A::Number* g) {
    return A::multiply(A::of(work.log_weight(item, 1, i), 0.0), g[i]);
}

// Store the log probabilities of the heads of the item's first word; returns whether this arithmetic served.
template <class A>
__device__ bool store_heads(const Item& item, double* memory, bool single_root, double* result) {
    Work<A> work(memory, item.n);
    if (load(item, work) == -INF) return true;  // there is no tree
    if (!A::in_logs && !are_weights_safe(work, item)) return false;
    auto [exists, root_word] = eliminate(work, 1, single_root);
    if (!exists) return A::in_logs;
    auto* g = work.totals(0);
    substitute(work, root_word, g);
    auto total = A::zero();
    for (int i = lane(); i <= item.n; i += WARP) total = A::add(total, head_weight<A>(item, work, i, g));
    total = warp_total<A>(total);
    if (!A::in_logs) {
        bool safe = total > 0.0;
        for (int i = thread(); i <= item.n; i += threads()) {
            double weight = head_weight<A>(item, work, i, g);
            // Not so, too, where something is infinite.
            safe = safe && (i == 0 || is_safe(g[i])) && (weight == 0.0 || weight / total >= SMALL * SMALL);
        }
        if (!__syncthreads_and(safe) || !is_matrix_safe(work)) return false;
    }
    if (A::is_zero(total)) return true;
    for (int i = thread(); i <= item.n; i += threads()) {
        result[item.place(1, i)] = A::log(A::divide(head_weight<A>(item, work, i, g), total));
    }
    return true;
}

// The result is to hold -inf.
KERNEL nonprojective_log_marginals(const double* scores, const long long* lengths, long long items, long long size,
                                   long long single_root, double* work, long long area, double* result) {
    double* memory = block_memory(work, area);
    for (long long task = blockIdx.x; task < items * (size - 1); task += gridDim.x) {
        long long b = task / (size - 1);
        int word = 1 + int(task % (size - 1));
        if (word > lengths[b]) continue;
        Item item{scores + b * size * size, nullptr, int(lengths[b]), int(size), word};
        double* own = result + b * size * size;
        if (!store_heads<Plain>(item, memory, single_root, own)) store_heads<Log>(item, memory, single_root, own);
    }
}
