#include "recurrent.h"

#include <algorithm>
#include <array>
#include <map>

#include <ATen/core/Tensor.h>

namespace halyard
{
namespace
{

using Shape = at::DimVector;

Array concatenate(int64_t axis, const std::vector<Array> &parts)
{
    std::vector<ops_array *> arrays(parts.begin(), parts.end());
    return Array(ops_array_concatenate((int32_t)axis, arrays.data(), (uint32_t)arrays.size()));
}

// Without a submission: a layer has many steps.
void evaluate(std::initializer_list<const Array *> arrays)
{
    ops_array *list[4];
    uint32_t count = 0;
    for (const Array *array : arrays) {
        list[count++] = *array;
    }
    if (ops_array_record(list, count) != HAL_OK) {
        throw Unsupported(hal_status_message());
    }
}

// Step t of [steps, ...], without the axis.
Array step_of(const Array &x, int64_t t)
{
    return reshape(slice(x, 0, t, 1), Shape{x.length(1), x.length(2)});
}

// x [batch, hidden] for each gate: [batch, gates, hidden]. A view of x whatever its strides are.
Array repeated(const RecurrentLayer &l, const Array &x)
{
    return transpose(broadcast(x, Shape{l.gates(), l.batch(), l.hidden()}), 0, 1);
}

// Gate `index` of x [batch, gates * hidden], for each gate.
Array gate_of(const RecurrentLayer &l, const Array &x, int64_t index)
{
    return repeated(l, slice(x, 1, index * l.hidden(), l.hidden()));
}

Array product_by_transposed(const Array &a, const Array &b)
{
    return matmul(a, transpose(b, 0, 1));
}

Array sum_of_rows(const Array &x)
{
    return reduce(OPS_REDUCE_SUM, x, 0, false);
}

// x + y where both exist.
Array sum_of(const Array &x, const Array &y)
{
    return !x ? y : !y ? x : x + y;
}

// ---- Forward ----

// [steps, batch, gates * hidden]: the part of the inputs, with those biases that are added to it.
Array inputs_part(const RecurrentLayer &l)
{
    const Shape rows{l.steps() * l.batch(), l.inputs()};
    Array part = product_by_transposed(reshape(l.x, rows), l.w_ih);
    part = sum_of(part, l.b_ih);
    part = l.kind == CellKind::GRU ? part : sum_of(part, l.b_hh); // GRU's is of the hidden part
    return reshape(part, Shape{l.steps(), l.batch(), l.gates() * l.hidden()});
}

void lstm_step(const RecurrentLayer &l, RecurrentTrace &t, const Array &x, Array &h)
{
    const int64_t width = l.hidden();
    const Shape shape{l.batch(), width};
    const Array sums = product_by_transposed(h, l.w_hh) + x;
    const auto gate = [&](int64_t k) { return slice(sums, 1, k * width, width); };
    const Array c =
        sigmoid(gate(1)) * (t.c.empty() ? l.c0 : t.c.back()) + sigmoid(gate(0)) * tanh_of(gate(2));
    h = sigmoid(gate(3)) * tanh_of(c);
    t.gates.push_back(sums);
    t.c.push_back(c);
    evaluate({&h, &c});
}

void gru_step(const RecurrentLayer &l, RecurrentTrace &t, const Array &x, Array &h)
{
    const int64_t width = l.hidden();
    Array sums = product_by_transposed(h, l.w_hh);
    sums = l.b_hh ? sums + l.b_hh : sums;
    const auto part = [&](const Array &a, int64_t k) { return slice(a, 1, k * width, width); };
    const Array r = sigmoid(part(x, 0) + part(sums, 0)), z = sigmoid(part(x, 1) + part(sums, 1));
    const Array n = tanh_of(part(x, 2) + r * part(sums, 2));
    h = n + z * (h - n);
    t.hidden.push_back(sums);
    evaluate({&h}); // so that views of the sums are no copies
}

// ---- One kernel for all steps ----

// Memory for `shape`, as an array and as what the kernels take.
struct Memory {
    Array array;
    ops_tensor tensor;
};

Memory new_memory(const RecurrentLayer &l, const Shape &shape)
{
    Memory memory;
    ops_context *context = l.x.context();
    ops_tensor owned;
    check(ops_tensor_create(context, l.x.type(), (uint32_t)shape.size(), shape.data(), &owned));
    memory.tensor = owned;
    ops_array *array = ops_array_from_tensor(context, &owned);
    ops_tensor_release(&owned); // the array holds the buffer
    memory.array = Array(array);
    return memory;
}

// An array's memory; a copy of it in row-major order where it has gaps or another order.
Memory memory_of(const Array &x, bool is_dense = true)
{
    Memory memory{x, {}};
    check(ops_array_get_tensor(x, &memory.tensor));
    if (is_dense && !ops_tensor_is_contiguous(&memory.tensor)) {
        memory.array = Array(ops_array_copy(x));
        check(ops_array_get_tensor(memory.array, &memory.tensor));
    }
    return memory;
}

bool takes_one_kernel(const RecurrentLayer &l)
{
    // A single step's product and cell are as many kernels, and need no copy of the weights.
    const bool is_wide = l.x.type() == HAL_TYPE_F32 || l.x.type() == HAL_TYPE_F64;
    return is_wide && l.gates() > 1 && l.steps() > 1 && !device_at(l.device).records_graph &&
           ops_recurrent_is_faster(l.x.context(), (uint32_t)l.gates(), l.batch(), l.hidden());
}

ops_lstm_layer lstm_layer(const RecurrentLayer &l, const Memory &c, const Memory &gates)
{
    ops_lstm_layer layer{};
    layer.size = sizeof layer;
    layer.is_reversed = l.is_reversed;
    layer.c = c.tensor;
    layer.gates = gates.tensor;
    return layer;
}

ops_gru_layer gru_layer(const RecurrentLayer &l, const Memory &h, const Memory &gates)
{
    ops_gru_layer layer{};
    layer.size = sizeof layer;
    layer.is_reversed = l.is_reversed;
    layer.h = h.tensor;
    layer.gates = gates.tensor;
    return layer;
}

RecurrentTrace forward_by_one_kernel(const RecurrentLayer &l)
{
    const int64_t steps = l.steps(), batch = l.batch(), width = l.hidden();
    const Shape states{steps + 1, batch, width};
    const Memory x = memory_of(inputs_part(l)), w = memory_of(transpose(l.w_hh, 0, 1));
    const Memory h0 = memory_of(l.h0, false), h = new_memory(l, states);
    const Memory gates = new_memory(l, Shape{steps, batch, 4 * width});
    const int64_t last = l.is_reversed ? 0 : steps;
    RecurrentTrace t;
    t.states = h.array;
    t.all_gates = gates.array;
    if (l.kind == CellKind::LSTM) {
        const Memory c0 = memory_of(l.c0, false), c = new_memory(l, states);
        ops_lstm_layer layer = lstm_layer(l, c, gates);
        layer.x = x.tensor;
        layer.h = h.tensor;
        check(ops_lstm(l.x.context(), &w.tensor, &h0.tensor, &c0.tensor, &layer));
        t.all_c = c.array;
        t.last_c = step_of(t.all_c, last);
    } else {
        const Memory bias = l.b_hh ? memory_of(l.b_hh) : Memory();
        ops_gru_layer layer = gru_layer(l, h, gates);
        layer.x = x.tensor;
        check(
            ops_gru(l.x.context(), &w.tensor, l.b_hh ? &bias.tensor : nullptr, &h0.tensor, &layer));
    }
    t.last_h = step_of(t.states, last);
    return t;
}

Array joined_states(const RecurrentLayer &l, const std::vector<Array> &h)
{
    const Shape state{1, l.batch(), l.hidden()};
    std::vector<Array> states{reshape(l.h0, state)};
    for (const Array &after : h) {
        states.push_back(reshape(after, state));
    }
    if (l.is_reversed) {
        std::reverse(states.begin(), states.end());
    }
    return concatenate(0, states);
}

} // namespace

Array outputs_of(const RecurrentLayer &layer, const RecurrentTrace &trace)
{
    return trace.states ? slice(trace.states, 0, layer.is_reversed ? 0 : 1, layer.steps())
                        : reshape(trace.last_h, Shape{1, layer.batch(), layer.hidden()});
}

RecurrentTrace recurrent_forward(const RecurrentLayer &l)
{
    if (takes_one_kernel(l)) {
        return forward_by_one_kernel(l);
    }
    RecurrentTrace t;
    t.inputs_part = inputs_part(l);
    Array h = l.h0;
    for (int64_t i = 0; i < l.steps(); i++) {
        const Array x = step_of(t.inputs_part, l.step_at(i));
        if (l.kind == CellKind::LSTM) {
            lstm_step(l, t, x, h);
        } else if (l.kind == CellKind::GRU) {
            gru_step(l, t, x, h);
        } else {
            const Array sums = product_by_transposed(h, l.w_hh) + x;
            h = l.kind == CellKind::TANH ? tanh_of(sums) : unary(OPS_RELU, sums);
        }
        t.h.push_back(h);
    }
    if (l.steps() > 1) {
        t.states = joined_states(l, t.h);
    }
    t.last_h = h;
    t.last_c = t.c.empty() ? Array() : t.c.back();
    return t;
}

// ---- Backward ----

Array gate_mask(int64_t index, int64_t count, int64_t gate)
{
    // As long as the devices: making one again takes as long as a step of a small cell does.
    static auto &kept = *new std::map<std::array<int64_t, 3>, Array>;
    const std::array<int64_t, 3> key{index, count, gate};
    const auto found = kept.find(key);
    if (found != kept.end()) {
        return found->second;
    }
    Device &device = device_at(index);
    const Array line(ops_array_iota(device.context, HAL_TYPE_I32, count, 0, 1));
    const Array mask = equal(reshape(line, Shape{1, count, 1}), (double)gate);
    if (!device.records_graph) { // what a graph computes has its values in launches alone
        evaluate({&mask});
        check(hal_queue_wait(device.queue, HAL_WAIT_FOREVER));
        kept.emplace(key, mask);
    }
    return mask;
}

namespace
{

// What goes back from a step to the one before it. `sums` [batch, gates * hidden] is the gradient of the
// sums of the hidden part, `carry` [batch, gates, hidden] that of c or h by its direct way, repeated for
// each gate so that one kernel makes both.
struct StepGradient {
    Array sums, carry;
    Array inputs; // of the inputs' part, where it is another one
};

// gh [batch, hidden] is the gradient of h after the step, `carry` that of c. The new carry is made where
// something takes it.
StepGradient lstm_step_back(const RecurrentLayer &l, const RecurrentTrace &t, int64_t i,
                            const Array &gh, const Array &carry, bool wants_carry)
{
    const Shape all{l.batch(), 4, l.hidden()};
    const auto gate = [&](int64_t k) { return gate_of(l, t.gates[(size_t)i], k); };
    const auto is_gate = [&](int64_t k) { return gate_mask(l.device, 4, k); };
    const Array one = scalar_like(l.x, 1), own = reshape(t.gates[(size_t)i], all);
    const Array y = sigmoid(own), squashed = tanh_of(repeated(l, t.c[(size_t)i]));
    const Array slope = where(is_gate(2), one - square(tanh_of(own)), y - square(y));
    const Array before = repeated(l, i ? t.c[(size_t)i - 1] : l.c0), h = repeated(l, gh);
    const Array c = sum_of(h * sigmoid(gate(3)) * (one - square(squashed)), carry);
    const Array last = where(is_gate(2), c * sigmoid(gate(0)), h * squashed);
    const Array later = where(is_gate(1), c * before, last);
    const Array sums = slope * where(is_gate(0), c * tanh_of(gate(2)), later);
    StepGradient g{reshape(sums, Shape{l.batch(), 4 * l.hidden()}), Array(), Array()};
    if (wants_carry) {
        const Array of_c = c * y;
        evaluate({&sums, &of_c});
        g.carry = broadcast(slice(of_c, 1, 1, 1), all); // what the forget gate, number 1, has
    }
    return g;
}

StepGradient gru_step_back(const RecurrentLayer &l, const RecurrentTrace &t, int64_t i,
                           const Array &gh, const Array &carry, bool wants_carry)
{
    const int64_t width = l.hidden();
    const auto gate = [&](const Array &a, int64_t k) { return gate_of(l, a, k); };
    const Array x = step_of(t.inputs_part, l.step_at(i)), &y = t.hidden[(size_t)i];
    const Array before = repeated(l, i ? t.h[(size_t)i - 1] : l.h0);
    const Array r = sigmoid(gate(x, 0) + gate(y, 0)), z = sigmoid(gate(x, 1) + gate(y, 1));
    const Array hn = gate(y, 2), n = tanh_of(gate(x, 2) + r * hn);
    const Array h = sum_of(repeated(l, gh), carry), one = scalar_like(l.x, 1);
    const Array of_z = h * (before - n) * (z - square(z));
    const Array of_n = h * (one - z) * (one - square(n)), of_r = of_n * hn * (r - square(r));
    const Array first = where(gate_mask(l.device, 3, 0), of_r, of_z);
    const Array is_n = gate_mask(l.device, 3, 2);
    const Array inputs = where(is_n, of_n, first), sums = where(is_n, of_n * r, first);
    const Shape flat{l.batch(), 3 * width};
    StepGradient g{reshape(sums, flat), Array(), reshape(inputs, flat)};
    if (wants_carry) {
        g.carry = h * z;
        evaluate({&sums, &inputs, &g.carry});
    } else {
        evaluate({&sums, &inputs});
    }
    return g;
}

StepGradient simple_step_back(const RecurrentLayer &l, const RecurrentTrace &t, int64_t i,
                              const Array &gh)
{
    const Array &h = t.h[(size_t)i];
    return {l.kind == CellKind::TANH ? gh * (1 - square(h)) : where(greater(h, 0), gh, 0.0),
            Array(), Array()};
}

// The gradient of what a step adds of gate 0 for a carry of all gates: [batch, hidden].
Array carry_of(const RecurrentLayer &l, const Array &carry)
{
    return carry ? reshape(slice(carry, 1, 0, 1), Shape{l.batch(), l.hidden()}) : Array();
}

Array joined(const std::vector<Array> &steps)
{
    return steps.size() == 1 ? steps[0] : concatenate(0, steps);
}

Array in_rows(const Array &x)
{
    return reshape(x, Shape{x.length(0) * x.length(1), x.length(2)});
}

// Gradients of what all steps share, from those of the sums of all steps.
void shared_gradients(const RecurrentLayer &l, const RecurrentTrace &t, const Array &inputs,
                      const Array &hidden, bool wants_x, RecurrentGradients &g)
{
    const Array before =
        t.states ? in_rows(slice(t.states, 0, l.is_reversed ? 1 : 0, l.steps())) : l.h0;
    g.w_ih = matmul(transpose(inputs, 0, 1), in_rows(l.x));
    g.w_hh = matmul(transpose(hidden, 0, 1), before);
    g.b_ih = l.b_ih ? sum_of_rows(inputs) : Array();
    g.b_hh = l.b_hh ? (l.kind == CellKind::GRU ? sum_of_rows(hidden) : g.b_ih) : Array();
    g.x = wants_x ? reshape(matmul(inputs, l.w_ih), Shape{l.steps(), l.batch(), l.inputs()})
                  : Array();
}

RecurrentGradients back_by_one_kernel(const RecurrentLayer &l, const RecurrentTrace &t,
                                      const Array &y, const Array &last_h, const Array &last_c,
                                      bool wants_x)
{
    ops_context *context = l.x.context();
    const Shape state{l.batch(), l.hidden()}, sums{l.steps(), l.batch(), l.gates() * l.hidden()};
    const Memory w = memory_of(l.w_hh), gates = memory_of(t.all_gates);
    const Memory gx = new_memory(l, sums), gh0 = new_memory(l, state);
    Memory optional[3];
    const ops_tensor *tensors[3] = {};
    for (int i = 0; i < 3; i++) {
        const Array &given = i == 0 ? y : i == 1 ? last_h : last_c;
        if (given) {
            optional[i] = memory_of(given);
            tensors[i] = &optional[i].tensor;
        }
    }
    RecurrentGradients g;
    g.h0 = gh0.array;
    const Array inputs = in_rows(gx.array);
    Array hidden = inputs;
    if (l.kind == CellKind::LSTM) {
        const Memory gc0 = new_memory(l, state), c = memory_of(t.all_c);
        const ops_lstm_layer layer = lstm_layer(l, c, gates);
        check(ops_lstm_gradient(context, &w.tensor, tensors[0], tensors[1], tensors[2], &layer,
                                &gx.tensor, &gh0.tensor, &gc0.tensor));
        g.c0 = gc0.array;
    } else {
        const Memory gs = new_memory(l, sums), h = memory_of(t.states);
        const ops_gru_layer layer = gru_layer(l, h, gates);
        check(ops_gru_gradient(context, &w.tensor, tensors[0], tensors[1], &layer, &gx.tensor,
                               &gs.tensor, &gh0.tensor));
        hidden = in_rows(gs.array);
    }
    shared_gradients(l, t, inputs, hidden, wants_x, g);
    return g;
}

} // namespace

RecurrentGradients recurrent_backward(const RecurrentLayer &l, const RecurrentTrace &t,
                                      const Array &y, const Array &last_h, const Array &last_c,
                                      bool wants_x, bool wants_h0)
{
    if (t.all_gates) {
        return back_by_one_kernel(l, t, y, last_h, last_c, wants_x);
    }
    const int64_t width = l.hidden(), count = l.steps();
    const Shape sums_shape{1, l.batch(), l.gates() * width};
    std::vector<Array> sums((size_t)count), inputs((size_t)count);
    StepGradient back;
    if (last_c) {
        back.carry = repeated(l, last_c);
    }
    const Array zeros = scalar(l.x.context(), l.x.type(), 0);
    for (int64_t i = count - 1; i >= 0; i--) {
        const int64_t step = l.step_at(i);
        Array gh = back.sums ? matmul(back.sums, l.w_hh) : last_h;
        gh = y ? sum_of(gh, step_of(y, step)) : gh;
        gh = gh ? gh : broadcast(zeros, Shape{l.batch(), width});
        const bool wants_carry = i > 0 || wants_h0;
        back = l.kind == CellKind::LSTM  ? lstm_step_back(l, t, i, gh, back.carry, wants_carry)
               : l.kind == CellKind::GRU ? gru_step_back(l, t, i, gh, back.carry, wants_carry)
                                         : simple_step_back(l, t, i, gh);
        sums[(size_t)step] = reshape(back.sums, sums_shape);
        inputs[(size_t)step] = back.inputs ? reshape(back.inputs, sums_shape) : Array();
    }
    RecurrentGradients g;
    if (wants_h0) {
        g.h0 = matmul(back.sums, l.w_hh);
        if (l.kind == CellKind::LSTM) {
            g.c0 = carry_of(l, back.carry);
        } else {
            g.h0 = sum_of(g.h0, carry_of(l, back.carry));
        }
    }
    const Array all = in_rows(joined(sums));
    const Array of_inputs = back.inputs ? in_rows(joined(inputs)) : all;
    shared_gradients(l, t, of_inputs, all, wants_x, g);
    return g;
}

} // namespace halyard
