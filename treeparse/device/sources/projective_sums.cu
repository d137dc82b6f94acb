// Log partitions and marginals over projective trees: a block a sentence.
#include "inside_outside.cuh"

KERNEL projective_sums(const double* scores, const long long* lengths, long long items, long long size,
                       long long single_root, double* work, long long area, long long wanted, double* log_z,
                       double* result) {
    double* memory = block_memory(work, area);
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        Sentence sentence(scores + b * size * size, nullptr, int(lengths[b]), int(size), memory);
        double total = sum_projective<Plain, Log>(sentence, single_root, Wanted(wanted), result + b * size * size);
        if (thread() == 0 && log_z != nullptr) log_z[b] = total;
    }
}
