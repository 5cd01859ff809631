// A reference to an ops_array, formulas of them, and why an operator goes to the processor.
// Everything that computes uses it. Arrays are made and dropped under the lock of runtime.h.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <ops/ops.h>

namespace halyard
{

// Thrown where Halyard lacks an operator, a type or a case: the processor computes it instead.
struct Unsupported : std::exception {
    std::string reason;
    explicit Unsupported(std::string text) : reason(std::move(text))
    {
    }
    const char *what() const noexcept override
    {
        return reason.c_str();
    }
};

class Array
{
  public:
    Array() = default;
    // Takes the caller's reference; null is a call that failed.
    Array(ops_array *array) : array_(array)
    {
        if (!array) {
            throw Unsupported(hal_status_message());
        }
    }
    Array(Array &&other) noexcept : array_(std::exchange(other.array_, nullptr))
    {
    }
    Array(const Array &other) : array_(ops_array_retain(other.array_))
    {
    }
    Array &operator=(Array other) noexcept
    {
        std::swap(array_, other.array_);
        return *this;
    }
    ~Array()
    {
        if (array_) {
            ops_array_release(array_);
        }
    }
    static Array retained(ops_array *array)
    {
        return Array(ops_array_retain(array));
    }
    operator ops_array *() const
    {
        return array_;
    }
    ops_array *release()
    {
        return std::exchange(array_, nullptr);
    }
    hal_type type() const
    {
        return ops_array_get_type(array_);
    }
    int64_t rank() const
    {
        return ops_array_get_rank(array_);
    }
    int64_t length(int64_t axis) const
    {
        return ops_array_get_length(array_, (int32_t)axis);
    }
    int64_t count() const
    {
        return ops_array_get_element_count(array_);
    }
    ops_context *context() const
    {
        return ops_array_get_context(array_);
    }

