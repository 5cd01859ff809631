/* The form of an attention kernel: everything that it is compiled for. Lengths, strides and the
 * scale are scalars of the dispatch. */
#ifndef OPS_SRC_ATTENTION_FORM_H
#define OPS_SRC_ATTENTION_FORM_H

#include "tensor/context.h"

/* The tensors of a kernel and the numbers of their sides. */
enum {
    OPS_ATTENTION_Q,
    OPS_ATTENTION_K,
    OPS_ATTENTION_V,
    OPS_ATTENTION_Y,
    OPS_ATTENTION_MASK,
    OPS_ATTENTION_DY,
    OPS_ATTENTION_DQ,
    OPS_ATTENTION_DK,
    OPS_ATTENTION_DV,
    OPS_ATTENTION_NORM,  /* of each query: greatest score and logarithm of the sum */
    OPS_ATTENTION_DELTA, /* of each query: the sum of dy y */
    OPS_ATTENTION_SIDES
};

typedef enum ops_attention_kind {
    OPS_ATTENTION_FORWARD,    /* y */
    OPS_ATTENTION_BY_QUERIES, /* dq and the statistics of each query */
    OPS_ATTENTION_BY_KEYS     /* dk and dv */
} ops_attention_kind;

/* How 2^x or e^x of scores is computed. */
typedef enum ops_attention_power {
    OPS_ATTENTION_EXP,        /* e^x by the IR's function */
    OPS_ATTENTION_EXP_BELOW,  /* e^x by ops_exp_below */
    OPS_ATTENTION_EXP_NARROW, /* the same, for narrow results */
    OPS_ATTENTION_EXP2,       /* 2^x by the device's fast function */
} ops_attention_power;

OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_attention_form {
    hal_type type, mask_type; /* of the tensors; NONE: no mask */
    uint16_t d, e;            /* head sizes, rounded up to what the kernel handles */
    uint16_t rows, keys;      /* of a tile of scores */
    uint8_t kind, power;
    uint8_t causal;
    uint8_t index64;
    uint8_t fused;      /* multiply and add are one operation; else each rounds */
    uint8_t matrix;     /* by matrix units, else by single products */
    uint8_t vectors;    /* with matrix units: inputs are read by 16 bytes, else by elements */
    uint8_t side_lanes; /* plain: the group has side_lanes * side_lanes work-items */
    uint8_t row_tiles;  /* with matrix units: of 16 rows, of a subgroup */
    uint8_t subgroups;  /* with matrix units */
    uint8_t stages;     /* of the tiles that the loop reads: 1 or 2 */
    uint8_t keeps_rows; /* with matrix units: the rows' first operand is kept in registers */
    uint8_t slots[OPS_ATTENTION_SIDES];
    uint8_t has_dk, has_dv; /* by keys */
    uint8_t reserved[3];    /* 0 */
} ops_attention_form;
OPS_KEY_STRUCTURES_END

#endif
