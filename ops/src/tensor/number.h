/* Floats as text: the only place of the library that prints them. */
#ifndef OPS_SRC_TENSOR_NUMBER_H
#define OPS_SRC_TENSOR_NUMBER_H

enum { OPS_NUMBER_BYTES = 48 };

/* The shortest of six digits for `decimals` below 0. The same in every locale. Returns `text`. */
const char *ops_number_text(char text[OPS_NUMBER_BYTES], double value, int decimals);

/* Text that lives as long as the block. */
#define OPS_NUMBER(value, decimals) \
    ops_number_text((char[OPS_NUMBER_BYTES]){0}, (value), (decimals))

#endif
