// Probabilities of heads without any subtraction ([GTH]): of all words, or what those of the first word depend on.
//
// Word k hangs from h with a probability proportional to the weight of h -> k times g[h], which follows from
// eliminating all words but k: treeparse/kernels/sums/conditionals.py says why. The words of a block stand in front in
// its matrix. All others are eliminated once for all of them; then a warp a word eliminates the rest. A block for about
// sqrt(n) words of a sentence makes log marginals O(n^3.5) in all.
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

// What a warp has for one of the words of its block: the matrix of these words, with that one in the place of the
// first, and g of all nodes. The layout is computed again in treeparse/device/nonprojective.py.
template <class A>
struct Own {
    using Number = typename A::Number;

    Number *matrix, *pivots, *g;
    int word, count, stride;  // which word; how many the block has

    __device__ Own(Number* memory, int most, int count, int word)
        : matrix(memory), word(word), count(count), stride((most + 1) | 1) {
        pivots = matrix + most * stride;
        g = pivots + stride;
    }
    __device__ Number& at(int j, int i) const { return matrix[(j - 1) * stride + i]; }
    // Where a node of this matrix stands in that of the block.
    __device__ int place(int j) const { return j == 1 ? word : j == word ? 1 : j; }
};

// Eliminate the other words of the block, after all that are not the block's.
template <class A>
__device__ Eliminated eliminate_own(const Work<A>& work, const Own<A>& own, int root_word) {
    for (int j = 2; j <= own.count; j++) {
        for (int i = lane(); i <= own.count; i += WARP) own.at(j, i) = work.at(own.place(j), own.place(i));
    }
    if (root_word > 1) root_word = own.count + 1;  // node 0 counts for all words
    for (int k = own.count; k > 1; k--) {
        __syncwarp();
        auto pivot = A::zero();
        for (int i = first_head(k, root_word) + lane(); i < k; i += WARP) pivot = A::add(pivot, own.at(k, i));
        pivot = warp_total<A>(pivot);
        bool is_root_word = A::is_zero(pivot) && root_word == 1;
        if (is_root_word) {
            root_word = k;
            pivot = own.at(k, 0);
        }
        if (A::is_zero(pivot)) return {false, root_word};
        if (lane() == 0) own.pivots[k] = pivot;
        for (int i = lane(); i < k; i += WARP) {
            auto share = A::divide(own.at(k, i), pivot);
            for (int j = 2; j < k; j++) {
                auto weight = is_root_word && i == 0 ? A::zero() : own.at(j, i);
                own.at(j, i) = A::add_product(weight, own.at(j, k), share);
            }
        }
    }
    return {true, root_word};
}

template <class A>
__device__ bool is_own_safe(const Own<A>& own) {
    bool safe = true;
    for (int j = 2; j <= own.count; j++) {
        for (int i = lane(); i <= own.count; i += WARP) safe = safe && (i == j || is_safe(own.at(j, i)));
    }
    return safe;
}

// Fill g from what the eliminations left, the last one first: each entry needs those before.
template <class A>
__device__ void substitute(const Work<A>& work, const Own<A>& own, int root_word, int own_root_word) {
    if (lane() == 0) {
        own.g[0] = A::one();
        own.g[own.word] = A::zero();
    }
    for (int e = 2; e <= work.n; e++) {
        bool is_own = e <= own.count;
        __syncwarp();
        auto total = A::zero();
        for (int i = lane(); i < e; i += WARP) {
            total = is_own ? A::add_product(total, own.at(e, i), own.g[own.place(i)])
                           : A::add_product(total, work.at(e, i), own.g[i]);
        }
        total = A::divide(warp_total<A>(total), is_own ? own.pivots[e] : work.pivots()[e]);
        if (lane() == 0) {
            own.g[is_own ? own.place(e) : e] = total;
            if (e == (is_own ? own_root_word : root_word)) own.g[0] = A::zero();
        }
    }
    __syncwarp();
}

// What the probability of head i of the word is proportional to.
template <class A>
__device__ typename A::Number head_weight(const Item& item, const Work<A>& work, const Own<A>& own, int i) {
    return A::multiply(A::of(work.log_weight(item, own.word, i), 0.0), own.g[i]);
}

