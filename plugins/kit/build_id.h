/* The number that the linker gave the plugin's object. */
#ifndef PLUGINS_KIT_BUILD_ID_H
#define PLUGINS_KIT_BUILD_ID_H

#ifdef __cplusplus
extern "C" {
#endif

/* In hexadecimal (linker option --build-id), or "unknown". Threads: one at a time until the first
 * call has returned. */
const char *kit_build_id(void);

#ifdef __cplusplus
}
#endif
#endif
