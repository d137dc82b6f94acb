// Log partitions and marginals over non-projective trees: a block a sentence.
#include "sums.cuh"

KERNEL nonprojective_log_partition(const double* scores, const long long* lengths, long long items,
                                         long long size, long long single_root, double* work, long long area,
                                         double* log_z) {
    double* memory = block_memory(work, area);
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        Item item{scores + b * size * size, nullptr, int(lengths[b]), int(size), 1, 1};
        double total = sum_trees<Plain, Log>(item, memory, single_root, nullptr);
        if (thread() == 0) log_z[b] = total;
    }
}

KERNEL nonprojective_marginals(const double* scores, const long long* lengths, long long items,
                                                       long long size, long long single_root, double* work,
                                                       long long area, double* log_z, double* marginals) {
    double* memory = block_memory(work, area);
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        Item item{scores + b * size * size, nullptr, int(lengths[b]), int(size), 1, 1};
        double total = sum_trees<Plain, Log>(item, memory, single_root, marginals + b * size * size);
        if (thread() == 0) log_z[b] = total;
    }
}
