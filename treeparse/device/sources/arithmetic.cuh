// The four kinds of numbers on which one and the same elimination runs: weights as they are or as logarithms, alone or
// with their derivative along a direction. Run on such dual numbers, what gives marginals gives products with the
// Hessian.
//
// In log space -inf stands for 0, and nothing makes NaN of it; a derivative that goes with 0 is finite and of no
// effect. Sums are symmetric in their terms to the bit, so that all lanes of a warp get the same one.
//
// An arithmetic has the types Number, which is stored, and Real, a plain number, with its derivative if there is one:
//   of           the number of an arc, from its log weight and its derivative
//   log          a number's logarithm, without its derivative, and real, the number itself
//   add_product  sum + x * y
//   add_rest     sum + (1 - dependents), the only subtraction: at least 0, as in truth
//   bounded      a number whose logarithm changes no faster than a limit
//   is_finite    whether a number may be used
//   arc          an arc's marginal, from d log Z / d weight and the arc's log weight and its derivative
#pragma once

#include "block.cuh"
#include "exponential.cuh"

constexpr double NEGLIGIBLE = -40.0;  // exp of it is below half a unit in the last place of 1
constexpr double MAX_LOG = 600.0;     // exp of it, times what it is multiplied by, is finite

struct alignas(16) Dual {  // so that one load gets both
    double value, slope;
};

// Plain numbers, alone or with their derivatives. What is slow is not inlined below: that would take long to compile.
__device__ inline void set(double& number, double value, double) { number = value; }
__device__ inline void set(Dual& number, double value, double slope) { number = {value, slope}; }
__device__ inline double value_of(double number) { return number; }
__device__ inline double value_of(Dual number) { return number.value; }
__device__ inline double slope_of(double) { return 0.0; }
__device__ inline double slope_of(Dual number) { return number.slope; }
__device__ inline double last_of(double number) { return number; }
__device__ inline double last_of(Dual number) { return number.slope; }
__device__ inline double add(double x, double y) { return x + y; }
__device__ inline Dual add(Dual x, Dual y) { return {x.value + y.value, x.slope + y.slope}; }
__device__ inline double divide(double x, double y) { return x / y; }
__device__ inline Dual divide(Dual x, Dual y) {
    double quotient = x.value / y.value;
    return {quotient, (x.slope - quotient * y.slope) / y.value};
}
__device__ inline Dual from_lane(Dual number, int offset) {
    return {from_lane(number.value, offset), from_lane(number.slope, offset)};
}
__device__ inline Dual warp_sum(Dual number) { return {warp_sum(number.value), warp_sum(number.slope)}; }

// log(exp(x) + exp(y))
__device__ __noinline__ inline double log_add(double x, double y) {
    double larger = x > y ? x : y, smaller = x > y ? y : x;
    if (larger == -INF || smaller - larger < NEGLIGIBLE) return larger;
    return larger + log1p(exp(smaller - larger));
}

// log(exp(x) + number) clamped at -inf; number may be negative, x large.
__device__ __noinline__ inline double log_add_number(double x, double number) {
    if (number == 0.0) return x;
    if (x > 0.0) {
        double ratio = number * exp(-x);
        return ratio > -1.0 ? x + log1p(ratio) : -INF;
    }
    double total = exp(x) + number;
    return total > 0.0 ? log(total) : -INF;
}

__device__ inline double within(double x, double limit) {
    if (x > limit) return limit;
    return x < -limit ? -limit : x;  // NaN stays
}

struct Plain {
    using Number = double;
    using Real = double;
    static constexpr bool in_logs = false;

    __device__ static Number zero() { return 0.0; }
    __device__ static Number one() { return 1.0; }
    __device__ static Number of(double log_weight, double) { return exponential(log_weight); }
    __device__ static bool is_zero(Number x) { return x == 0.0; }
    __device__ static double log(Number x) { return ::log(x); }
    __device__ static Real real(Number x) { return x; }
    __device__ static Number add(Number x, Number y) { return x + y; }
    __device__ static Number multiply(Number x, Number y) { return x * y; }
    __device__ static Number divide(Number x, Number y) { return x / y; }
    __device__ static Number add_product(Number sum, Number x, Number y) { return fma(x, y, sum); }
    __device__ static Number add_rest(Number sum, Real dependents) {
        double total = sum + (1.0 - dependents);
        return total < 0.0 ? 0.0 : total;  // NaN stays, to be found
    }
    __device__ static Number bounded(Number x, double) { return x; }
    __device__ static bool is_finite(Number x) { return 0.0 * x == 0.0; }
    __device__ static Real arc(Number adjoint, double log_weight, double) { return adjoint * exponential(log_weight); }
};

struct PlainDual {
    using Number = Dual;
    using Real = Dual;
    static constexpr bool in_logs = false;

