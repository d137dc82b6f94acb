// Best projective trees by Eisner's chart, a block a sentence: the sums and, where scores tie, the keys of
// treeparse/kernels/best/eisner.py, to the bit.
#include "spans.cuh"
#include "ties.cuh"

enum Kind { RIGHT, LEFT, BETWEEN };  // of spans, as treeparse/kernels/best/eisner.py has them
enum { RIGHT_SPANS, LEFT_SPANS, RIGHT_ARCS, LEFT_ARCS, KEYS };  // charts: of scores, and as many of keys

struct Span {
    Kind kind;
    int i, j;

    // The first lane's span, in all lanes of a warp.
    __device__ Span of_first_lane() const {
        return {Kind(__shfl_sync(ALL_LANES, int(kind), 0, WARP)), __shfl_sync(ALL_LANES, i, 0, WARP),
                __shfl_sync(ALL_LANES, j, 0, WARP)};
    }
};

// The best of many scores; with keys, of equal ones that of the greatest key.
template <bool KEYED>
struct Top {
    double score = -INF;
    long long key = 0;

    __device__ void offer(double other, long long other_key) {
        bool is_better = other > score || (KEYED && other == score && other_key > key);
        if (is_better) score = other, key = other_key;
    }
    __device__ void reduce(int lanes) {
        for (int offset = lanes / 2; offset > 0; offset /= 2) {
            double other = from_lane(score, offset);
            offer(other, KEYED ? __shfl_xor_sync(ALL_LANES, key, offset, WARP) : 0);
        }
    }
};

template <bool KEYED>
struct Eisner {
    using Key = long long;
    const double* scores;  // (size, size), head-major
    int n, size;
    bool single_root;
    Chart<double> right, left, right_arc, left_arc;
    Chart<Key> right_key, left_key, right_arc_key, left_arc_key;

    __device__ Eisner(const double* scores, int n, int size, bool single_root, double* charts)
        : scores(scores), n(n), size(size), single_root(single_root), right(chart_of(charts, n, RIGHT_SPANS)),
          left(chart_of(charts, n, LEFT_SPANS)), right_arc(chart_of(charts, n, RIGHT_ARCS)),
          left_arc(chart_of(charts, n, LEFT_ARCS)), right_key(keys_of(charts, RIGHT_SPANS)),
          left_key(keys_of(charts, LEFT_SPANS)), right_arc_key(keys_of(charts, RIGHT_ARCS)),
          left_arc_key(keys_of(charts, LEFT_ARCS)) {}

    __device__ Chart<Key> keys_of(double* charts, int number) const {
        return chart_of(reinterpret_cast<Key*>(charts), n, KEYS + number);
    }

    __device__ double score(int head, int word) const {
        return word > 0 ? __ldg(scores + head * size + word) : -INF;
    }

    __device__ double split_score(Span span, int k) const {
        if (span.kind == RIGHT) return right_arc.at(span.i, k) + right.at(k, span.j);
        if (span.kind == LEFT) return left_arc.at(k, span.j) + left.at(span.i, k);
        return right.at(span.i, k) + left.at(k + 1, span.j);
    }

    __device__ Key split_key(Span span, int k) const {
        if (!KEYED) return 0;
        if (span.kind == RIGHT) return right_arc_key.at(span.i, k) + right_key.at(k, span.j);
        if (span.kind == LEFT) return left_arc_key.at(k, span.j) + left_key.at(span.i, k);
        return right_key.at(span.i, k) + left_key.at(k + 1, span.j);
    }

    __device__ void offer_split(Top<KEYED>& top, Kind kind, int i, int j, int k) const {
        Span span{kind, i, j};
        top.offer(split_score(span, k), split_key(span, k));
    }

    __device__ void put(const Chart<double>& chart, const Chart<Key>& keys, int i, int j, const Top<KEYED>& top) const {
        chart.at(i, j) = top.score;
        if (KEYED) keys.at(i, j) = top.key;
    }

    // The arc in one of the directions over what it spans.
    __device__ Top<KEYED> over(const Top<KEYED>& between, int head, int word) const {
        Top<KEYED> top;
        top.score = between.score + score(head, word);
        if (KEYED) top.key = between.key + arc_key(head, word);
        return top;
    }

