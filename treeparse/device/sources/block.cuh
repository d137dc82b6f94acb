// What every kernel stands on: threads, warps and the memory of a block.
//
// A kernel is KERNEL name(...), its arguments are 64 bits each (long long, double, pointers), and a block has any
// number of warps up to MOST_WARPS. Results must not depend on that number, so what many threads add up is added in an
// order that the item's size alone fixes. All shared memory is the one dynamic array.
#pragma once

#ifndef WARP
#define WARP 32  // lanes; the emulator has fewer
#endif

constexpr int MOST_WARPS = 16;
constexpr unsigned ALL_LANES = 0xffffffffu;

#define KERNEL extern "C" __global__ void __launch_bounds__(MOST_WARPS * WARP, 2)
#define INF __longlong_as_double(0x7ff0000000000000LL)
#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000LL)

alignas(16) extern __shared__ double shared_memory[];

__device__ inline int thread() { return threadIdx.x; }
__device__ inline int threads() { return blockDim.x; }
__device__ inline int lane() { return threadIdx.x % WARP; }
__device__ inline int warp() { return threadIdx.x / WARP; }
__device__ inline int warps() { return blockDim.x / WARP; }

// The memory of this block: shared, or its part of a work area in global memory, of `area` doubles a block.
__device__ inline double* block_memory(double* work, long long area) {
    return work == nullptr ? shared_memory : work + blockIdx.x * area;
}

__device__ inline double from_lane(double value, int offset) { return __shfl_xor_sync(ALL_LANES, value, offset, WARP); }

// Every lane gets the same bits from these, since addition is commutative.
__device__ inline double warp_sum(double value) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) value += from_lane(value, offset);
    return value;
}

__device__ inline double warp_max(double value) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) value = fmax(value, from_lane(value, offset));
    return value;
}