    __device__ static Number zero() { return {0.0, 0.0}; }
    __device__ static Number one() { return {1.0, 0.0}; }
    __device__ static Number of(double log_weight, double slope) {
        double weight = exponential(log_weight);
        return {weight, weight * slope};
    }
    __device__ static bool is_zero(Number x) { return x.value == 0.0; }
    __device__ static double log(Number x) { return ::log(x.value); }
    __device__ static Real real(Number x) { return x; }
    __device__ static Number add(Number x, Number y) { return {x.value + y.value, x.slope + y.slope}; }
    __device__ static Number multiply(Number x, Number y) {
        return {x.value * y.value, x.slope * y.value + x.value * y.slope};
    }
    __device__ static Number divide(Number x, Number y) { return ::divide(x, y); }
    __device__ static Number add_product(Number sum, Number x, Number y) {
        return {fma(x.value, y.value, sum.value), fma(x.slope, y.value, fma(x.value, y.slope, sum.slope))};
    }
    __device__ static Number add_rest(Number sum, Real dependents) {
        return {Plain::add_rest(sum.value, dependents.value), sum.slope - dependents.slope};
    }
    __device__ static Number bounded(Number x, double limit) { return {x.value, within(x.slope, limit * x.value)}; }
    __device__ static bool is_finite(Number x) { return 0.0 * x.value + 0.0 * x.slope == 0.0; }
    __device__ static Real arc(Number adjoint, double log_weight, double slope) {
        return multiply(adjoint, of(log_weight, slope));
    }
};

struct Log {
    using Number = double;
    using Real = double;
    static constexpr bool in_logs = true;

    __device__ static Number zero() { return -INF; }
    __device__ static Number one() { return 0.0; }
    __device__ static Number of(double log_weight, double) { return log_weight; }
    __device__ static bool is_zero(Number x) { return x == -INF; }
    __device__ static double log(Number x) { return x; }
    __device__ static Real real(Number x) { return exp(x); }
    __device__ static Number add(Number x, Number y) { return log_add(x, y); }
    __device__ static Number multiply(Number x, Number y) { return x + y; }
    __device__ static Number divide(Number x, Number y) { return x - y; }
    __device__ static Number add_product(Number sum, Number x, Number y) { return log_add(sum, x + y); }
    __device__ static Number add_rest(Number sum, Real dependents) { return log_add_number(sum, 1.0 - dependents); }
    __device__ static Number bounded(Number x, double) { return x; }
    __device__ static bool is_finite(Number) { return true; }
    __device__ static Real arc(Number adjoint, double log_weight, double) { return exp(adjoint + log_weight); }
};

// Derivatives are those of the logarithms: that of a sum is the mean of its terms' by their shares.
struct LogDual {
    using Number = Dual;
    using Real = Dual;
    static constexpr bool in_logs = true;

    __device__ static Number zero() { return {-INF, 0.0}; }
    __device__ static Number one() { return {0.0, 0.0}; }
    __device__ static Number of(double log_weight, double slope) { return {log_weight, slope}; }
    __device__ static bool is_zero(Number x) { return x.value == -INF; }
    __device__ static double log(Number x) { return x.value; }
    __device__ static Real real(Number x) {
        double number = exp(x.value);
        return {number, number * x.slope};
    }
    __device__ __noinline__ static Number add(Number x, Number y) {
        if (is_zero(x)) return y;
        if (is_zero(y)) return x;
        double total = log_add(x.value, y.value);
        return {total, exp(x.value - total) * x.slope + exp(y.value - total) * y.slope};
    }
    __device__ static Number multiply(Number x, Number y) { return {x.value + y.value, x.slope + y.slope}; }
    __device__ static Number divide(Number x, Number y) { return {x.value - y.value, x.slope - y.slope}; }
    __device__ static Number add_product(Number sum, Number x, Number y) { return add(sum, multiply(x, y)); }
    __device__ __noinline__ static Number add_rest(Number sum, Real dependents) {
        double total = log_add_number(sum.value, 1.0 - dependents.value);
        if (total == -INF) return zero();
        double slope = -dependents.slope * exp(fmin(-total, MAX_LOG));
        return {total, is_zero(sum) ? slope : slope + exp(fmin(sum.value - total, MAX_LOG)) * sum.slope};
    }
    __device__ static Number bounded(Number x, double limit) { return {x.value, within(x.slope, limit)}; }
    __device__ static bool is_finite(Number) { return true; }
    __device__ static Real arc(Number adjoint, double log_weight, double slope) {
        return real(multiply(adjoint, of(log_weight, slope)));
    }
};

template <class A>
__device__ inline typename A::Number warp_total(typename A::Number number) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) number = A::add(number, from_lane(number, offset));
    return number;
}
