// Lets a C++20 compiler run CUDA sources: one OS thread a CUDA thread, one block after the other.
//
// Barriers and shuffles wait as on a device, so a thread that misses one hangs or, where a barrier is missing, races,
// which ThreadSanitizer finds. Shared memory is one array, filled with NaN before every block.
#pragma once

#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)
#define __noinline__

using std::fabs, std::fma, std::fmax, std::fmin, std::isnan;

namespace emulator {

struct Index {
    unsigned x;
};

struct Warp {
    explicit Warp(int lanes) : gate(lanes), slots(2 * lanes) {}
    std::barrier<> gate;
    std::vector<std::uint64_t> slots;  // two sets in turn, so that one barrier an exchange does
};

struct Block {
    Block(int threads, int lanes) : gate(threads), votes(2 * threads) {
        for (int first = 0; first < threads; first += lanes) warps.push_back(std::make_unique<Warp>(lanes));
    }
    std::barrier<> gate;
    std::vector<int> votes;
    std::vector<std::unique_ptr<Warp>> warps;
};

inline thread_local Block* block;
inline thread_local unsigned exchanges, counts;

}  // namespace emulator

inline thread_local emulator::Index threadIdx, blockIdx;
inline emulator::Index blockDim, gridDim;
alignas(16) inline double shared_memory[1 << 15];

inline void __syncthreads() { emulator::block->gate.arrive_and_wait(); }

inline int __syncthreads_count(int vote) {
    int *votes = emulator::block->votes.data() + emulator::counts++ % 2 * blockDim.x, total = 0;
    votes[threadIdx.x] = vote != 0;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x; i++) total += votes[i];
    return total;
}

inline int __syncthreads_and(int vote) { return __syncthreads_count(vote) == int(blockDim.x); }
inline int __syncthreads_or(int vote) { return __syncthreads_count(vote) > 0; }

inline emulator::Warp& own_warp() { return *emulator::block->warps[threadIdx.x / WARP]; }
inline void __syncwarp(unsigned = ~0u) { own_warp().gate.arrive_and_wait(); }

// All lanes put a value up; the slots that every lane may read until the exchange after the next.
template <class T>
const std::uint64_t* put_up(T value) {
    std::uint64_t* slots = own_warp().slots.data() + emulator::exchanges++ % 2 * WARP;
    std::memcpy(&(slots[threadIdx.x % WARP] = 0), &value, sizeof value);
    __syncwarp();
    return slots;
}

template <class T>
T __shfl_sync(unsigned, T value, int source, int = WARP) {
    std::memcpy(&value, put_up(value) + source % WARP, sizeof value);
    return value;
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int offset, int = WARP) {
    return __shfl_sync(mask, value, int(threadIdx.x % WARP) ^ offset);
}

inline unsigned __ballot_sync(unsigned, int vote) {
    const std::uint64_t* slots = put_up(std::uint64_t(vote != 0));
    unsigned votes = 0;
    for (int i = 0; i < WARP; i++) votes |= unsigned(slots[i]) << i;
    return votes;
}

inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) == (1u << WARP) - 1; }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

inline long long __double_as_longlong(double x) {
    long long bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}

inline double __longlong_as_double(long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

namespace emulator {

template <class... Arguments, std::size_t... I>
void call(void (*kernel)(Arguments...), const std::uint64_t* values, std::index_sequence<I...>) {
    std::tuple<Arguments...> arguments;
    (std::memcpy(&std::get<I>(arguments), values + I, 8), ...);
    std::apply(kernel, arguments);
}

// Run a kernel whose arguments are given as 64 bits each. Returns whether shared memory was left alone past its end.
template <class... Arguments>
int launch(void (*kernel)(Arguments...), int grid, int threads, int shared_bytes, const std::uint64_t* values) {
    gridDim.x = grid;
    blockDim.x = threads;
    std::memset(shared_memory, 0xff, sizeof shared_memory);
    Block memory(threads, WARP);
    auto run = [&](int index) {
        block = &memory;
        threadIdx.x = index;
        exchanges = counts = 0;
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
            call(kernel, values, std::index_sequence_for<Arguments...>{});
            __syncthreads();
            if (index == 0) std::memset(shared_memory, 0xff, shared_bytes);
            __syncthreads();
        }
    };
    std::vector<std::thread> others;
    for (int index = 1; index < threads; index++) others.emplace_back(run, index);
    run(0);
    for (auto& thread : others) thread.join();
    auto bytes = reinterpret_cast<const unsigned char*>(shared_memory);
    for (std::size_t i = shared_bytes; i < sizeof shared_memory; i++) {
        if (bytes[i] != 0xff) return 0;
    }
    return 1;
}

}  // namespace emulator
