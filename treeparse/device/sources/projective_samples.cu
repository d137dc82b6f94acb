// Samples of projective trees with replacement, a thread a tree: from the whole sentence down through the inside sums,
// by the draws of treeparse/kernels/samples/projective.py.
#include "drawn.cuh"
#include "inside_outside.cuh"

// A stack of spans of a head with nodes up to an end, none of one node alone, of which there are no more than words.
struct Stack {
    const Lines& lines;
    int height;

    __device__ void push(int head, int end) {
        if (head == end) return;
        lines.at(1, height) = head;
        lines.at(2, height++) = end;
    }
};

// One of so many options, in proportion to weights that a function gives, or to what it gives the logarithms of.
template <class A, class WeightOf>
__device__ int choose(int count, WeightOf number_of, Bits& stream) {
    double top = 0.0, total = 0.0;
    if (A::in_logs) {
        top = -INF;
        for (int option = 0; option < count; option++) top = fmax(top, number_of(option));
    }
    auto weight_of = [&](int option) {
        double number = number_of(option);
        if (!A::in_logs) return number;
        return number - top > NEGLIGIBLE ? exp(number - top) : 0.0;
    };
    for (int option = 0; option < count; option++) total += weight_of(option);
    double rest = uniform(stream) * total;
    int chosen = 0;
    for (int option = 0; option < count; option++) {
        double weight = weight_of(option);
        if (weight > 0.0) {
            chosen = option;
            rest -= weight;
            if (rest < 0.0) break;
        }
    }
    return chosen;  // the last possible one by rounding alone
}

// Draw a tree: take a span off the stack, draw its outermost arc, and put the parts there.
template <class A>
__device__ __noinline__ void draw_tree(const Spans<A>& spans, Bits& stream, const Lines& lines) {
    Stack stack{lines, 0};
    stack.push(0, spans.n);
    while (stack.height > 0) {
        stack.height--;
        int head = lines.at(1, stack.height), end = lines.at(2, stack.height);
        int first = min(head + 1, end), count = max(head, end) - min(head, end);
        int k = first + choose<A>(count, [&](int option) {
            int word = first + option;
            if (head < end) return A::multiply(spans.right_arc.at(head, word), spans.right.at(word, end));
            return A::multiply(spans.left_arc.at(word, head), spans.left.at(end, word));
        }, stream);
        lines.head(k) = head;
        int left = min(head, k), right = max(head, k);
        int split = left + choose<A>(right - left, [&](int option) {
            return A::multiply(spans.right.at(left, left + option), spans.left.at(left + option + 1, right));
        }, stream);
        stack.push(k, end);
        stack.push(left, split);
        stack.push(right, split + 1);
    }
}

// Draw the trees of samples from `first` on, one a thread; returns log Z', not a number where this arithmetic does not
// serve.
template <class A>
__device__ double draw(const Sentence& sentence, bool single_root, Bits seed, int first, int drawn,
                       const Lines& lines) {
    Spans<A> spans(sentence, single_root);
    double total = spans.inside();
    if (!A::in_logs && !(total > SAFE)) return NOT_A_NUMBER;
    if (thread() < drawn && A::log(total) > -INF) {
        Bits stream = new_stream(seed, first + thread());
        draw_tree(spans, stream, lines);
    }
    return A::log(total);
}

// Memory is as for the samples of all trees, with the charts in the place of the elimination.
KERNEL projective_samples(const double* scores, const long long* lengths, long long items, long long size,
                          long long single_root, double* work, long long area, double* more_work, long long more_area,
                          const Bits* seeds, long long count, long long* heads) {
    double* memory = block_memory(work, area);
    double* more = more_work == nullptr ? memory + area : more_work + blockIdx.x * more_area;
    Share share(count);
    for (long long task = blockIdx.x; task < items * share.chunks; task += gridDim.x) {
        long long b = share.item(task);
        int n = int(lengths[b]), first = share.first(task), drawn = share.drawn(task);
        Sentence sentence(scores + b * size * size, nullptr, n, int(size), memory);
        Lines lines{reinterpret_cast<Entry*>(more), share.drawers, thread(), n + 2};
        double log_z = sentence.load();
        if (log_z > -INF) log_z = draw<Plain>(sentence, single_root, seeds[b], first, drawn, lines);
        if (isnan(log_z)) log_z = draw<Log>(sentence, single_root, seeds[b], first, drawn, lines);
        share.store(task, lines, n, int(size), log_z > -INF, heads);
    }
}
