// Random numbers. Each call takes one key of the generator, so a seed gives the same numbers on
// every device; they are not those of PyTorch's other devices.
#include <cmath>

#include "call.h"
#include "generator.h"

namespace halyard
{
namespace
{

Array uniform(const Call &c, const Tensor &like, size_t generator, double low, double high,
              hal_type type)
{
    const int64_t count = like.numel();
    const Array numbers(ops_array_uniform(c.context(), type, 1, &count,
                                          next_key(c.generator(generator), c.device()), low, high));
    return reshape(numbers, like.sizes());
}

hal_type float_type(const Tensor &x)
{
    const hal_type type = type_of(x.scalar_type());
    if (!hal_type_is_float(type) || x.numel() == 0) {
        throw Unsupported("random integers, or none");
    }
    return type;
}

Results uniform_(const Call &c) // self, from, to, generator
{
    const Tensor &x = c.tensor(0);
    const double low = c.value(1).toDouble(), high = c.value(2).toDouble();
    TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low,
                " > to=", high);
    return {uniform(c, x, 3, low, high, float_type(x))};
}

Results normal_(const Call &c) // self, mean, std, generator
{
    const Tensor &x = c.tensor(0);
    const double deviation = c.value(2).toDouble();
    TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
    const int64_t count = x.numel();
    const Array numbers(ops_array_normal(c.context(), float_type(x), 1, &count,
                                         next_key(c.generator(3), c.device()),
                                         c.value(1).toDouble(), deviation));
    return {reshape(numbers, x.sizes())};
}

Results bernoulli_(const Call &c) // self, p, generator
{
    const Tensor &x = c.tensor(0);
    const double p = c.value(1).toDouble();
    TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
    if (x.numel() == 0) {
        throw Unsupported("no random numbers");
    }
    return {less(uniform(c, x, 2, 0, 1, HAL_TYPE_F32), p)};
}

Results bernoulli_of(const Call &c, size_t probabilities, size_t generator)
{
    const Tensor &p = c.tensor(probabilities);
    if (p.numel() == 0 || !is_ours(p)) {
        throw Unsupported("no random numbers");
    }
    const hal_type type = float_type(p) == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
    const Array hit = less(uniform(c, p, generator, 0, 1, type), c.cast_to(probabilities, type));
    return {cast(hit, type_of(c.tensor(0).scalar_type()))};
}

Results exponential_(const Call &c) // self, lambda, generator
{
    const Tensor &x = c.tensor(0);
    const double lambda = c.value(1).toDouble();
    TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
    const Array u =
        uniform(c, x, 2, 0, 1, float_type(x) == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32);
    return {cast(unary(OPS_LOG1P, -u) * (-1 / lambda), float_type(x))};
}

// Whole numbers in [low, high), of at most 2^24 different ones.
Results integers_between(const Call &c, double low, double high, size_t generator)
{
    const Tensor &x = c.tensor(0);
    const hal_type type = type_of(x.scalar_type());
    const double span = high - low;
    if (type == HAL_TYPE_NONE || x.numel() == 0 || !(span >= 1) || span > 16777216) {
        throw Unsupported("random integers of a wide range");
    }
    const Array u = uniform(c, x, generator, 0, 1, HAL_TYPE_F32);
    const Array whole = minimum(unary(OPS_FLOOR, u * span), span - 1);
    if (!hal_type_is_integer(type)) {
        return {cast(whole + low, type)};
    }
    return {cast(cast(whole, HAL_TYPE_I64) + low, type)};
}

Results random_from_to(const Call &c) // self, from, to, generator
{
    if (!c.has(2)) {
        throw Unsupported("random integers of all bits");
    }
    return integers_between(c, (double)c.integer(1), (double)c.integer(2), 3);
}

Results dropout(const Call &c) // x, p, train
{
    const Array x = c.plain(0);
    const double p = c.value(1).toDouble();
    const bool trains = !c.has(2) || c.flag(2);
    if (x.count() == 0) {
        throw Unsupported("dropout of nothing");
    }
    if (!trains || p == 0) {
        return {x, Array(ops_array_full(c.context(), HAL_TYPE_BOOL, (uint32_t)x.rank(),
                                        c.tensor(0).sizes().data(), 1))};
    }
    const int64_t count = x.count();
    const Array u(ops_array_uniform(c.context(), HAL_TYPE_F32, 1, &count,
                                    next_key(std::nullopt, c.device()), 0, 1));
    const Array kept = reshape(less(u, 1 - p), c.tensor(0).sizes());
    const double scale = p < 1 ? 1 / (1 - p) : 0;
    return {where(kept, x * scale, 0.0), kept};
}

Results dropout_backward(const Call &c) // g, mask, scale
{
    return {where(c.plain(1), c.plain(0) * c.value(2).toDouble(), 0.0)};
}

Results permutation(const Call &c) // n, generator, out
{
    const Tensor &out = c.tensor(2);
    const int64_t n = c.integer(0);
    const hal_type type = type_of(out.scalar_type());
    if (n < 2 || n > (1 << 24) || !hal_type_is_integer(type)) {
        throw Unsupported("a short or very long permutation");
    }
    const Array u(ops_array_uniform(context_at(out.device().index()), HAL_TYPE_F32, 1, &n,
                                    next_key(c.generator(1), out.device().index()), 0, 1));
    return {cast(Array(ops_array_argsort(0, 0, -1, u)), type)};
}

const Operator TABLE[] = {
    {"uniform_", Types::PLAIN, uniform_},
    {"normal_", Types::PLAIN, normal_},
    {"bernoulli_.float", Types::PLAIN, bernoulli_},
    {"bernoulli_.Tensor", Types::PLAIN, [](const Call &c) { return bernoulli_of(c, 1, 2); },
     Sharing::WHOLE},
    {"bernoulli bernoulli.out", Types::PLAIN, [](const Call &c) { return bernoulli_of(c, 0, 1); },
     Sharing::WHOLE},
    {"exponential_", Types::PLAIN, exponential_},
    {"random_.from", Types::PLAIN, random_from_to},
    {"random_.to", Types::PLAIN,
     [](const Call &c) { return integers_between(c, 0, (double)c.integer(1), 2); }},
    {"native_dropout", Types::PLAIN, dropout},
    {"native_dropout_backward", Types::PLAIN, dropout_backward},
    {"randperm.generator_out", Types::PLAIN, permutation},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
