// Which head lists are trees, or trees without crossing arcs, a warp a list.
#include "block.cuh"

// Heads are followed from all nodes at once: every round doubles how far up one is, and after so many rounds as make up
// the number of words, all are at node 0, or some go round in a cycle.
__device__ inline bool reaches_root(int* up, int* above, int n) {
    for (int distance = 1; distance < n; distance *= 2) {
        for (int j = lane(); j <= n; j += WARP) above[j] = up[up[j]];
        __syncwarp();
        int* swapped = up;
        up = above;
        above = swapped;
    }
    bool is_joined = true;
    for (int j = lane(); j <= n; j += WARP) is_joined = is_joined && up[j] == 0;
    return __all_sync(ALL_LANES, is_joined);
}

__device__ inline bool is_tree(const long long* heads, int n, int size, bool single_root, int* memory) {
    int roots = 0;
    bool fits = true;
    for (int first = 0; first < size; first += WARP) {
        int j = first + lane();
        long long head = j < size ? heads[j] : -1;
        bool is_word = 1 <= j && j <= n, is_inside = 0 <= head && head <= n;
        fits = fits && (is_word ? is_inside : head == -1);
        roots += __popc(__ballot_sync(ALL_LANES, is_word && head == 0));
        if (j <= n) memory[j] = is_word && is_inside ? int(head) : 0;
    }
    __syncwarp();
    bool is_joined = reaches_root(memory, memory + size, n);
    fits = __all_sync(ALL_LANES, fits);
    return fits && is_joined && (roots <= 1 || !single_root);
}

// Whether no arc of a tree leaves what another one spans, with node 0 left of all words.
__device__ inline bool is_projective(const long long* heads, int n) {
    bool fits = true;
    for (int j = 1 + lane(); j <= n && fits; j += WARP) {
        int head = int(heads[j]), first = min(head, j), last = max(head, j);
        for (int inside = first + 1; inside < last && fits; inside++) {
            fits = first <= heads[inside] && heads[inside] <= last;
        }
    }
    return __all_sync(ALL_LANES, fits);
}

KERNEL are_trees(const long long* heads, const long long* lengths, long long items, long long size,
                 long long single_root, double* work, long long area, long long crossing, bool* result) {
    double* memory = block_memory(work, warps() * area) + warp() * area;
    for (long long b = blockIdx.x * warps() + warp(); b < items; b += gridDim.x * warps()) {
        int n = int(lengths[b]);
        bool found = is_tree(heads + b * size, n, int(size), single_root, reinterpret_cast<int*>(memory));
        if (found && !crossing) found = is_projective(heads + b * size, n);
        if (lane() == 0) result[b] = found;
    }
}
