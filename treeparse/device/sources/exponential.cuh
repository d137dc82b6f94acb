// The exponential of treeparse/kernels/exponential.py, to the bit: weights are those of the CPU's kernels. What is
// added to a product there is added before it is rounded, here by fma as well.
#pragma once

constexpr double LOWEST = -708.0;  // exp of it is still a normal number
constexpr double LOG2_E = 1.4426950408889634;
constexpr double LOG_2_HIGH = 0x1.62e42fefap-1;  // so short that a product with a small whole number is exact
constexpr double LOG_2_LOW = 0x1.cf79abc9e3b39p-40;
constexpr double ROUND = 0x1.8p52 + 1023;  // the low bits of k + ROUND are the exponent of 2^k, k rounded

// exp of numbers that are at most 700; 0 from LOWEST down; NaN stays.
__device__ inline double exponential(double x) {
    constexpr double COEFFICIENTS[] = {0x1.ad7f9ca254182p-26, 0x1.28ad72a6b6dcep-22, 0x1.71df2535a4beap-19,
                                       0x1.a0199a0c944bdp-16, 0x1.a01a012a64523p-13, 0x1.6c16c1842a00bp-10,
                                       0x1.1111111127bc1p-7, 0x1.555555555087dp-5, 0x1.55555555554fap-3,
                                       0x1.000000000000ap-1, 1.0, 1.0};
    if (x <= LOWEST) return 0.0;
    double power = fma(x, LOG2_E, ROUND);
    double k = power - ROUND;
    double rest = fma(k, -LOG_2_LOW, fma(k, -LOG_2_HIGH, x));
    double series = 0.0;
    for (double each : COEFFICIENTS) series = fma(series, rest, each);
    long long bits = __double_as_longlong(power) << 52;
    return series * __longlong_as_double(bits);
}