  private:
    ops_array *array_ = nullptr;
};

// ---- Formulas ----

inline Array unary(ops_unary_function function, const Array &x)
{
    return Array(ops_array_unary(function, x));
}
inline Array binary(ops_binary_function function, const Array &x, const Array &y)
{
    return Array(ops_array_binary(function, x, y));
}
inline Array binary(ops_binary_function function, const Array &x, double y)
{
    return Array(ops_array_binary_scalar(function, x, y));
}
inline Array binary(ops_binary_function function, double x, const Array &y)
{
    return Array(ops_array_scalar_binary(function, x, y));
}

#define HALYARD_FORMULA(name, FUNCTION)               \
    inline Array name(const Array &x, const Array &y) \
    {                                                 \
        return binary(FUNCTION, x, y);                \
    }                                                 \
    inline Array name(const Array &x, double y)       \
    {                                                 \
        return binary(FUNCTION, x, y);                \
    }                                                 \
    inline Array name(double x, const Array &y)       \
    {                                                 \
        return binary(FUNCTION, x, y);                \
    }
HALYARD_FORMULA(operator+, OPS_ADD)
HALYARD_FORMULA(operator-, OPS_SUB)
HALYARD_FORMULA(operator*, OPS_MUL)
HALYARD_FORMULA(operator/, OPS_DIV)
HALYARD_FORMULA(less, OPS_LT)
HALYARD_FORMULA(less_equal, OPS_LE)
HALYARD_FORMULA(greater, OPS_GT)
HALYARD_FORMULA(greater_equal, OPS_GE)
HALYARD_FORMULA(equal, OPS_EQ)
HALYARD_FORMULA(not_equal, OPS_NE)
HALYARD_FORMULA(minimum, OPS_MINIMUM)
HALYARD_FORMULA(maximum, OPS_MAXIMUM)
HALYARD_FORMULA(power, OPS_POW)
HALYARD_FORMULA(both, OPS_AND)
HALYARD_FORMULA(either, OPS_OR)
#undef HALYARD_FORMULA

inline Array operator-(const Array &x)
{
    return unary(OPS_NEG, x);
}
inline Array square(const Array &x)
{
    return unary(OPS_SQUARE, x);
}
inline Array logical_not(const Array &x)
{
    return unary(OPS_NOT, x);
}
inline Array scalar(ops_context *context, hal_type type, double value)
{
    return Array(ops_array_scalar(context, type, value));
}
inline Array scalar_like(const Array &x, double value)
{
    return scalar(x.context(), x.type(), value);
}
inline Array where(const Array &condition, const Array &x, const Array &y)
{
    return Array(ops_array_where(condition, x, y));
}
inline Array where(const Array &condition, const Array &x, double y)
{
    return where(condition, x, scalar_like(x, y));
}
inline Array where(const Array &condition, double x, const Array &y)
{
    return where(condition, scalar_like(y, x), y);
}
// 1 / (1 + exp(-x)), tanh, exp: the functions that most derivatives are made of.
inline Array sigmoid(const Array &x)
{
    return unary(OPS_SIGMOID, x);
}
inline Array tanh_of(const Array &x)
{
    return unary(OPS_TANH, x);
}
inline Array exp_of(const Array &x)
{
    return unary(OPS_EXP, x);
}

// ---- Types and shapes ----

// Floats become small integers as in PyTorch: by way of a wide integer, whose high bits drop.
inline Array cast(const Array &x, hal_type type)
{
    if (x.type() == type) {
        return x;
    }
    if (type == HAL_TYPE_BOOL) {
        return binary(OPS_NE, x, 0.0);
    }
    if (hal_type_is_float(x.type()) && hal_type_is_integer(type) && hal_type_size(type) < 4) {
        return Array(ops_array_cast(type, Array(ops_array_cast(HAL_TYPE_I32, x))));
    }
    return Array(ops_array_cast(type, x));
}
// Of x itself where it has the shape: a view would end the kernel that computes x.
inline Array reshape(const Array &x, uint32_t rank, const int64_t *shape)
{
    bool same = x.rank() == (int64_t)rank;
    for (uint32_t i = 0; same && i < rank; i++) {
        same = x.length(i) == shape[i];
    }
    return same ? x : Array(ops_array_reshape(x, rank, shape));
}
template <class Shape> Array reshape(const Array &x, const Shape &shape)
{
    return reshape(x, (uint32_t)shape.size(), shape.data());
}
inline Array flatten(const Array &x)
{
    const int64_t count = x.count();
    return reshape(x, 1, &count);
}
template <class Shape> Array broadcast(const Array &x, const Shape &shape)
{
    bool same = x.rank() == (int64_t)shape.size();
    for (size_t i = 0; same && i < shape.size(); i++) {
        same = x.length((int64_t)i) == shape[i];
    }
    return same ? x : Array(ops_array_broadcast(x, (uint32_t)shape.size(), shape.data()));
}
inline Array slice(const Array &x, int64_t axis, int64_t start, int64_t count, int64_t step = 1)
{
    return Array(ops_array_slice(x, (int32_t)axis, start, count, step));
}
inline Array transpose(const Array &x, int64_t a, int64_t b)
{
    return Array(ops_array_transpose(x, (int32_t)a, (int32_t)b));
}
inline Array reduce(ops_reduction reduction, const Array &x, int64_t axis, bool keep)
{
    return Array(ops_array_reduce(reduction, (int32_t)axis, keep, x));
}
// Products of halves are by matrix units, with sums of F32, as PyTorch's own; float32 has no TF32.
inline uint32_t precision_of(hal_type type)
{
    const bool is_half = type == HAL_TYPE_F16 || type == HAL_TYPE_BF16;
    return is_half ? HAL_GEMM_ACCURATE : HAL_GEMM_STRICT;
}
inline Array matmul(const Array &a, const Array &b)
{
    return Array(ops_array_matmul(a, b, precision_of(a.type())));
}

} // namespace halyard
