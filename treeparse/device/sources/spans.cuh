// Charts of spans, which Eisner's algorithm fills by width: all spans of a width at once, each by a few lanes that
// share the places to split it, and one barrier a width. treeparse/kernels/sums/inside_outside.py says what spans there
// are.
//
// A chart is a triangle, two of which make up a rectangle. A span is at [width][first node], so that lanes that look at
// neighbouring spans look at neighbouring numbers. The layout is computed again in treeparse/device/projective.py.
#pragma once

#include "arithmetic.cuh"

template <class Number>
struct Chart {
    Number* origin;
    int row, column;  // steps to the next width and to the next node

    // The span from node i to node j.
    __device__ Number& at(int i, int j) const { return origin[(j - i) * row + i * column]; }
};

// The chart of this number, of those for n words that lie one after the other.
template <class Number>
__device__ inline Chart<Number> chart_of(Number* memory, int n, int number) {
    int row = (n + 2) | 1;
    Number* rectangle = memory + number / 2 * (n + 1) * row;
    if (number % 2 == 0) return {rectangle, row, 1};
    return {rectangle + n * row + n + 1, -row, -1};
}

// Which span of a width this lane works on, with which others.
struct Team {
    int lanes, part;  // those of one span, a power of two; which of them this is
    int first, step;  // the span's first node, and the distance to the next one that these lanes work on

    __device__ Team(int n, int width) {
        int spans = n + 1 - width;
        lanes = 1;
        while (lanes < WARP && lanes < width && spans * lanes <= 2 * (n + 1)) lanes *= 2;
        part = lane() % lanes;
        first = (warp() * WARP + lane()) / lanes;
        step = threads() / lanes;
    }
};

// A sum of products by the lanes of a team.
template <class A>
struct Sum {
    using Number = typename A::Number;
    Number total = A::zero();

    __device__ void add(Number x, Number y) { total = A::add_product(total, x, y); }
    __device__ Number reduce(int lanes) {
        for (int offset = lanes / 2; offset > 0; offset /= 2) total = A::add(total, from_lane(total, offset));
        return total;
    }
};

// Sums of logarithms are kept relative to the largest term so far: one exponential a term.
struct LogSum {
    double top = -INF, total = 0.0, slope = 0.0;  // of the terms: the largest, and sums of weights and of their slopes

    __device__ void add(double value, double change) {
        if (value == -INF) return;
        if (value > top) {
            double factor = exponential(top - value);
            top = value;
            total = total * factor + 1.0;
            slope = slope * factor + change;
        } else {
            double weight = exponential(value - top);
            total += weight;
            slope += weight * change;
        }
    }
    __device__ void reduce(int lanes) {
        for (int offset = lanes / 2; offset > 0; offset /= 2) {
            double other = from_lane(top, offset), largest = fmax(top, other);
            double own_factor = top > -INF ? exponential(top - largest) : 0.0;
            double factor = other > -INF ? exponential(other - largest) : 0.0;
            total = total * own_factor + from_lane(total, offset) * factor;
            slope = slope * own_factor + from_lane(slope, offset) * factor;
            top = largest;
        }
    }
};

template <>
struct Sum<Log> {
    LogSum terms;

    __device__ void add(double x, double y) { terms.add(x + y, 0.0); }
    __device__ double reduce(int lanes) {
        terms.reduce(lanes);
        return terms.top > -INF ? terms.top + log(terms.total) : -INF;
    }
};

template <>
struct Sum<LogDual> {
    LogSum terms;

    __device__ void add(Dual x, Dual y) { terms.add(x.value + y.value, x.slope + y.slope); }
    __device__ Dual reduce(int lanes) {
        terms.reduce(lanes);
        if (terms.top == -INF) return LogDual::zero();
        return {terms.top + log(terms.total), terms.slope / terms.total};
    }
};
