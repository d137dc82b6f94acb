// Products of vectors with the Hessian of the log partition over non-projective trees: a block a sentence.
#include "sums.cuh"

KERNEL nonprojective_product(const double* scores, const long long* lengths, long long items,
                                                  long long size, long long single_root, double* work, long long area,
                                                  const double* vectors, double* product) {
    double* memory = block_memory(work, area);
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        Item item{scores + b * size * size, vectors + b * size * size, int(lengths[b]), int(size), 1, 1};
        sum_trees<PlainDual, LogDual>(item, memory, single_root, product + b * size * size);
    }
}
