/* Gradients of convolutions by the weights, of copied windows and their products, or where windows
 * need no copy, element by element of the window. */
#ifndef OPS_SRC_COMPOSED_CONVOLUTION_WEIGHTS_H
#define OPS_SRC_COMPOSED_CONVOLUTION_WEIGHTS_H

#include "convolution.h"

/* Of x without padding: [groups O, C, window]. There are images and results. */
ops_array *ops_convolution_weights(const ops_convolution_form *form, ops_array *x, ops_array *dy);

#endif
