/* A plugin around another one with nothing altered: whoever runs it must not notice. */
#include "wrap.h"

__attribute__((visibility("default"))) const hal_plugin *hal_plugin_query(uint32_t host_abi,
                                                                          const hal_host *host);

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    return wrap_open(WRAP_TARGET, host_abi, host);
}
