/* The linker's own number of the object that this code is linked into: hal_plugin.build_id. Needs
 * the linker option --build-id. */
#ifndef KIT_BUILD_ID_H
#define KIT_BUILD_ID_H

/* In hexadecimal; "unknown" where the object has none. A constant string.
 * Threads: one at a time. */
const char *kit_build_id(void);

#endif
