// Trees drawn by eliminating backwards, a thread a tree, as treeparse/kernels/samples/expansion.py does: the same draws
// of the same streams, from stages that agree within rounding.
#pragma once

#include "drawn.cuh"
#include "elimination.cuh"

constexpr int HEAD_TRIES = 3;  // heads drawn from all words before those that hang together with node 0 are found

struct Nodes : Lines {
    __device__ Entry& next(int node) const { return at(1, node); }  // on the list of words that a word is on
    __device__ Entry& root_stage(int node) const { return at(1, node); }  // where the root's arc moves on: read before
    __device__ Entry& first(int node) const { return at(2, node); }   // of the words whose arcs lead through a word
    __device__ Entry& joined(int node) const { return at(2, node); }  // whether a node is in the tree: written after
};

// What trees are drawn from: the stages of an item's elimination. at(k, i), i < k, is the share of head i in the pivot
// of word k, and at(j, k) the weight of k -> j when word k went; or logarithms of these.
struct Stages {
    Item item;  // whose word 1 is exchanged if no other word reaches another one
    Work<Plain> work;
    bool exists, in_logs;
    int root_word;  // 1, or past the end with many roots

    __device__ Stages(const Item& item, double* memory) : item(item), work(memory, item.n), exists(false) {}

    __device__ __noinline__ void set_up(double* memory, bool single_root) {
        in_logs = false;
        double log_z = set_up_with<Plain>(memory, single_root);
        if (isnan(log_z)) {
            in_logs = true;
            log_z = set_up_with<Log>(memory, single_root);
        }
        exists = log_z > -INF;
    }

    // Log Z', not a number where this arithmetic does not serve.
    template <class A>
    __device__ double set_up_with(double* memory, bool single_root) {
        Work<A> numbers(memory, item.n);
        item.first = 1;
        if (load(item, numbers) == -INF) return -INF;
        double limit = A::in_logs ? -INF : sum_of_log_sums(numbers) + LINEAR_LIMIT;
        auto eliminated = eliminate(numbers, 0, single_root);
        if (single_root && eliminated.root_word > 1) {
            item.first = eliminated.root_word;
            load(item, numbers);
            eliminated = eliminate(numbers, 0, single_root);
        }
        root_word = single_root ? 1 : item.n + 1;
        double log_z = eliminated.exists && eliminated.root_word == root_word ? log_of_pivots(numbers) : -INF;
        if (!(log_z >= limit && log_z < INF)) return NOT_A_NUMBER;
        if (log_z > -INF) divide_by_pivots(numbers);
        return log_z;
    }

    template <class A>
    __device__ void divide_by_pivots(Work<A>& numbers) {
        for (int k = 1 + warp(); k <= item.n; k += warps()) {
            for (int i = lane(); i < k; i += WARP) numbers.at(k, i) = A::divide(numbers.at(k, i), numbers.pivots()[k]);
        }
        __syncthreads();
        for (int k = 1 + thread(); k <= item.n; k += threads()) {
            double total = 0.0;
            for (int i = first_head(k, root_word); i < k; i++) total += A::real(numbers.at(k, i));
            totals()[k] = total;
        }
        __syncthreads();
    }

    __device__ double* totals() const { return work.totals(0); }  // of every word, the sum of its heads' shares

    __device__ double share(int k, int i) const { return in_logs ? exp(work.at(k, i)) : work.at(k, i); }

    // The log weight of an arc by itself.
    __device__ double original(int i, int j) const { return work.log_weight(item, j, i); }
};

// The first word at which the sum of the parts of the arc i -> j gets above u times the whole.
__device__ inline int find_stage(const Stages& stages, int i, int j, double u) {
    const auto& work = stages.work;
    double target = u * work.at(j, i);
    if (i < j) target *= work.pivots()[j];
    int latest = stages.item.n + 1;
    double reached = exponential(stages.original(i, j));
    if (target < reached) return latest;
    for (int k = max(i, j) + 1; k <= stages.item.n; k++) {
        double part = work.at(k, i) * work.at(j, k);
        reached += part;
        if (target < reached) return k;
        latest = part > 0.0 ? k : latest;
    }
    return latest;  // by rounding
}

// The same on logarithms.
__device__ inline int find_log_stage(const Stages& stages, int i, int j, double u) {
    const auto& work = stages.work;
    double weight = work.at(j, i) + (i < j ? work.pivots()[j] : 0.0);
    double reached = exp(stages.original(i, j) - weight);
    int stage = stages.item.n + 1;
    for (int k = max(i, j) + 1; u >= reached && k <= stages.item.n; k++) {
        double part = work.at(k, i) + work.at(j, k) - weight;
        if (part > NEGLIGIBLE) {
            reached += exp(part);
            stage = k;
        }
    }
    return stage;
}

