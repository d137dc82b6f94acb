// Samples of non-projective trees with replacement, a thread a tree, by walks or expansion; which of them draws a tree
// is what treeparse/kernels/samples/nonprojective.py says, so trees are those that it draws by the same seeds.
#include "walks.cuh"

enum Method { AUTO, EXPANSION, WALKS };

constexpr int TRIAL = 8;        // times n: steps in which a first walk ends if walking is faster than expansion
constexpr int AUTO_LIMIT = 32;  // times n: the limit of the steps for one tree where expansion may take over
constexpr int FIRST_WALK = 3;   // the first sample for which it is worth making ready for walks, besides expansion
constexpr int STEPS_A_PAIR = 4;  // times n^2: the limit of the steps for one tree, a multiple of what expansion takes
constexpr Bits NO_SAMPLE = 1ULL << 62;  // whose stream the trial takes

struct Draws {
    Item item;
    Bits seed;
    int method;
    bool single_root;

    __device__ int first_walk(int count) const {
        if (method == AUTO) return single_root ? FIRST_WALK : 0;
        return method == EXPANSION ? count : 0;
    }
    __device__ long long limit() const {
        long long n = item.n;
        return method == AUTO ? AUTO_LIMIT * n : STEPS_A_PAIR * n * n;
    }
};

// Whether a trial walk ends so soon that walks are faster than expansion.
__device__ inline bool ends_soon(const Draws& draws, const Stages& stages, const Bins& bins, const Nodes& nodes) {
    Bits stream = new_stream(draws.seed, NO_SAMPLE);
    int root = stages.exists ? draw_root(stages, stream, nodes) : 0;
    return walk(bins, root, TRIAL * draws.item.n, stream, nodes);
}

// Draw the trees of samples from `first` on, one a thread, into the threads' nodes; returns whether there is a tree.
__device__ inline bool draw(const Draws& draws, int first, int drawn, int count, double* matrix, double* bin_memory,
                            const Nodes& nodes) {
    Stages stages(draws.item, matrix);
    if (draws.single_root) {  // the root word comes from the stages at any rate
        stages.set_up(matrix, true);
        if (!stages.exists) return false;
    }
    int sample = first + thread(), first_walk = draws.first_walk(count);
    Bins bins(bin_memory, draws.item.n, draws.single_root ? 1 : 0);
    if (first + drawn > first_walk) {
        fill_bins(draws.item, bins);
        if (draws.method == AUTO) {
            bool walks = thread() == 0 && ends_soon(draws, stages, bins, nodes);
            if (!__syncthreads_or(walks)) first_walk = count;
        }
    }
    Bits stream = new_stream(draws.seed, sample);
    bool is_open = thread() < drawn;
    int root = is_open && draws.single_root ? draw_root(stages, stream, nodes) : 0;
    if (is_open && sample >= first_walk) is_open = !walk(bins, root, draws.limit(), stream, nodes);
    if (!draws.single_root && __syncthreads_or(is_open)) {
        stages.set_up(matrix, false);
        if (!stages.exists) return false;
    }
    if (is_open) draw_tree(stages, stream, nodes);
    return true;
}

// A block draws as many trees of an item as it has threads. It needs `area` doubles for the elimination and `more_area`
// for bins and nodes, which lie behind those in shared memory unless there is a work area for them.
KERNEL nonprojective_samples(const double* scores, const long long* lengths, long long items, long long size,
                             long long single_root, double* work, long long area, double* more_work,
                             long long more_area, const Bits* seeds, long long method, long long count,
                             long long with_bins, long long* heads) {
    double* matrix = block_memory(work, area);
    double* more = more_work == nullptr ? matrix + area : more_work + blockIdx.x * more_area;
    Share share(count);
    for (long long task = blockIdx.x; task < items * share.chunks; task += gridDim.x) {
        long long b = share.item(task);
        int n = int(lengths[b]), stride = (n + 1) | 1;
        Draws draws{{scores + b * size * size, nullptr, n, int(size), 1, 1}, seeds[b], int(method), single_root != 0};
        double* behind_bins = more + (with_bins ? (n + 1) * stride + (2 * n * stride + 3) / 4 : 0);
        Nodes nodes{{reinterpret_cast<Entry*>(behind_bins), share.drawers, thread(), n + 2}};
        bool exists = n > 0 && draw(draws, share.first(task), share.drawn(task), share.count, matrix, more, nodes);
        share.store(task, nodes, n, int(size), exists, heads);
    }
}
