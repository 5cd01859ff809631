// Recurrent networks: nn.LSTM, nn.GRU and nn.RNN, whose layers are computed over the whole sequence at
// once (recurrent.h), with one node of autograd for each layer and direction; a cell is a layer of one
// step.
//
// PyTorch's composite operators take over for what this leaves out: other types, projections, packed
// sequences, tensors of function transforms and of compilers, empty tensors, and gradients of
// gradients.
#include <algorithm>

#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_cell_native.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_cell_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_cell_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_cell_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include "cell.h"
#include "recurrent.h"

namespace halyard
{
namespace
{

using at::TensorList;
using torch::autograd::variable_list;

// The operands of a layer, in the order of the node's inputs.
enum Operand { X, H0, C0, W_IH, W_HH, B_IH, B_HH, OPERAND_COUNT };
using Operands = std::array<Tensor, OPERAND_COUNT>;

// What a call of PyTorch's operators has in common.
struct Settings {
    CellKind kind;
    bool has_biases;
    int64_t num_layers;
    double dropout;
    bool is_training, is_bidirectional, is_batch_first;
};

Array optional_array(const Tensor &x)
{
    return x.defined() ? array_of(x) : Array();
}

RecurrentLayer layer_of(CellKind kind, bool is_reversed, const Operands &o)
{
    return {kind,
            o[X].device().index(),
            is_reversed,
            array_of(o[X]),
            array_of(o[H0]),
            optional_array(o[C0]),
            array_of(o[W_IH]),
            array_of(o[W_HH]),
            optional_array(o[B_IH]),
            optional_array(o[B_HH])};
}

std::tuple<Tensor, Tensor, Tensor> by_composite(const Settings &s, const Tensor &x, TensorList hx,
                                                TensorList params)
{
    if (s.kind == CellKind::LSTM) {
        return at::native::lstm(x, hx, params, s.has_biases, s.num_layers, s.dropout, s.is_training,
                                s.is_bidirectional, s.is_batch_first);
    }
    std::tuple<Tensor, Tensor> results;
    switch (s.kind) {
    case CellKind::GRU:
        results = at::native::gru(x, hx[0], params, s.has_biases, s.num_layers, s.dropout,
                                  s.is_training, s.is_bidirectional, s.is_batch_first);
        break;
    case CellKind::TANH:
        results = at::native::rnn_tanh(x, hx[0], params, s.has_biases, s.num_layers, s.dropout,
                                       s.is_training, s.is_bidirectional, s.is_batch_first);
        break;
    default:
        results = at::native::rnn_relu(x, hx[0], params, s.has_biases, s.num_layers, s.dropout,
                                       s.is_training, s.is_bidirectional, s.is_batch_first);
    }
    return {std::get<0>(results), std::get<1>(results), Tensor()};
}

// A layer's node: the gradients of its operands from those of its values, last h and last c.
struct LayerBackward final : torch::autograd::Node {
    CellKind kind;
    bool is_reversed;
    std::array<torch::autograd::SavedVariable, OPERAND_COUNT> saved;
    RecurrentTrace trace; // of arrays, which the lock guards
    bool is_released = false;

