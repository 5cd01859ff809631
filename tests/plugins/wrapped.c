/* A plugin around another one with nothing altered: whoever runs it must not notice. */
#include "wrap.h"

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return wrap_plugin(wrap_open(WRAP_TARGET, host_abi, host, instance));
}