// The word through which the arc i -> j, new among the words up to both, leads first; n + 1 if none.
__device__ __noinline__ inline int draw_stage(const Stages& stages, int i, int j, Bits& stream) {
    double u = uniform(stream);
    return stages.in_logs ? find_log_stage(stages, i, j, u) : find_stage(stages, i, j, u);
}

// The root word of the next tree, for a single root. The stages of its arc are kept for `draw_tree`.
__device__ inline int draw_root(const Stages& stages, Bits& stream, const Nodes& nodes) {
    for (int j = 1;;) {
        int k = draw_stage(stages, 0, j, stream);
        nodes.root_stage(j) = k;
        if (k > stages.item.n) return stages.item.node(j);
        j = k;
    }
}

// The first head of word k at which the sum of shares gets above u times the whole.
__device__ __noinline__ inline int search_head(const Stages& stages, int k, double u) {
    double target = u * stages.totals()[k], reached = 0.0;
    int head = first_head(k, stages.root_word);
    for (; head < k - 1; head++) {
        reached += stages.share(k, head);
        if (target < reached) break;
    }
    return head;
}

// Find which of the words before k hang from node 0 and not from k.
__device__ inline void find_joined(int k, const Nodes& nodes) {
    constexpr Entry UNKNOWN = 2;
    for (int j = 0; j <= k; j++) nodes.joined(j) = j == 0 ? 1 : j == k ? 0 : UNKNOWN;
    for (int j = 1; j < k; j++) {
        int node = j;
        while (nodes.joined(node) == UNKNOWN) node = nodes.head(node);
        Entry is_joined = nodes.joined(node);
        for (node = j; nodes.joined(node) == UNKNOWN; node = nodes.head(node)) nodes.joined(node) = is_joined;
    }
}

// The first joined head at which the sum of their shares gets above u times the whole.
__device__ __noinline__ inline int find_joined_head(const Stages& stages, int k, double u, const Nodes& nodes) {
    int first = first_head(k, stages.root_word), head = first;
    double top = stages.in_logs ? -INF : 0.0, total = 0.0, reached = 0.0;
    for (int i = first; i < k && stages.in_logs; i++) {
        if (nodes.joined(i)) top = fmax(top, stages.work.at(k, i));
    }
    auto share_of = [&](int i) {
        if (!nodes.joined(i)) return 0.0;
        return stages.in_logs ? exp(stages.work.at(k, i) - top) : stages.work.at(k, i);
    };
    for (int i = first; i < k; i++) total += share_of(i);
    for (int i = first; i < k; i++) {
        double share = share_of(i);
        reached += share;
        head = share > 0.0 ? i : head;
        if (u * total < reached) break;
    }
    return head;
}

// A head of word k among the nodes that hang together with node 0: by trial, since most often most nodes do, or all of
// them if the tree is whole; then among those found to do so.
__device__ inline int draw_head(const Stages& stages, int k, bool is_whole, const Nodes& nodes, Bits& stream) {
    for (int tries = 0; tries < HEAD_TRIES; tries++) {
        int head = search_head(stages, k, uniform(stream)), node = head;
        while (!is_whole && 0 < node && node < k) node = nodes.head(node);
        if (is_whole || node == 0) return head;
    }
    find_joined(k, nodes);
    return find_joined_head(stages, k, uniform(stream), nodes);
}

// Put word j on the list of those whose arcs lead through a word; the last list is never read.
__device__ inline void schedule(int j, int stage, const Nodes& nodes) {
    nodes.next(j) = nodes.first(stage);
    nodes.first(stage) = j;
}

// Draw the heads of a tree. A single root is that of `draw_root`.
__device__ inline void draw_tree(const Stages& stages, Bits& stream, const Nodes& nodes) {
    int n = stages.item.n;
    for (int k = 0; k <= n + 1; k++) nodes.first(k) = 0;
    int next_root = stages.root_word;  // the next word to hang from node 0 alone
    for (int k = 1; k <= n; k++) {
        int first = nodes.first(k), j;
        for (j = first; j > 0; j = nodes.next(j)) nodes.head(j) = k;  // the words whose arcs lead through k
        if (k == next_root) {
            nodes.head(k) = 0;
            next_root = nodes.root_stage(k);
            schedule(k, next_root, nodes);
            j = first;
        } else {
            nodes.head(k) = draw_head(stages, k, first == 0, nodes, stream);
            nodes.next(k) = first;
            j = k;
        }
        while (j > 0) {  // arcs that are new
            int following = nodes.next(j);
            schedule(j, draw_stage(stages, nodes.head(j), j, stream), nodes);
            j = following;
        }
    }
    const Item& item = stages.item;
    if (item.first == 1) return;
    int head = nodes.head(1);
    nodes.head(1) = nodes.head(item.first);
    nodes.head(item.first) = head;
    for (int k = 1; k <= n; k++) nodes.head(k) = item.node(nodes.head(k));
}
