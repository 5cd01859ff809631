// A layer of a recurrent network over a whole sequence, in one direction, and its gradients. One
// product makes the inputs' part of all time steps, and one each of the weights' gradients.
// operators_recurrent.cpp makes PyTorch's operators of it. All functions are called under the lock.
#pragma once

#include <vector>

#include "array.h"
#include "runtime.h"

namespace halyard
{

enum class CellKind { LSTM, GRU, TANH, RELU };

// Arrays of F32 or F64, of `steps` time steps, a batch, inputs and hidden values:
// x [steps, batch, inputs], h0 and c0 [batch, hidden], weights [gates * hidden, inputs] or
// [gates * hidden, hidden], and biases [gates * hidden] or empty Arrays.
struct RecurrentLayer {
    CellKind kind;
    int64_t device;
    bool is_reversed; // from the last time step to the first
    Array x, h0, c0, w_ih, w_hh, b_ih, b_hh;

    int64_t steps() const
    {
        return x.length(0);
    }
    int64_t batch() const
    {
        return x.length(1);
    }
    int64_t inputs() const
    {
        return x.length(2);
    }
    int64_t hidden() const
    {
        return h0.length(1);
    }
    int64_t gates() const
    {
        return kind == CellKind::LSTM ? 4 : kind == CellKind::GRU ? 3 : 1;
    }
    // The time step that is computed as number `index`.
    int64_t step_at(int64_t index) const
    {
        return is_reversed ? steps() - 1 - index : index;
    }
};

// Results, and what the gradients need of each step. `states` [steps + 1, batch, hidden] has the
// state before the first step in front, of reversed layers at the end; empty for a single step.
struct RecurrentTrace {
    Array states;
    Array last_h, last_c;             // after the last step
    Array inputs_part;                // [steps, batch, gates * hidden]: x W^T + b
    std::vector<Array> gates, hidden; // by step: sums before the functions; of GRU's hidden part
    std::vector<Array> h, c;          // by step, after it; c of LSTM
    // Of a layer that one kernel computed (ops/recurrent.h), which has no arrays by step.
    Array all_c, all_gates;
};

// The values of all time steps: [steps, batch, hidden].
Array outputs_of(const RecurrentLayer &layer, const RecurrentTrace &trace);
RecurrentTrace recurrent_forward(const RecurrentLayer &layer);

// [1, count, 1]: which of `count` gates is number `gate`.
Array gate_mask(int64_t device, int64_t count, int64_t gate);

struct RecurrentGradients {
    Array x, h0, c0, w_ih, w_hh, b_ih, b_hh;
};
// Of the outputs [steps, batch, hidden], of the last h and of the last c; empty Arrays are zeros.
// Gradients of x, h0 and c0 are made where they are wanted.
RecurrentGradients recurrent_backward(const RecurrentLayer &layer, const RecurrentTrace &trace,
                                      const Array &y, const Array &last_h, const Array &last_c,
                                      bool wants_x, bool wants_h0);

} // namespace halyard