    // By all threads of the block.
    __device__ void fill() const {
        Top<KEYED> whole;
        whole.score = 0.0;
        for (int i = thread(); i <= n; i += threads()) {
            put(right, right_key, i, i, whole);
            put(left, left_key, i, i, whole);
        }
        for (int width = 1; width <= n; width++) {
            __syncthreads();
            Team team(n, width);
            for (int base = 0; base <= n - width; base += team.step) {
                int i = base + team.first, j = i + width;
                Top<KEYED> between, best_right, best_left;
                for (int k = i + team.part; k < j && j <= n; k += team.lanes) {
                    offer_split(between, BETWEEN, i, j, k);
                    if (k == i) continue;
                    offer_split(best_right, RIGHT, i, j, k);
                    offer_split(best_left, LEFT, i, j, k);
                }
                between.reduce(team.lanes);
                best_right.reduce(team.lanes);
                best_left.reduce(team.lanes);
                if (j > n || team.part > 0) continue;
                Top<KEYED> to_right = over(between, i, j), to_left = over(between, j, i);
                best_right.offer(to_right.score, to_right.key);
                best_left.offer(to_left.score, to_left.key);
                if (single_root && i == 0 && j < n) best_right.score = -INF;
                put(right_arc, right_arc_key, i, j, to_right);
                put(left_arc, left_arc_key, i, j, to_left);
                put(right, right_key, i, j, best_right);
                put(left, left_key, i, j, best_left);
            }
        }
        __syncthreads();
    }

    // The place whose split is the best, the last one of those that are equal in score and key; -1 if keys are needed
    // to tell. By a warp.
    __device__ int best_split(Span span) const {
        int first = span.kind == RIGHT ? span.i + 1 : span.i, stop = span.kind == RIGHT ? span.j + 1 : span.j;
        auto key_of = [&](int place) { return split_key(span, stop - 1 - place); };
        Best best;
        for (int place = lane(); place < stop - first; place += WARP) {
            best.offer(split_score(span, stop - 1 - place), place, key_of);
        }
        best.reduce(key_of);
        if (!KEYED) {
            bool is_tied = false;
            for (int place = lane(); place < stop - first; place += WARP) {
                is_tied = is_tied || (place != best.place && split_score(span, stop - 1 - place) == best.value);
            }
            if (__any_sync(ALL_LANES, is_tied)) return -1;
        }
        return stop - 1 - best.place;
    }

    // By a warp, whose first lane alone reads and writes the stack; a span of one node needs not be read.
    __device__ static void push(Span span, Span* stack, int& depth) {
        if (span.i >= span.j) return;
        if (lane() == 0) stack[depth] = span;
        depth++;
    }

    // Write the best tree's heads, from the whole sentence's span down; false at the first tie there is. By a warp.
    __device__ bool read_tree(Span* stack, int* heads) const {
        int depth = 0;
        push({RIGHT, 0, n}, stack, depth);
        while (depth > 0) {
            depth--;
            Span top = lane() == 0 ? stack[depth] : Span{};
            auto [kind, i, j] = top.of_first_lane();
            int k = best_split({kind, i, j});
            if (k < 0) return false;
            Span first{BETWEEN, i, k}, second{kind, k, j};
            if (kind == LEFT) first = {BETWEEN, k, j}, second = {LEFT, i, k};
            if (kind == BETWEEN) first = {RIGHT, i, k}, second = {LEFT, k + 1, j};
            if (lane() == 0 && kind != BETWEEN) heads[k] = kind == RIGHT ? i : j;
            push(first, stack, depth);
            push(second, stack, depth);
        }
        return true;
    }
};

// Whether the sentence's best tree was found, or there is none; heads of none are left at -1.
template <bool KEYED>
__device__ bool find(const double* scores, int n, int size, bool single_root, double* charts, Span* stack, int* heads) {
    Eisner<KEYED> eisner(scores, n, size, single_root, charts);
    eisner.fill();
    bool exists = eisner.right.at(0, n) > -INF, is_found = true;
    if (warp() == 0 && exists) is_found = eisner.read_tree(stack, heads);
    return __syncthreads_and(is_found);
}

KERNEL projective_best_trees(const double* scores, const long long* lengths, long long items, long long size,
                             long long single_root, double* work, long long area, long long* heads) {
    double* charts = block_memory(work, area);
    Span* stack = reinterpret_cast<Span*>(charts + 4 * size * ((size + 1) | 1));
    int* found = reinterpret_cast<int*>(stack + size);
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        int n = int(lengths[b]);
        const double* own = scores + b * size * size;
        for (int j = thread(); j < size; j += threads()) found[j] = -1;
        if (!find<false>(own, n, int(size), single_root, charts, stack, found)) {
            find<true>(own, n, int(size), single_root, charts, stack, found);
        }
        for (int j = thread(); j < size; j += threads()) heads[b * size + j] = found[j];
    }
}
