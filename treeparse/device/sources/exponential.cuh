// The exponential of treeparse/kernels/exponential.py, to the bit: weights are those of the CPU's kernels. What is
// added to a product there is added before it is rounded, here by fma as well.
#pragma once

constexpr double LOWEST = -708.0;  // exp of it is still a normal number
constexpr double LOG2_E = 1.4426950408889634;
constexpr double LOG_2_HIGH = 0x1.62e42fefap-1;  // so short that a product with a small whole number is exact
constexpr double LOG_2_LOW = 0x1.cf79abc9e3b39p-40;
constexpr double ROUND = 0x1.8p52;  // x + ROUND is a whole number, held in the low bits

// exp of numbers that are at most 700; 0 from LOWEST down; NaN stays.
__device__ inline double exponential(double x) {
    constexpr double TAYLOR[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                 1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                                 1.0 / 6,          1.0 / 2,         1.0,            1.0};
    if (x <= LOWEST) return 0.0;
    double power = fma(x, LOG2_E, ROUND);
    double k = power - ROUND;
    double rest = fma(k, -LOG_2_LOW, fma(k, -LOG_2_HIGH, x));
    double series = 0.0;
    for (double term : TAYLOR) series = fma(series, rest, term);
    long long bits = (__double_as_longlong(power) + 1023) << 52;
    return series * __longlong_as_double(bits);
}
