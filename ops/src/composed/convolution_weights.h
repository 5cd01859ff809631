/* Gradients of convolutions by the weights, of copied windows and their products, or where windows
 * need no copy, element by element of the window. */
#ifndef OPS_SRC_COMPOSED_CONVOLUTION_WEIGHTS_H
#define OPS_SRC_COMPOSED_CONVOLUTION_WEIGHTS_H

#include "convolution.h"

/* Whether one kernel sums the products of x and dy where these are, as groups have few results. */
bool ops_convolution_weights_at_once(const ops_convolution_form *form, const ops_array *x);

/* Of x without padding: [groups O, C, window]. There are images and results. */
ops_array *ops_convolution_weights(const ops_convolution_form *form, ops_array *x, ops_array *dy);

#endif
