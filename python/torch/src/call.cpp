#include "call.h"

#include "gradient_check.h"

#include <algorithm>
#include <map>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/item.h>

namespace halyard
{
namespace
{

// Integers beyond this are not exact in the doubles that scalars are passed as.
constexpr double EXACT_INTEGERS = 9007199254740992.0;

bool is_number_on_processor(const Tensor &tensor)
{
    return tensor.defined() && tensor.dim() == 0 && tensor.is_cpu();
}

double to_number(const at::Scalar &scalar)
{
    if (scalar.isComplex()) {
        throw Unsupported("a complex number");
    }
    const double number = scalar.toDouble();
    if (scalar.isIntegral(false) && (number > EXACT_INTEGERS || number < -EXACT_INTEGERS)) {
        throw Unsupported("an integer beyond 2^53 as a scalar");
    }
    return number;
}

hal_type wider(hal_type type)
{
    return hal_type_is_narrow_float(type) ? (hal_type)HAL_TYPE_F32 : type;
}

} // namespace

Call::Call(const torch::jit::Stack &stack, size_t argument_count, Types types)
    : stack_(stack), count_(argument_count)
{
    for (size_t i = 0; i < count_ && device_ < 0; i++) {
        if (value(i).isTensor() && tensor(i).defined() && is_ours(tensor(i))) {
            device_ = tensor(i).device().index();
        } else if (value(i).isTensorList()) {
            for (const Tensor &element : value(i).toTensorVector()) {
                if (is_ours(element)) {
                    device_ = element.device().index();
                }
            }
        }
    }
    device_ = device_ < 0 ? current_device() : device_;
    if (types != Types::PLAIN) {
        find_common_type(types);
    }
}

void Call::find_common_type(Types types)
{
    at::native::ResultTypeState state;
    for (size_t i = 0; i < count_; i++) {
        const c10::IValue &argument = value(i);
        if (argument.isTensor() && argument.toTensor().defined()) {
            state = at::native::update_result_type_state(argument.toTensor(), state);
        } else if (i < 2 && argument.isScalar()) { // an operand; later ones are factors
            state = at::native::update_result_type_state(argument.toScalar(), state);
        }
    }
    common_ = at::native::result_type(state);
    if ((types == Types::FLOAT || types == Types::SINGLE_FLOAT) &&
        c10::isIntegralType(common_, true)) {
        common_ = c10::typeMetaToScalarType(c10::get_default_dtype());
    }
    if (common() == HAL_TYPE_NONE) {
        throw Unsupported("a type that Halyard lacks");
    }
    compute_ = types == Types::COMMON || types == Types::FLOAT ? wider(common()) : common();
    if (types == Types::COMPARE && compute_ == HAL_TYPE_BOOL) {
        compute_ = HAL_TYPE_I32;
    }
}

std::vector<int64_t> Call::integers(size_t index, size_t count, int64_t least) const
{
    std::vector<int64_t> list = integers(index);
    bool fits = list.size() == count;
    for (const int64_t number : list) {
        fits = fits && number >= least && number <= INT32_MAX;
    }
    if (!fits) {
        throw Unsupported("numbers that PyTorch refuses");
    }
    return list;
}

std::vector<int64_t> Call::expanded(size_t index, size_t count, int64_t least) const
{
    const bool is_single = integers(index).size() == 1;
    std::vector<int64_t> list = integers(index, is_single ? 1 : count, least);
    list.resize(count, list[0]);
    return list;
}

bool Call::is_number(size_t index) const
{
    return value(index).isScalar() ||
           (value(index).isTensor() && is_number_on_processor(tensor(index)));
}

double Call::number(size_t index) const
{
    const c10::IValue &argument = value(index);
    return to_number(argument.isTensor() ? argument.toTensor().item() : argument.toScalar());
}

Array Call::operator[](size_t index) const
{
    if (is_number(index)) {
        return scalar(context(), compute_, number(index));
    }
    return cast(plain(index), compute_);
}

namespace
{

// How the forms of an operator differ: which arguments they write.
struct Form {
    c10::SmallVector<int, 3> written; // the argument that receives a result
    size_t argument_count = 0;
    size_t aliased = 0;  // the number of results that are written arguments
    bool is_out = false; // written arguments are resized; otherwise the operation is in place
};

Form form_of(const c10::FunctionSchema &schema)
{
    Form form;
    form.argument_count = schema.arguments().size();
    for (size_t i = 0; i < form.argument_count; i++) {
        const c10::Argument &argument = schema.arguments()[i];
        if (argument.alias_info() && argument.alias_info()->isWrite()) {
            form.written.push_back((int)i);
            form.is_out |= argument.is_out();
        }
    }
    for (const c10::Argument &result : schema.returns()) {
        form.aliased += result.alias_info() != nullptr;
    }
    return form;
}

at::DimVector shape_of(const Array &array)
{
    at::DimVector shape;
    for (int64_t i = 0; i < array.rank(); i++) {
        shape.push_back(array.length(i));
    }
    return shape;
}

struct Kernel final : c10::OperatorKernel {
    Formula formula;
    Types types;
    Form form;
    Sharing sharing;
    ShapeRule shape_rule; // or null

    Kernel(const Operator &row, const c10::FunctionSchema &schema, Sharing otherwise)
        : formula(row.formula), types(row.types), form(form_of(schema)),
          sharing(row.sharing.value_or(otherwise)), shape_rule(shape_rule_of(schema.name()))
    {
    }

    bool is_written(size_t index) const
    {
        return std::find(form.written.begin(), form.written.end(), (int)index) !=
               form.written.end();
    }

