// The random streams of treeparse/kernels/random.py, to the bit: a draw depends on the seed, the sample's number and
// the draw's number alone.
#pragma once

#include "block.cuh"

using Bits = unsigned long long;

constexpr Bits GAMMA = 0x9E3779B97F4A7C15;
constexpr double UNIT = 0x1p-52;

__device__ inline Bits mixed(Bits bits) {
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
    return bits ^ (bits >> 31);
}

// The stream of one sample of the item that has this seed.
__device__ inline Bits new_stream(Bits seed, Bits sample) { return mixed(seed ^ mixed(sample * GAMMA + GAMMA)); }

// The next draw, uniform in the open interval (0, 1).
__device__ inline double uniform(Bits& stream) {
    stream += GAMMA;
    return (double(mixed(stream) >> 12) + 0.5) * UNIT;
}
