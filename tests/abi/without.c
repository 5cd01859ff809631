/* A plugin without its optional entry WITHOUT: hal has to do as docs/plugin-abi.md says, and nobody
 * who asks for what is required may notice. */
#include "wrap.h"

__attribute__((visibility("default"))) const hal_plugin *hal_plugin_query(uint32_t host_abi,
                                                                          const hal_host *host);

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    hal_plugin *table = wrap_open(WRAP_TARGET, host_abi, host);
    if (!table || !table->WITHOUT) {
        host->log(HAL_LOG_ERROR, "the plugin inside has no such entry to leave out");
        return NULL;
    }
    table->WITHOUT = NULL;
    return table;
}
