/* Floats as text: the only place of the library that prints them. */
#ifndef HAL_SRC_BASE_NUMBER_H
#define HAL_SRC_BASE_NUMBER_H

enum { HAL_NUMBER_BYTES = 48 };

/* The shortest of six digits for `decimals` below 0. The same in every locale. Returns `text`. */
const char *hal_number_text(char text[HAL_NUMBER_BYTES], double value, int decimals);

/* Text that lives as long as the block. */
#define HAL_NUMBER(value, decimals) \
    hal_number_text((char[HAL_NUMBER_BYTES]){0}, (value), (decimals))

#endif
