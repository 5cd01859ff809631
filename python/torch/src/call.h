// Operators as formulas. A formula makes the result arrays of a call from its arguments. One boxed
// kernel serves every formula and each of an operator's forms (f, f_ and f.out): it promotes the
// operands, runs the formula under the lock, and gives the results to new tensors or to those that
// the form writes. What a formula cannot do goes to the processor.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "cell.h"
#include "fallback.h"

namespace halyard
{

using Results = c10::SmallVector<Array, 3>;

// What the types of a call's operands become (Call::operator[]). Narrow floats are computed in F32
// and rounded once at the end, as PyTorch does, unless the formula has a single operation.
enum class Types {
    PLAIN,  // each operand has its own type
    COMMON, // PyTorch's common type
    FLOAT,  // the common type; integers become the default float type
    SINGLE, // as COMMON, without a wider type: one operation rounds once
    SINGLE_FLOAT,
    COMPARE // the common type; results are BOOL
};

class Call
{
  public:
    Call(const torch::jit::Stack &stack, size_t argument_count, Types types);

    size_t count() const
    {
        return count_;
    }
    const c10::IValue &value(size_t index) const
    {
        return stack_[stack_.size() - count_ + index];
    }
    bool has(size_t index) const
    {
        return !value(index).isNone() &&
               !(value(index).isTensor() && !value(index).toTensor().defined());
    }
    const Tensor &tensor(size_t index) const
    {
        return value(index).toTensor();
    }
    // Whether the argument is a Scalar, or a tensor of the processor that holds one.
    bool is_number(size_t index) const;
    double number(size_t index) const;
    double number_or(size_t index, double otherwise) const
    {
        return has(index) ? number(index) : otherwise;
    }
    int64_t integer(size_t index) const
    {
        return value(index).toInt();
    }
    bool flag(size_t index) const
    {
        return value(index).toBool();
    }
    std::vector<int64_t> integers(size_t index) const
    {
        return value(index).toIntVector();
    }
    // A list of exactly `count` numbers from `least` to 2^31 - 1, and one where a single number
    // stands for all. The processor has the messages for others.
    std::vector<int64_t> integers(size_t index, size_t count, int64_t least) const;
    std::vector<int64_t> expanded(size_t index, size_t count, int64_t least) const;
    // Raises where a tensor has another shape: for gradients, which some of the processor's kernels
    // read before they look at the shape.
    void require_shape(size_t index, at::IntArrayRef shape) const
    {
        TORCH_CHECK(tensor(index).sizes() == shape, "expected a tensor of shape ", shape, ", got ",
                    tensor(index).sizes());
    }
    // The type of a `dtype` argument, or another one.
    ScalarType dtype_or(size_t index, ScalarType otherwise) const
    {
        return has(index) ? value(index).toScalarType() : otherwise;
    }
    std::optional<at::Generator> generator(size_t index) const
    {
        return value(index).toOptional<at::Generator>();
    }

    // An operand in the type that Types says; numbers become scalars.
    Array operator[](size_t index) const;
    // An operand in its own type.
    Array plain(size_t index) const
    {
        return array_of(tensor(index));
    }
    Array cast_to(size_t index, hal_type type) const
    {
        return cast(plain(index), type);
    }

    // The common type of the operands, and the one that formulas compute in.
    hal_type common() const
    {
        return type_of(common_);
    }
    hal_type compute_type() const
    {
        return compute_;
    }
    int64_t device() const
    {
        return device_;
    }
    ops_context *context() const
    {
        return context_at(device_);
    }

  private:
    void find_common_type(Types types);

    const torch::jit::Stack &stack_;
    size_t count_;
    ScalarType common_ = ScalarType::Undefined;
    hal_type compute_ = HAL_TYPE_NONE;
    int64_t device_ = -1;
};

using Formula = Results (*)(const Call &);

// How an argument that the operator writes may share memory with its operands in PyTorch. Ours are
// computed before they are written, but a program that relied on that would be wrong elsewhere.
enum class Sharing {
    ANY,
    WHOLE,       // if they are the same elements in the same order
    FIRST_WHOLE, // the first argument so, because it is copied to the result; others as they like
    REST_NONE,   // the first argument so; others not at all
    NONE
};

// A row of a table: the operator's forms, with spaces between them, and how they are computed.
struct Operator {
    const char *forms;
    Types types;
    Formula formula;
    std::optional<Sharing> sharing = std::nullopt; // the table's
};

// Registers a table's forms. Those that this version of PyTorch lacks are left out.
void add_operators(torch::Library &library, const Operator *table, size_t count, Sharing sharing);
template <size_t N>
void add_operators(torch::Library &library, const Operator (&table)[N],
                   Sharing sharing = Sharing::ANY)
{
    add_operators(library, table, N, sharing);
}

// The formula's kernel of a form that operators_hot.cpp registers itself, for the cases that its
// fast path leaves out.
struct SlowPath {
    c10::OperatorHandle op;
    c10::BoxedKernel kernel;
};
const SlowPath &slow_path(const char *form);
// Keeps add_operators from registering a form. Before the tables are added.
bool is_hot(const std::string &form);

} // namespace halyard
