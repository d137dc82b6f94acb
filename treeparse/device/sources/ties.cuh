// Which of several trees of equal score is the better one: the rule of treeparse/kernels/ties.py.
#pragma once

#include "block.cuh"

// The key of an arc, which depends on its head and its dependent alone.
__device__ inline long long arc_key(int head, int dependent) {
    unsigned mixed = head * 0x9E3779B1u + dependent * 0x85EBCA77u;
    mixed = (mixed ^ (mixed >> 16)) * 0x45D9F3Bu;
    mixed = (mixed ^ (mixed >> 15)) * 0x119DE1F3u;
    long long length = head < dependent ? dependent - head : head - dependent;
    return ((mixed ^ (mixed >> 16)) >> 4) - (length << 40);
}

// The best of many by (value, key), the first one of those that are equal in both. Only where values are equal is a key
// looked at, so whoever compares gives a function that finds it.
struct Best {
    double value = -INF;
    int place = 0;

    template <class KeyOf>
    __device__ void offer(double other, int other_place, KeyOf key_of) {
        bool is_better = other > value;
        if (other == value && other > -INF && other_place != place) {
            long long key = key_of(place), other_key = key_of(other_place);
            is_better = other_key > key || (other_key == key && other_place < place);
        }
        if (is_better) value = other, place = other_place;
    }

    // The best one of all lanes, for all of them.
    template <class KeyOf>
    __device__ void reduce(KeyOf key_of) {
        for (int offset = WARP / 2; offset > 0; offset /= 2) {
            double other = from_lane(value, offset);
            offer(other, __shfl_xor_sync(ALL_LANES, place, offset, WARP), key_of);
        }
        value = __shfl_sync(ALL_LANES, value, 0, WARP);  // lanes differ if a score is not a number
        place = __shfl_sync(ALL_LANES, place, 0, WARP);
    }
};
