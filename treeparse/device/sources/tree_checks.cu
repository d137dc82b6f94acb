// Which head lists are trees, a warp a list.
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
        if (j <= n) memory[j] = is_word && is_inside ? int(head) : 0;
        roots += __popc(__ballot_sync(ALL_LANES, is_word && head == 0));
    }
    __syncwarp();
    bool is_joined = reaches_root(memory, memory + size, n);
    fits = __all_sync(ALL_LANES, fits);
    return fits && is_joined && (roots == 1 || !single_root);
}

KERNEL are_trees(const long long* heads, const long long* lengths, long long items, long long size,
                 long long single_root, double* work, long long area, bool* result) {
    double* memory = block_memory(work, warps() * area) + warp() * area;
    for (long long b = blockIdx.x * warps() + warp(); b < items; b += gridDim.x * warps()) {
        bool found = is_tree(heads + b * size, int(lengths[b]), int(size), single_root, reinterpret_cast<int*>(memory));
        if (lane() == 0) result[b] = found;
        __syncwarp();
    }
}
