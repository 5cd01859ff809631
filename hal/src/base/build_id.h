/* The linker's number of a library or program, which changes whenever its code does. Used by
 * core/fingerprint.c. */
#ifndef HAL_SRC_BASE_BUILD_ID_H
#define HAL_SRC_BASE_BUILD_ID_H

#include <stdint.h>

#define HAL_BUILD_ID_BYTES 32u

/* Copies the build id of the loaded library or program that has the address, and returns its
 * length; 0 where there is none, and on systems without ELF files. Threads: any. */
uint32_t hal_build_id_get(const void *address, uint8_t id[HAL_BUILD_ID_BYTES]);

#endif
