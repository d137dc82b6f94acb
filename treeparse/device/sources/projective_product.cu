// Products of vectors with the Hessian of the log partition over projective trees: a block a sentence.
#include "inside_outside.cuh"

KERNEL projective_product(const double* scores, const long long* lengths, long long items, long long size,
                          long long single_root, double* work, long long area, const double* vectors,
                          double* product) {
    double* memory = block_memory(work, area);
    for (long long b = blockIdx.x; b < items; b += gridDim.x) {
        long long place = b * size * size;
        Sentence sentence(scores + place, vectors + place, int(lengths[b]), int(size), memory);
        sum_projective<PlainDual, LogDual>(sentence, single_root, PRODUCT, product + place);
    }
}
