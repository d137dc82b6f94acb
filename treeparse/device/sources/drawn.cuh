// Trees that the threads of a block draw, one each, and where their heads are kept until they are stored.
#pragma once

#include "random.cuh"

using Entry = unsigned short;  // a node's number in what there is much of

// What one thread keeps of the nodes of its tree, beside what other threads keep of the same node.
struct Lines {
    static constexpr int COUNT = 3;

    Entry* memory;
    int drawers, drawer, nodes;  // trees drawn at a time, which of them this is, and the entries of a line

    __device__ Entry& at(int line, int node) const { return memory[(line * nodes + node) * drawers + drawer]; }
    __device__ Entry& head(int node) const { return at(0, node); }
};

// Which trees of which item a block draws: as many at a time as it has threads, if there are so many.
struct Share {
    int count, drawers;  // trees of an item, and of a block at a time
    long long chunks;

    __device__ Share(long long count) : count(int(count)), drawers(min(threads(), int(count))) {
        chunks = (count + drawers - 1) / drawers;
    }
    __device__ long long item(long long task) const { return task / chunks; }
    __device__ int first(long long task) const { return int(task % chunks) * drawers; }
    __device__ int drawn(long long task) const { return min(drawers, count - first(task)); }

    // Store the heads of the trees that were drawn, or -1, by all threads of the block.
    __device__ void store(long long task, const Lines& lines, int n, int size, bool exists, long long* heads) const {
        __syncthreads();
        for (int place = warp(); place < drawn(task); place += warps()) {
            Lines found{lines.memory, drawers, place, lines.nodes};
            long long* result = heads + (item(task) * count + first(task) + place) * size;
            for (int j = lane(); j < size; j += WARP) result[j] = exists && 1 <= j && j <= n ? found.head(j) : -1;
        }
    }
};