    Sharing sharing_of(const Call &c, size_t index, const Tensor &written) const
    {
        switch (sharing) {
        case Sharing::FIRST_WHOLE: // one that is broadcast is not looked at
            return index == 0 && c.value(0).isTensor() && c.tensor(0).sizes() == written.sizes()
                       ? Sharing::WHOLE
                       : Sharing::ANY;
        case Sharing::REST_NONE:
            return index == 0 ? Sharing::WHOLE : Sharing::NONE;
        default:
            return sharing;
        }
    }

    void check_operand(const Tensor &written, const Tensor &operand, Sharing allowed) const
    {
        if (!operand.defined() || !is_ours(operand)) {
            return;
        }
        if (allowed == Sharing::NONE) {
            at::assert_no_overlap(written, operand);
        } else {
            at::assert_no_partial_overlap(written, operand);
        }
    }

    void check_overlap(const Call &c, const Tensor &written) const
    {
        for (size_t i = 0; i < c.count(); i++) {
            const c10::IValue &value = c.value(i);
            const Sharing allowed = sharing_of(c, i, written);
            if (is_written(i) || allowed == Sharing::ANY) {
                continue;
            }
            if (value.isTensor()) {
                check_operand(written, value.toTensor(), allowed);
            } else if (value.isTensorList()) {
                for (const Tensor &operand : value.toTensorVector()) {
                    check_operand(written, operand, allowed);
                }
            }
        }
    }

    // Before any of the results is resized or written.
    void check_results(const Call &c) const
    {
        for (const int index : form.written) {
            if (!c.value((size_t)index).isTensor()) {
                continue; // lists of optimizers, which PyTorch does not test
            }
            const Tensor &written = c.tensor((size_t)index);
            if (form.is_out) {
                at::assert_no_internal_overlap(written);
            }
            check_overlap(c, written);
        }
    }

    void write_result(const Tensor &target, Array array) const
    {
        const ScalarType type = scalar_type_of(array.type());
        TORCH_CHECK(c10::canCast(type, target.scalar_type()), "result type ", type,
                    " can't be cast to the desired output type ", target.scalar_type());
        const at::DimVector shape = shape_of(array);
        if (form.is_out) {
            at::native::resize_output(target, shape);
        } else {
            TORCH_CHECK(target.sizes() == at::IntArrayRef(shape), "output with shape ",
                        target.sizes(), " doesn't match the broadcast shape ",
                        at::IntArrayRef(shape));
        }
        assign(target, std::move(array));
    }

    Tensor result_of(const Call &c, Array array, int written) const
    {
        if (written >= 0) {
            const Tensor target = c.tensor((size_t)written);
            write_result(target, std::move(array));
            return target;
        }
        return array ? tensor_of(std::move(array), c.device()) : Tensor();
    }

    c10::SmallVector<Tensor, 3> compute(const c10::OperatorHandle &op,
                                        torch::jit::Stack &stack) const
    {
        Lock lock;
        const Call call(stack, form.argument_count, types);
        if (shape_rule) {
            shape_rule(Operands(call, op.schema()));
        }
        check_results(call);
        Results results = formula(call);
        c10::SmallVector<Tensor, 3> tensors;
        for (size_t i = 0; i < results.size(); i++) {
            Array &array = results[i];
            if (array && call.compute_type() == array.type() &&
                call.compute_type() != HAL_TYPE_NONE && types != Types::COMPARE) {
                array = cast(array, call.common());
            }
            const int written = i < form.aliased ? form.written[i] : -1;
            tensors.push_back(result_of(call, std::move(array), written));
        }
        return tensors;
    }

    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack)
    {
        std::string reason;
        try {
            c10::SmallVector<Tensor, 3> tensors = compute(op, *stack);
            torch::jit::drop(*stack, form.argument_count);
            for (Tensor &tensor : tensors) {
                stack->emplace_back(std::move(tensor));
            }
            return;
        } catch (const Unsupported &unsupported) {
            reason = unsupported.reason;
        }
        fall_back(op, stack, reason);
    }
};

} // namespace

namespace
{

// In a function, because tables are added while statics are initialised.
std::map<std::string, SlowPath> &slow_paths()
{
    static auto *paths = new std::map<std::string, SlowPath>;
    return *paths;
}

void add_form(torch::Library &library, const Operator &row, const std::string &name,
              Sharing otherwise)
{
    const size_t dot = std::min(name.find('.'), name.size());
    const std::string overload = dot < name.size() ? name.substr(dot + 1) : "";
    const auto op =
        c10::Dispatcher::singleton().findSchema({"aten::" + name.substr(0, dot), overload});
    if (!op) {
        return;
    }
    auto kernel = std::make_unique<Kernel>(row, op->schema(), otherwise);
    if (is_hot(name)) {
        slow_paths().emplace(name,
                             SlowPath{*op, c10::BoxedKernel::makeFromFunctor(std::move(kernel))});
    } else {
        library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
    }
}

} // namespace

const SlowPath &slow_path(const char *form)
{
    return slow_paths().at(form);
}

void add_operators(torch::Library &library, const Operator *table, size_t count, Sharing sharing)
{
    for (size_t i = 0; i < count; i++) {
        const std::string forms = table[i].forms;
        for (size_t begin = 0; begin < forms.size();) {
            const size_t end = std::min(forms.find(' ', begin), forms.size());
            add_form(library, table[i], forms.substr(begin, end - begin), sharing);
            begin = end + 1;
        }
    }
}

} // namespace halyard
