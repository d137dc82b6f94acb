// Lets a C++17 compiler run CUDA sources, one block after the other. A CUDA thread is a coroutine of one OS thread that
// runs until it has to wait; with EMULATOR_THREADS (and C++20) an OS thread, so that ThreadSanitizer sees what runs at
// once.
//
// Barriers and shuffles wait as on a device; a wait that can never end is found. Shared memory is one array, filled
// with NaN before every block. Kernels' arguments are 64 bits each.
#pragma once

#undef _FORTIFY_SOURCE  // it takes a jump to another stack for an error

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#ifdef EMULATOR_THREADS
#include <barrier>
#include <thread>
#else
#include <setjmp.h>
#include <ucontext.h>
#endif

#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)
#define __noinline__

using std::fabs, std::fma, std::fmax, std::fmin, std::isnan, std::max, std::min;

namespace emulator {

struct Index {
    unsigned x;
};

struct Thread;
inline thread_local Thread* current;

#ifdef EMULATOR_THREADS
using Gate = std::barrier<>;
struct Coroutine {};
#else
constexpr int STACK = 1 << 16;  // bytes

// It begins by a context of its own and then jumps: changing contexts asks the system for signals each time.
struct Coroutine {
    ucontext_t context;
    jmp_buf place;
    std::unique_ptr<char[]> stack{new char[STACK]};
    bool has_begun = false, has_ended = false;
};

inline jmp_buf scheduler;
inline bool has_moved;  // whether any thread got on since this was last looked at
void give_way();

struct Gate {
    explicit Gate(int size) : size(size) {}
    void arrive_and_wait() {
        unsigned own = round;
        if (++count == size) {
            count = 0;
            round++;
            has_moved = true;
        }
        while (round == own) give_way();
    }
    int size, count = 0;
    unsigned round = 0;
};
#endif

struct Warp {
    Gate gate{WARP};
    std::uint64_t slots[2][WARP];  // two sets in turn, so that one wait an exchange does
};

struct Block {
    explicit Block(int threads) : gate(threads), votes(2 * threads) {
        for (int first = 0; first < threads; first += WARP) warps.push_back(std::make_unique<Warp>());
    }
    Gate gate;
    std::vector<int> votes;
    std::vector<std::unique_ptr<Warp>> warps;
};

struct Thread {
    Index thread, block;
    Block* memory;
    unsigned exchanges = 0, counts = 0;
    Coroutine coroutine;
    Warp& warp() { return *memory->warps[thread.x / WARP]; }
};

}  // namespace emulator

#define threadIdx (emulator::current->thread)
#define blockIdx (emulator::current->block)
inline emulator::Index blockDim, gridDim;
alignas(16) inline double shared_memory[1 << 15];

inline void __syncthreads() { emulator::current->memory->gate.arrive_and_wait(); }
inline void __syncwarp(unsigned = ~0u) { emulator::current->warp().gate.arrive_and_wait(); }

inline int __syncthreads_count(int vote) {
    int *votes = &emulator::current->memory->votes[emulator::current->counts++ % 2 * blockDim.x], total = 0;
    votes[threadIdx.x] = vote != 0;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x; i++) total += votes[i];
    return total;
}

inline int __syncthreads_and(int vote) { return __syncthreads_count(vote) == int(blockDim.x); }
inline int __syncthreads_or(int vote) { return __syncthreads_count(vote) > 0; }

// All lanes put a value up, each into its slot.
template <class T>
const std::uint64_t* put_up(T value) {
    std::uint64_t* slots = emulator::current->warp().slots[emulator::current->exchanges++ % 2];
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

template <class T>
T __ldg(const T* place) {
    return *place;
}

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

#ifdef EMULATOR_THREADS
template <class Body>
bool run(std::vector<Thread>& threads, Body body) {
    std::vector<std::thread> running;
    for (Thread& thread : threads) {
        running.emplace_back([&] {
            current = &thread;
            body();
        });
    }
    for (auto& thread : running) thread.join();
    return true;
}
#else
inline void give_way() {
    if (_setjmp(current->coroutine.place) == 0) _longjmp(scheduler, 1);
}

// Until the current thread gives way or ends.
inline void go_on() {
    if (_setjmp(scheduler) != 0) return;
    Coroutine& coroutine = current->coroutine;
    if (coroutine.has_begun) _longjmp(coroutine.place, 1);
    coroutine.has_begun = true;
    setcontext(&coroutine.context);
}

template <class Body>
Body* to_run;

template <class Body>
void run_current() {
    (*to_run<Body>)();
    current->coroutine.has_ended = has_moved = true;
    _longjmp(scheduler, 1);
}

// Returns whether all threads came to their end, each of them run in turn as far as it gets.
template <class Body>
bool run(std::vector<Thread>& threads, Body body) {
    to_run<Body> = &body;
    for (auto& [thread, block, memory, exchanges, counts, coroutine] : threads) {
        getcontext(&coroutine.context);
        coroutine.context.uc_stack = {coroutine.stack.get(), 0, STACK};
        makecontext(&coroutine.context, run_current<Body>, 0);
    }
    for (has_moved = true; has_moved;) {
        has_moved = false;
        for (Thread& thread : threads) {
            if (thread.coroutine.has_ended) continue;
            current = &thread;
            go_on();
        }
    }
    for (Thread& thread : threads) {
        if (!thread.coroutine.has_ended) return false;
    }
    return true;
}
#endif

template <class... Arguments, std::size_t... I>
void call(void (*kernel)(Arguments...), const std::uint64_t* values, std::index_sequence<I...>) {
    std::tuple<Arguments...> arguments;
    (std::memcpy(&std::get<I>(arguments), values + I, 8), ...);
    std::apply(kernel, arguments);
}

// Run a kernel; returns what was wrong, or null.
template <class... Arguments>
const char* launch(void (*kernel)(Arguments...), int blocks, int count, int shared_bytes, const std::uint64_t* values) {
    gridDim.x = blocks;
    blockDim.x = count;
    std::memset(shared_memory, 0xff, sizeof shared_memory);
    Block memory(count);
    std::vector<Thread> threads(count);
    for (int i = 0; i < count; i++) threads[i].thread.x = i, threads[i].memory = &memory;
    bool all_ended = run(threads, [&] {
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
            call(kernel, values, std::index_sequence_for<Arguments...>{});
            __syncthreads();
            if (threadIdx.x == 0) std::memset(shared_memory, 0xff, shared_bytes);
            __syncthreads();
        }
    });
    if (!all_ended) return "threads wait for each other at different barriers";
    auto bytes = reinterpret_cast<const unsigned char*>(shared_memory);
    for (std::size_t i = shared_bytes; i < sizeof shared_memory; i++) {
        if (bytes[i] != 0xff) return "it writes past the end of its shared memory";
    }
    return nullptr;
}

}  // namespace emulator
