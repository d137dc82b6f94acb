// Inside and outside sums over projective trees by all threads of a block, with any of the four kinds of numbers.
// Nothing is subtracted, and in plain weights nothing overflows, since each word's weights are scaled to sum 1.
#pragma once

#include "spans.cuh"

constexpr double SAFE = 1e-280;   // of plain Z: below, underflow may have lost trees
constexpr double MIN_SCALE = 1e-300;  // of derivatives; not 0, by which one cannot divide
constexpr int LINES = 4;          // of doubles, one for every node

enum { RIGHT, LEFT, RIGHT_ARC, LEFT_ARC, OUTER_RIGHT, OUTER_LEFT, OUTER_BETWEEN, SPARE };

enum Wanted { LOG_PARTITION, MARGINALS, LOG_MARGINALS, PRODUCT };

// One sentence, with what its scores are scaled by, which is in the memory of its block.
struct Sentence {
    const double *scores, *vectors;  // (size, size), head-major; vectors or null
    int n, size;
    double *norms, *centres, *sums;  // of words: log of the heads' summed weights; the best head's derivative
    double* charts;
    double scale;  // of the derivatives

    __device__ Sentence(const double* scores, const double* vectors, int n, int size, double* memory)
        : scores(scores), vectors(vectors), n(n), size(size), norms(memory), centres(memory + n + 1),
          sums(memory + 2 * (n + 1)), charts(memory + LINES * (n + 1)), scale(1.0) {}

    __device__ double score(int i, int j) const { return __ldg(scores + i * size + j); }
    __device__ double vector(int i, int j) const { return __ldg(vectors + i * size + j); }

    // Find the scales; returns the sum of what is taken off the words' scores, -inf if some word has no head.
    __device__ double load() {
        __syncthreads();  // nobody reads what was in this memory before
        for (int j = 1 + thread(); j <= n; j += threads()) {
            double top = -INF, centre = 0.0, largest = 0.0, total = 0.0;
            for (int i = 0; i <= n; i++) {
                double value = i == j ? -INF : score(i, j);
                double change = vectors != nullptr && value > -INF ? vector(i, j) : 0.0;
                centre = value > top ? change : centre;
                top = value > top ? value : top;
                largest = fmax(largest, fabs(change));
            }
            for (int i = 0; i <= n; i++) total += i == j ? 0.0 : exponential(score(i, j) - top);
            norms[j] = top > -INF ? top + log(total) : -INF;
            centres[j] = centre;
            sums[j] = largest;
        }
        __syncthreads();
        double shift = 0.0, largest = 0.0;
        for (int j = 1 + lane(); j <= n; j += WARP) {
            shift += norms[j];
            largest = fmax(largest, sums[j]);
        }
        if (vectors != nullptr) scale = fmax(warp_max(largest), MIN_SCALE);
        return warp_sum(shift);
    }

    // The weight of the arc i -> j; node 0 has no head.
    template <class A>
    __device__ typename A::Number weight(int i, int j) const {
        if (j == 0) return A::zero();
        double value = score(i, j);
        double slope = vectors != nullptr && value > -INF ? vector(i, j) / scale - centres[j] / scale : 0.0;
        return A::of(value - norms[j], slope);
    }
};

template <class A>
struct Spans {
    using Number = typename A::Number;
    const Sentence& sentence;
    int n;
    bool single_root;
    Chart<Number> right, left, right_arc, left_arc, outer_right, outer_left, outer_between, spare;

    __device__ Spans(const Sentence& sentence, bool single_root)
        : sentence(sentence), n(sentence.n), single_root(single_root), right(chart(RIGHT)), left(chart(LEFT)),
          right_arc(chart(RIGHT_ARC)), left_arc(chart(LEFT_ARC)), outer_right(chart(OUTER_RIGHT)),
          outer_left(chart(OUTER_LEFT)), outer_between(chart(OUTER_BETWEEN)), spare(chart(SPARE)) {}

    __device__ Chart<Number> chart(int number) const {
        return chart_of(reinterpret_cast<Number*>(sentence.charts), n, number);
    }

    // Fill the spans' weights; returns Z.
    __device__ Number inside() {
        for (int i = thread(); i <= n; i += threads()) right.at(i, i) = left.at(i, i) = A::one();
        for (int width = 1; width <= n; width++) {
            __syncthreads();
            Team team(n, width);
            for (int base = 0; base <= n - width; base += team.step) {
                int i = base + team.first, j = i + width;
                Sum<A> between, rights, lefts;
                for (int k = i + team.part; k < j && j <= n; k += team.lanes) {
                    between.add(right.at(i, k), left.at(k + 1, j));
                    if (k == i) continue;
                    rights.add(right_arc.at(i, k), right.at(k, j));
                    lefts.add(left_arc.at(k, j), left.at(i, k));
                }
                Number under = between.reduce(team.lanes);
                Number whole_right = rights.reduce(team.lanes), whole_left = lefts.reduce(team.lanes);
                if (j > n || team.part > 0) continue;
                Number to_right = A::multiply(sentence.weight<A>(i, j), under);
                Number to_left = A::multiply(sentence.weight<A>(j, i), under);
                right_arc.at(i, j) = to_right;
                left_arc.at(i, j) = to_left;
                bool is_open = single_root && i == 0 && j < n;
                right.at(i, j) = is_open ? A::zero() : A::add(whole_right, to_right);
                left.at(i, j) = A::add(whole_left, to_left);
            }
        }
        __syncthreads();
        return right.at(0, n);
    }

