/* Recurrent networks: a layer of LSTM or GRU over a whole sequence, and its gradient, as one kernel
 * each. Weights stay in caches, and steps follow one another without launches.
 *
 * Tensors are of F32 or F64, one type in a call. `h` and `c` of a layer have the state before the
 * first step in front of those after each step: state i is before step i, state i + 1 after it.
 * With `is_reversed` the last step is computed first, and state i + 1 is before step i. All tensors
 * are contiguous except for h0 and c0, which may have any strides.
 *
 * One group computes a row of the batch, one work-item a gate of a hidden value. Each sum of h w is
 * of `hidden` products in order, to which x or the bias is added at the end; in gradients the sums
 * of the gates are added in order. */
#ifndef OPS_RECURRENT_H
#define OPS_RECURRENT_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether one kernel for all steps of a layer with `gates` 4 (LSTM) or 3 (GRU) is expected to be
 * faster than products and elementwise kernels for each step, and can be recorded for few steps.
 * Threads: the queue's. Errors: none. */
HAL_API int ops_recurrent_is_faster(const ops_context *context, uint32_t gates, int64_t batch,
                                    int64_t hidden);

typedef struct ops_lstm_layer {
    uint32_t size; /* of this structure */
    uint32_t is_reversed;
    ops_tensor x;     /* [steps, batch, 4 hidden]: the inputs' part of each gate, with biases */
    ops_tensor h;     /* [steps + 1, batch, hidden] */
    ops_tensor c;     /* [steps + 1, batch, hidden] */
    ops_tensor gates; /* [steps, batch, 4 hidden]: values of the gates, for the gradient */
} ops_lstm_layer;

/* For each step: gates = x + h w in the order in, forget, cell, out; in, forget and out of them by
 * sigmoid and cell by tanh; c' = forget c + in cell; h' = out tanh(c'). `w` [hidden, 4 hidden] are
 * the weights of h, transposed from PyTorch's; h0 and c0 [batch, hidden]. Writes layer->h,
 * layer->c and layer->gates.
 * Source: S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997; one kernel for all steps:
 * G. Diamos et al., "Persistent RNNs", 2016.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes; UNSUPPORTED where the gates of
 * all hidden values are more than the work-items of a group, loops are longer than the device
 * allows, or it has fewer than 9 bindings; those of kernels and dispatches. */
HAL_API hal_status ops_lstm(ops_context *context, const ops_tensor *w, const ops_tensor *h0,
                            const ops_tensor *c0, HAL_OUT const ops_lstm_layer *layer);

/* The gradients of x to gx [steps, batch, 4 hidden], of h0 and c0 to gh0 and gc0 [batch, hidden],
 * from those of the h of each step, gh [steps, batch, hidden], and of the last h and c, last_h and
 * last_c [batch, hidden]; null is zero. `w` [4 hidden, hidden] is in PyTorch's order. Reads
 * layer->c and layer->gates. Gradients of the weights are products with gx.
 * Threads, Errors: as ops_lstm. */
HAL_API hal_status ops_lstm_gradient(ops_context *context, const ops_tensor *w,
                                     const ops_tensor *gh, const ops_tensor *last_h,
                                     const ops_tensor *last_c, const ops_lstm_layer *layer,
                                     HAL_OUT const ops_tensor *gx, HAL_OUT const ops_tensor *gh0,
                                     HAL_OUT const ops_tensor *gc0);

typedef struct ops_gru_layer {
    uint32_t size; /* of this structure */
    uint32_t is_reversed;
    ops_tensor x;     /* [steps, batch, 3 hidden]: the inputs' part of each gate, with its bias */
    ops_tensor h;     /* [steps + 1, batch, hidden] */
    ops_tensor gates; /* [steps, batch, 4 hidden]: for the gradient */
} ops_gru_layer;

/* For each step, with s = h w + bias: gates reset = sigmoid(x + s), update = sigmoid(x + s), new =
 * tanh(x + reset s); h' = new + update (h - new). `w` [hidden, 3 hidden] are the weights of h,
 * transposed from PyTorch's; `bias` [3 hidden] or null; h0 [batch, hidden]. Writes layer->h and
 * layer->gates.
 * Source: K. Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014, with
 * the reset after the product, as PyTorch has it.
 * Threads, Errors: as ops_lstm. */
HAL_API hal_status ops_gru(ops_context *context, const ops_tensor *w, const ops_tensor *bias,
                           const ops_tensor *h0, HAL_OUT const ops_gru_layer *layer);

/* The gradients of x to gx and of s to gs [steps, batch, 3 hidden], and of h0 to gh0
 * [batch, hidden], from `gh` and `last_h` as in ops_lstm_gradient. `w` [3 hidden, hidden] is in
 * PyTorch's order. Reads layer->h and layer->gates. Gradients of the weights of h and of their bias
 * follow from gs.
 * Threads, Errors: as ops_lstm. */
HAL_API hal_status ops_gru_gradient(ops_context *context, const ops_tensor *w, const ops_tensor *gh,
                                    const ops_tensor *last_h, const ops_gru_layer *layer,
                                    HAL_OUT const ops_tensor *gx, HAL_OUT const ops_tensor *gs,
                                    HAL_OUT const ops_tensor *gh0);

#ifdef __cplusplus
}
#endif
#endif