    LayerBackward(CellKind kind_, bool is_reversed_) : kind(kind_), is_reversed(is_reversed_)
    {
    }
    ~LayerBackward() override
    {
        Lock lock;
        trace = RecurrentTrace();
    }
    std::string name() const override
    {
        return "HalyardRecurrentBackward";
    }
    void release_variables() override
    {
        for (auto &variable : saved) {
            variable.reset_data();
        }
        Lock lock;
        trace = RecurrentTrace();
        is_released = true;
    }
    variable_list apply(variable_list &&gradients) override;
    variable_list differentiable(const Operands &operands, const variable_list &gradients) const;
};

// The gradients as functions that have gradients: by PyTorch's formulas of each step.
variable_list LayerBackward::differentiable(const Operands &operands,
                                            const variable_list &gradients) const
{
    std::vector<Tensor> params{operands[W_IH], operands[W_HH]}, hx{operands[H0].unsqueeze(0)};
    if (operands[B_IH].defined()) {
        params.insert(params.end(), {operands[B_IH], operands[B_HH]});
    }
    if (operands[C0].defined()) {
        hx.push_back(operands[C0].unsqueeze(0));
    }
    const Settings settings{kind, operands[B_IH].defined(), 1, 0, false, false, false};
    const Tensor x = is_reversed ? operands[X].flip(0) : operands[X];
    const auto [y, h, c] = by_composite(settings, x, hx, params);
    variable_list outputs, inputs, given;
    const auto add_output = [&](const Tensor &output, const Tensor &gradient) {
        if (output.defined() && gradient.defined()) {
            outputs.push_back(output);
            given.push_back(gradient);
        }
    };
    add_output(is_reversed ? y.flip(0) : y, gradients[0]);
    add_output(h, gradients[1].defined() ? gradients[1].unsqueeze(0) : Tensor());
    add_output(c, gradients[2].defined() ? gradients[2].unsqueeze(0) : Tensor());
    std::vector<size_t> places;
    for (size_t i = 0; i < OPERAND_COUNT; i++) {
        if (task_should_compute_output(i) && operands[i].requires_grad()) {
            inputs.push_back(operands[i]);
            places.push_back(i);
        }
    }
    const variable_list found = torch::autograd::grad(outputs, inputs, given, true, true, true);
    variable_list results(OPERAND_COUNT);
    for (size_t i = 0; i < places.size(); i++) {
        results[places[i]] = found[i];
    }
    return results;
}

variable_list LayerBackward::apply(variable_list &&gradients)
{
    TORCH_CHECK(!is_released, torch::autograd::ERR_BACKWARD_TWICE);
    Operands operands;
    for (size_t i = 0; i < OPERAND_COUNT; i++) {
        operands[i] = saved[i].unpack();
    }
    variable_list results(OPERAND_COUNT);
    if (!gradients[0].defined() && !gradients[1].defined() && !gradients[2].defined()) {
        return results;
    }
    if (at::GradMode::is_enabled()) {
        return differentiable(operands, gradients);
    }
    const auto wants = [&](size_t i) { return task_should_compute_output(i); };
    Lock lock;
    const RecurrentLayer layer = layer_of(kind, is_reversed, operands);
    RecurrentGradients g = recurrent_backward(
        layer, trace, optional_array(gradients[0]), optional_array(gradients[1]),
        optional_array(gradients[2]), wants(X), wants(H0) || (kind == CellKind::LSTM && wants(C0)));
    Array *const arrays[] = {&g.x, &g.h0, &g.c0, &g.w_ih, &g.w_hh, &g.b_ih, &g.b_hh};
    for (size_t i = 0; i < OPERAND_COUNT; i++) {
        if (wants(i) && *arrays[i]) {
            results[i] = tensor_of(std::move(*arrays[i]), layer.device);
        }
    }
    return results;
}

// Values [steps, batch, hidden], last h and last c of a layer in one direction.
std::array<Tensor, 3> layer_forward(CellKind kind, bool is_reversed, const Operands &operands)
{
    bool has_gradient = false;
    for (const Tensor &operand : operands) {
        has_gradient |= operand.defined() && operand.requires_grad();
    }
    has_gradient &= at::GradMode::is_enabled();
    std::shared_ptr<LayerBackward> node;
    std::array<Tensor, 3> results;
    {
        Lock lock;
        const RecurrentLayer layer = layer_of(kind, is_reversed, operands);
        RecurrentTrace trace = recurrent_forward(layer);
        results = {tensor_of(outputs_of(layer, trace), layer.device),
                   tensor_of(trace.last_h, layer.device),
                   trace.last_c ? tensor_of(trace.last_c, layer.device) : Tensor()};
        if (has_gradient) {
            node = std::shared_ptr<LayerBackward>(new LayerBackward(kind, is_reversed),
                                                  torch::autograd::deleteNode);
            node->trace = std::move(trace);
        }
    }
    if (node) {
        for (size_t i = 0; i < OPERAND_COUNT; i++) {
            node->saved[i] = torch::autograd::SavedVariable(operands[i], false);
        }
        node->set_next_edges(torch::autograd::collect_next_edges(
            operands[X], operands[H0], operands[C0], operands[W_IH], operands[W_HH], operands[B_IH],
            operands[B_HH]));
        for (const Tensor &result : results) {
            torch::autograd::set_history(result, node);
        }
        if (!results[2].defined()) {
            node->add_input_metadata(torch::autograd::Node::undefined_input());
        }
    }
    return results;
}

// Whether an operand is one of ours without anything around it.
bool is_usual(const Tensor &x, const Tensor &first)
{
    using Key = c10::DispatchKey;
    constexpr c10::DispatchKeySet wrapped({Key::Python, Key::PythonTLSSnapshot, Key::Functionalize,
                                           Key::FuncTorchBatched, Key::FuncTorchGradWrapper,
                                           Key::Conjugate, Key::Negative, Key::ZeroTensor});
    return is_ours(x) && x.device() == first.device() && x.scalar_type() == first.scalar_type() &&
           at::isFloatingType(x.scalar_type()) && x.numel() > 0 && !x.key_set().has_any(wrapped) &&
           x.has_storage() && !torch::autograd::isFwGradDefined(x);
}

bool are_usual(TensorList tensors, const Tensor &first)
{
    return std::all_of(tensors.begin(), tensors.end(),
                       [&](const Tensor &x) { return is_usual(x, first); });
}

// What layers and cells ask for alike. The states have `rank` axes.
bool is_usual_place(CellKind kind, const Tensor &x, TensorList hx, int64_t rank)
{
    const size_t states = kind == CellKind::LSTM ? 2 : 1;
    return x.dim() == rank && is_usual(x, x) && hx.size() == states && are_usual(hx, x) &&
           hx[0].dim() == rank && hx.back().sizes() == hx[0].sizes() &&
           !c10::impl::dispatch_mode_enabled() &&
           !at::autocast::is_autocast_enabled(at::kPrivateUse1);
}

bool is_usual_call(const Settings &s, const Tensor &x, TensorList hx, TensorList params)
{
    const size_t weights = s.has_biases ? 4 : 2, directions = s.is_bidirectional ? 2 : 1;
    return is_usual_place(s.kind, x, hx, 3) && s.num_layers > 0 &&
           params.size() == weights * directions * (size_t)s.num_layers && are_usual(params, x) &&
           hx[0].size(0) == (int64_t)directions * s.num_layers &&
           hx[0].size(1) == x.size(s.is_batch_first ? 0 : 1);
}

// Whether the shapes of a layer's weights fit its input; otherwise PyTorch tells what is wrong.
bool fits(CellKind kind, const Operands &o)
{
    const int64_t gates = kind == CellKind::LSTM ? 4 : kind == CellKind::GRU ? 3 : 1;
    const int64_t width = o[H0].size(1), rows = gates * width;
    const bool has_bias = o[B_IH].defined();
    return o[W_IH].sizes() == IntArrayRef({rows, o[X].size(2)}) &&
           o[W_HH].sizes() == IntArrayRef({rows, width}) &&
           (!has_bias ||
            (o[B_IH].sizes() == IntArrayRef({rows}) && o[B_HH].sizes() == IntArrayRef({rows})));
}

// The operands of number `index` of the layers and directions.
Operands operands_of(const Settings &s, size_t index, const Tensor &x, TensorList hx,
                     TensorList params)
{
    const size_t weights = s.has_biases ? 4 : 2, first = weights * index;
    Operands o;
    o[X] = x;
    o[H0] = hx[0].select(0, (int64_t)index);
    o[C0] = s.kind == CellKind::LSTM ? hx[1].select(0, (int64_t)index) : Tensor();
    for (size_t i = 0; i < weights; i++) {
        o[W_IH + i] = params[first + i];
    }
    return o;
}

Tensor joined(const std::vector<Tensor> &states)
{
    return states.empty()       ? Tensor()
           : states.size() == 1 ? states[0].unsqueeze(0)
                                : at::stack(states, 0);
}

std::vector<Tensor> cast_all(at::ScalarType type, TensorList tensors)
{
    std::vector<Tensor> made;
    for (const Tensor &x : tensors) {
        made.push_back(at::autocast::cached_cast(type, x, at::kPrivateUse1));
    }
    return made;
}

std::tuple<Tensor, Tensor, Tensor> network(const Settings &s, const Tensor &input, TensorList hx,
                                           TensorList params)
{
    if (at::autocast::is_autocast_enabled(at::kPrivateUse1)) { // of cells PyTorch's lists do it
        const c10::impl::ExcludeDispatchKeyGuard cast(c10::DispatchKey::AutocastPrivateUse1);
        const at::ScalarType type = at::autocast::get_autocast_dtype(at::kPrivateUse1);
        return network(s, cast_all(type, input)[0], cast_all(type, hx), cast_all(type, params));
    }
    if (!is_usual_call(s, input, hx, params)) {
        return by_composite(s, input, hx, params);
    }
    const size_t directions = s.is_bidirectional ? 2 : 1;
    Tensor x = s.is_batch_first ? input.transpose(0, 1) : input;
    std::vector<Tensor> last_h, last_c;
    for (int64_t layer = 0; layer < s.num_layers; layer++) {
        std::vector<Tensor> values;
        for (size_t direction = 0; direction < directions; direction++) {
            const size_t index = (size_t)layer * directions + direction;
            const Operands operands = operands_of(s, index, x, hx, params);
            if (!fits(s.kind, operands)) {
                return by_composite(s, input, hx, params);
            }
            auto [y, h, c] = layer_forward(s.kind, direction == 1, operands);
            values.push_back(y);
            last_h.push_back(h);
            if (c.defined()) {
                last_c.push_back(c);
            }
        }
        x = directions == 1 ? values[0] : at::cat(values, 2);
        if (s.dropout != 0 && s.is_training && layer + 1 < s.num_layers) {
            x = at::dropout(x, s.dropout, true);
        }
    }
    return {s.is_batch_first ? x.transpose(0, 1) : x, joined(last_h), joined(last_c)};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor &x, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first)
{
    return network(
        {CellKind::LSTM, has_biases, num_layers, dropout, train, bidirectional, batch_first}, x, hx,
        params);
}

template <CellKind KIND>
std::tuple<Tensor, Tensor> other(const Tensor &x, const Tensor &hx, TensorList params,
                                 bool has_biases, int64_t num_layers, double dropout, bool train,
                                 bool bidirectional, bool batch_first)
{
    const auto [y, h, c] = network(
        {KIND, has_biases, num_layers, dropout, train, bidirectional, batch_first}, x, hx, params);
    return {y, h};
}

// A cell as a layer of one step; nothing where PyTorch's composite operator is to compute it.
std::optional<std::array<Tensor, 3>> cell_step(CellKind kind, const Tensor &x, TensorList hx,
                                               const Tensor &w_ih, const Tensor &w_hh,
                                               const std::optional<Tensor> &b_ih,
                                               const std::optional<Tensor> &b_hh)
{
    Operands o{
        Tensor(), hx[0], hx.back(), w_ih, w_hh, b_ih.value_or(Tensor()), b_hh.value_or(Tensor())};
    const bool has_biases = o[B_IH].defined();
    const std::array<Tensor, 4> params{w_ih, w_hh, o[B_IH], o[B_HH]};
    if (has_biases != o[B_HH].defined() || !is_usual_place(kind, x, hx, 2) ||
        !are_usual(TensorList(params.data(), has_biases ? 4 : 2), x) ||
        hx[0].size(0) != x.size(0)) {
        return {};
    }
    o[X] = x.unsqueeze(0);
    o[C0] = kind == CellKind::LSTM ? hx[1] : Tensor();
    if (!fits(kind, o)) {
        return {};
    }
    return layer_forward(kind, false, o);
}

std::tuple<Tensor, Tensor> lstm_cell(const Tensor &x, TensorList hx, const Tensor &w_ih,
                                     const Tensor &w_hh, const std::optional<Tensor> &b_ih,
                                     const std::optional<Tensor> &b_hh)
{
    TORCH_CHECK(hx.size() == 2, "lstm_cell expects two hidden states");
    const auto step = cell_step(CellKind::LSTM, x, hx, w_ih, w_hh, b_ih, b_hh);
    return step ? std::make_tuple((*step)[1], (*step)[2])
                : at::native::lstm_cell(x, hx, w_ih, w_hh, b_ih, b_hh);
}

template <CellKind KIND, auto COMPOSITE>
Tensor other_cell(const Tensor &x, const Tensor &hx, const Tensor &w_ih, const Tensor &w_hh,
                  const std::optional<Tensor> &b_ih, const std::optional<Tensor> &b_hh)
{
    const auto step = cell_step(KIND, x, hx, w_ih, w_hh, b_ih, b_hh);
    return step ? (*step)[1] : COMPOSITE(x, hx, w_ih, w_hh, b_ih, b_hh);
}

void add_networks(torch::Library &library)
{
    library.impl("lstm.input", lstm);
    library.impl("gru.input", other<CellKind::GRU>);
    library.impl("rnn_tanh.input", other<CellKind::TANH>);
    library.impl("rnn_relu.input", other<CellKind::RELU>);
    library.impl("lstm_cell", lstm_cell);
    library.impl("gru_cell", other_cell<CellKind::GRU, at::native::gru_cell>);
    library.impl("rnn_tanh_cell", other_cell<CellKind::TANH, at::native::rnn_tanh_cell>);
    library.impl("rnn_relu_cell", other_cell<CellKind::RELU, at::native::rnn_relu_cell>);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library)
{
    add_networks(library);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_networks(library);
}

} // namespace
} // namespace halyard
