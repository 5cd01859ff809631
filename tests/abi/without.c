/* A plugin without its optional entry WITHOUT, or without the one that TEST_WITHOUT of the
 * environment names: hal has to do as docs/plugin-abi.md says, and nobody who asks for what is
 * required may notice. */
#include "wrap.h"

#include <stdlib.h>
#include <string.h>

/* Whether there was such an entry. */
static bool leave_out(wrap_table *table)
{
#ifdef WITHOUT
    const bool is_there = table->WITHOUT != NULL;
    table->WITHOUT = NULL;
#else
    const char *without = getenv("TEST_WITHOUT");
    bool is_there = false;
#define LEAVE_OUT(extension, entry)                \
    if (without && strcmp(without, #entry) == 0) { \
        is_there = table->entry != NULL;           \
        table->entry = NULL;                       \
    }
    HAL_EXTENSION_ENTRIES(LEAVE_OUT)
#undef LEAVE_OUT
#endif
    return is_there;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
    if (!table || !leave_out(table)) {
        host->log(host, HAL_LOG_ERROR, "the plugin inside has no such entry to leave out");
        return NULL;
    }
    return wrap_plugin(table);
}