// Store the log probabilities of the heads of a word, or log g; returns whether this arithmetic served. By a warp.
template <class A>
__device__ bool store_heads(const Item& item, const Work<A>& work, const Own<A>& own, int root_word, bool only_g,
                            double* result) {
    auto [exists, own_root_word] = eliminate_own(work, own, root_word);
    if (!exists) return A::in_logs;
    bool safe = A::in_logs || is_own_safe(own);
    substitute(work, own, root_word, own_root_word);
    auto total = A::zero();
    for (int i = lane(); i <= item.n; i += WARP) total = A::add(total, head_weight(item, work, own, i));
    total = warp_total<A>(total);
    if (!A::in_logs) {
        safe = safe && total > 0.0;
        for (int i = lane(); i <= item.n; i += WARP) {
            double weight = head_weight(item, work, own, i);
            // Not so, too, where something is infinite.
            safe = safe && (i == 0 || is_safe(own.g[i])) && (weight == 0.0 || weight / total >= SMALL * SMALL);
        }
        if (!__all_sync(ALL_LANES, safe)) return false;
    }
    if (A::is_zero(total)) return true;
    for (int i = lane(); i <= item.n; i += WARP) {
        if (only_g) result[i] = A::log(own.g[i]);
        else result[item.place(own.word, i)] = A::log(A::divide(head_weight(item, work, own, i), total));
    }
    return true;
}

// The same of all words of the block, by all of its threads; `own_area` doubles a warp lie at `own_memory`.
template <class A>
__device__ bool store_words(const Item& item, double* memory, double* own_memory, long long own_area, int most,
                            bool single_root, bool only_g, double* result) {
    Work<A> work(memory, item.n);
    if (load(item, work) == -INF) return true;  // there is no tree
    if (!A::in_logs && !are_weights_safe(work, item)) return false;
    auto [exists, root_word] = eliminate(work, item.moved, single_root);
    if (!exists) return A::in_logs;
    bool served = A::in_logs || is_matrix_safe(work);
    for (int word = 1 + warp(); served && word <= item.moved; word += warps()) {
        Own<A> own(own_memory + warp() * own_area, most, item.moved, word);
        served = store_heads(item, work, own, root_word, only_g, result);
    }
    return __syncthreads_and(served);
}

// The result is to hold -inf. A block has as many words of an item as the item's length says, up to `most`, and at the
// end of its memory what its warps need.
KERNEL nonprojective_log_marginals(const double* scores, const long long* lengths, long long items, long long size,
                                   long long single_root, double* work, long long area, long long most,
                                   long long own_area, double* result) {
    double* memory = block_memory(work, area);
    double* own_memory = memory + area - warps() * own_area;
    long long shares = most + 2;  // at most, of an item's words
    for (long long task = blockIdx.x; task < items * shares; task += gridDim.x) {
        long long b = task / shares;
        int n = int(lengths[b]), share = int(sqrt(double(n)));
        int first = 1 + int(task % shares) * share, count = min(share, n - first + 1);
        if (count < 1) continue;
        Item item{scores + b * size * size, nullptr, n, int(size), first, count};
        double* own = result + b * size * size;
        if (!store_words<Plain>(item, memory, own_memory, own_area, int(most), single_root, false, own)) {
            store_words<Log>(item, memory, own_memory, own_area, int(most), single_root, false, own);
        }
    }
}

// Log g of the first word of every item, all of which have `size - 1` words; `rooted` says which of them may have many
// roots. The result (items, size) is to hold -inf.
KERNEL nonprojective_reach(const double* scores, const long long* rooted, long long items, long long size, double* work,
                           long long area, long long own_area, double* result) {
    double* memory = block_memory(work, area);
    double* own_memory = memory + area - warps() * own_area;
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        Item item{scores + b * size * size, nullptr, int(size) - 1, int(size), 1, 1};
        double* own = result + b * size;
        if (!store_words<Plain>(item, memory, own_memory, own_area, 1, !rooted[b], true, own)) {
            store_words<Log>(item, memory, own_memory, own_area, 1, !rooted[b], true, own);
        }
    }
}
