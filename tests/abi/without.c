/* A plugin without its optional entry WITHOUT: hal has to do as docs/plugin-abi.md says, and nobody
 * who asks for what is required may notice. */
#include "wrap.h"

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
    if (!table || !table->WITHOUT) {
        host->log(host, HAL_LOG_ERROR, "the plugin inside has no such entry to leave out");
        return NULL;
    }
    table->WITHOUT = NULL;
    return wrap_plugin(table);
}