    // Fill the derivatives of log Z in the spans' weights. Plain numbers of arcs go to the result.
    __device__ void outside(double* result) {
        for (int width = n; width > 0; width--) {
            __syncthreads();
            Team team(n, width);
            for (int base = 0; base <= n - width; base += team.step) {
                int i = base + team.first, j = i + width;
                Sum<A> rights, lefts, right_arcs, left_arcs;
                for (int h = team.part; h < i && j <= n; h += team.lanes) {
                    rights.add(outer_right.at(h, j), right_arc.at(h, i));
                    lefts.add(outer_between.at(h, j), right.at(h, i - 1));
                    left_arcs.add(outer_left.at(h, j), left.at(h, i));
                }
                for (int m = j + 1 + team.part; m <= n; m += team.lanes) {
                    rights.add(outer_between.at(i, m), left.at(j + 1, m));
                    lefts.add(outer_left.at(i, m), left_arc.at(j, m));
                    right_arcs.add(outer_right.at(i, m), right.at(j, m));
                }
                Number to_right = rights.reduce(team.lanes), to_left = lefts.reduce(team.lanes);
                Number over_right = right_arcs.reduce(team.lanes), over_left = left_arcs.reduce(team.lanes);
                if (j > n || team.part > 0) continue;
                if (i == 0 && j == n) {
                    to_right = A::divide(A::one(), right.at(0, n));
                } else if (i == 0 && single_root) {
                    to_right = A::zero();
                }
                over_right = A::add(over_right, to_right);
                over_left = A::add(over_left, to_left);
                outer_right.at(i, j) = to_right;
                outer_left.at(i, j) = to_left;
                outer_between.at(i, j) = A::add(A::multiply(sentence.weight<A>(i, j), over_right),
                                                A::multiply(sentence.weight<A>(j, i), over_left));
                if (A::in_logs) continue;
                result[i * sentence.size + j] = sentence.scale * last_of(A::multiply(right_arc.at(i, j), over_right));
                if (i == 0) continue;
                result[j * sentence.size + i] = sentence.scale * last_of(A::multiply(left_arc.at(i, j), over_left));
            }
        }
    }

    // Logarithms of the arcs' marginals, which take the place of what is not needed any more.
    __device__ void find_log_marginals() {
        __syncthreads();
        for (int place = thread(); place < (n + 1) * (n + 1); place += threads()) {
            int i = place / (n + 1), j = place % (n + 1);
            if (i >= j) continue;
            Sum<A> rights, lefts;
            for (int m = j; m <= n; m++) rights.add(outer_right.at(i, m), right.at(j, m));
            for (int h = 0; h <= i; h++) lefts.add(outer_left.at(h, j), left.at(h, i));
            spare.at(i, j) = A::multiply(right_arc.at(i, j), rights.reduce(1));
            outer_between.at(i, j) = A::multiply(left_arc.at(i, j), lefts.reduce(1));
        }
        __syncthreads();
    }

    __device__ Number log_marginal(int i, int j) const { return i < j ? spare.at(i, j) : outer_between.at(j, i); }

    // Store what is wanted of the logarithms. Words' heads are normalised, which takes the common part of the rounding
    // out.
    __device__ void store_logs(Wanted wanted, double* result) {
        find_log_marginals();
        for (int j = 1 + warp(); j <= n; j += warps()) {
            Sum<A> heads;
            for (int i = lane(); i <= n; i += WARP) {
                if (i != j) heads.add(log_marginal(i, j), A::one());
            }
            Number total = heads.reduce(WARP);
            for (int i = lane(); i <= n; i += WARP) {
                if (i == j) continue;
                Number marginal = A::divide(log_marginal(i, j), total);
                double value = wanted == LOG_MARGINALS ? value_of(marginal) : last_of(A::real(marginal));
                result[i * sentence.size + j] = sentence.scale * value;
            }
        }
    }
};

// Log Z of a sentence that is loaded, not a number where this arithmetic does not serve; fills the result, if wanted.
template <class A>
__device__ double sum_spans(const Sentence& sentence, bool single_root, Wanted wanted, double* result) {
    Spans<A> spans(sentence, single_root);
    auto total = spans.inside();
    if (!A::in_logs && !(value_of(total) > SAFE)) return NOT_A_NUMBER;
    double log_z = A::log(total);
    if (wanted != LOG_PARTITION && log_z > -INF) {
        spans.outside(result);
        if (A::in_logs) spans.store_logs(wanted, result);
    }
    return log_z;
}

// Log Z of a sentence; a result is filled wherever there is no arc and no tree, too.
template <class Linear, class Logarithmic>
__device__ double sum_projective(Sentence& sentence, bool single_root, Wanted wanted, double* result) {
    int entries = wanted == LOG_PARTITION ? 0 : sentence.size * sentence.size;
    double nothing = wanted == LOG_MARGINALS ? -INF : 0.0;
    for (int entry = thread(); entry < entries; entry += threads()) result[entry] = nothing;
    double shift = sentence.load();
    if (shift == -INF) return shift;
    double log_z = NOT_A_NUMBER;
    if (wanted != LOG_MARGINALS) log_z = sum_spans<Linear>(sentence, single_root, wanted, result);
    if (isnan(log_z)) log_z = sum_spans<Logarithmic>(sentence, single_root, wanted, result);
    return shift + log_z;
}
