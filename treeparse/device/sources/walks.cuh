// Trees by loop-erased random walks, a thread a tree: the same bins and the same steps, to the bit, as those of
// treeparse/kernels/samples/nonprojective_samples.py.
#pragma once

#include "expansion.cuh"

// Random heads in constant time: bin i of word j is head i with probability keep(j, i), else head other(j, i). The
// layout is computed again in treeparse/device/nonprojective.py.
struct Bins {
    double *matrix, *tops;
    Entry *others, *lists;
    int n, stride, first;  // words; the first head

    __device__ Bins(double* memory, int n, int first) : matrix(memory), n(n), stride((n + 1) | 1), first(first) {
        tops = matrix + n * stride;
        others = reinterpret_cast<Entry*>(tops + stride);
        lists = others + n * stride;
    }
    __device__ double& keep(int j, int i) const { return matrix[(j - 1) * stride + i]; }
    __device__ Entry& other(int j, int i) const { return others[(j - 1) * stride + i]; }
    __device__ Entry& waiting(int j, int i) const { return lists[(j - 1) * stride + i]; }
};

// Fill up the bins of light heads from those of heavy ones; a word without heads stays where it is.
__device__ inline void pair_bins(const Bins& bins, int j) {
    int first = bins.first, stop = bins.n + 1, lights = 0, heavies = stop;  // light ones wait in front
    double total = 0.0;
    for (int i = first; i < stop; i++) total += bins.keep(j, i);
    double scale = total > 0.0 ? (stop - first) / total : 0.0;
    for (int i = first; i < stop; i++) {
        double share = bins.keep(j, i) * scale;
        bins.keep(j, i) = share;
        bins.other(j, i) = total > 0.0 ? i : j;
        bins.waiting(j, share < 1.0 ? lights++ : --heavies) = i;
    }
    while (lights > 0 && heavies < stop) {
        int light = bins.waiting(j, lights - 1), heavy = bins.waiting(j, heavies);
        bins.other(j, light) = heavy;
        bins.keep(j, heavy) -= 1.0 - bins.keep(j, light);
        lights--;
        if (bins.keep(j, heavy) < 1.0) {
            heavies++;
            bins.waiting(j, lights++) = heavy;
        }
    }
}

// By all threads of the block.
__device__ __noinline__ inline void fill_bins(const Item& item, const Bins& bins) {
    __syncthreads();  // nobody reads what was in this memory before, such as other trees
    for (int i = bins.first + warp(); i <= item.n; i += warps()) {
        for (int j = 1 + lane(); j <= item.n; j += WARP) {
            bins.keep(j, i) = i == j ? -INF : item.score(j, i);
        }
    }
    __syncthreads();
    for (int j = 1 + thread(); j <= item.n; j += threads()) {
        double top = -INF;
        for (int i = bins.first; i <= item.n; i++) top = fmax(top, bins.keep(j, i));
        bins.tops[j] = top > -INF ? top : 0.0;
    }
    __syncthreads();
    for (int j = 1 + warp(); j <= item.n; j += warps()) {
        for (int i = bins.first + lane(); i <= item.n; i += WARP) {
            bins.keep(j, i) = exponential(bins.keep(j, i) - bins.tops[j]);
        }
    }
    __syncthreads();
    for (int j = 1 + thread(); j <= item.n; j += threads()) pair_bins(bins, j);
    __syncthreads();
}

// Draw the heads of a tree below a root word, or below node 0; false if there is none after so many steps.
__device__ __noinline__ inline bool walk(const Bins& bins, int root, long long limit, Bits& stream,
                                         const Nodes& nodes) {
    for (int j = 0; j <= bins.n; j++) nodes.joined(j) = j == root;
    nodes.head(root) = 0;
    int count = bins.n + 1 - bins.first;
    long long steps = 0;
    for (int j = 1; j <= bins.n; j++) {
        int node = j;
        while (!nodes.joined(node) && steps < limit) {
            double place = uniform(stream) * count;
            int i = int(place), bin = bins.first + i;
            int head = place - i < bins.keep(node, bin) ? bin : bins.other(node, bin);
            nodes.head(node) = head;
            node = head;
            steps++;
        }
        if (!nodes.joined(node)) return false;
        for (node = j; !nodes.joined(node); node = nodes.head(node)) nodes.joined(node) = 1;
    }
    return true;
}
