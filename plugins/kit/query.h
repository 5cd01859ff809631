/* The exported symbol of a plugin, and its implementation. */
#ifndef PLUGINS_KIT_QUERY_H
#define PLUGINS_KIT_QUERY_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each plugin defines it, with kit_plugin_query. */
__attribute__((visibility("default"))) const hal_plugin *hal_plugin_query(uint32_t host_abi,
                                                                          const hal_host *host);

/* Passes `host` to set_host and returns the table, completed by its build_id: the linker's number
 * of the object (linker option --build-id), in hexadecimal, or "unknown". Null, and nothing is set,
 * if the host has another major version, or after host->fail if it lacks a function of minor 0, or
 * another copy of hal has the plugin.
 * Threads: one at a time. */
const hal_plugin *kit_plugin_query(hal_plugin *table, uint32_t host_abi, const hal_host *host,
                                   void (*set_host)(const hal_host *host));

#ifdef __cplusplus
}
#endif

#endif
