/* Plugins that are wrong, each in its own way: BROKEN says how. Loaded by test_loader. */
#include <hal/plugin.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* In the order of plugins.cmake, from 1 on. */
enum {
    NO_SYMBOL = 1,
    NO_TABLE,
    NEWER,
    OTHER_MAJOR,
    SHORT,
    MISSING,
    BAD_NAME,
    TINY,
    NO_DEVICE,
    NO_DRIVER,
    BAD_STATUS,
    BAD_INFO,
    BAD_STRIDE,
    EARLY_END,
    COUNTS,
    OTHER_NAME,
    NEEDY,
    OLDER,
    CUT,
    MANY,
    FEWER,
    UNWRITTEN,
    ABSURD,
    NO_INSTANCE,
    NO_IR_VERSION,
    NO_ID,
    SAME_IDS,
    OTHER_EXTENSION,
    DRAFT
};

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)

#if BROKEN == 17 /* NEEDY */
int needed_by_needy(void);
#endif

#if BROKEN == 29 /* DRAFT */
EXPORT int hal_plugin_query(void);
int hal_plugin_query(void)
{
    return 0;
}
#elif BROKEN == 1 /* NO_SYMBOL */
EXPORT int some_other_symbol(void);
int some_other_symbol(void)
{
    return 0;
}
#else
/* No major precedes 0: then an unknown number. */
#define OLDER_MAJOR ((HAL_PLUGIN_ABI_MAJOR - 1) & 0xffff)

EXPORT const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                           hal_plugin_instance **instance);

static const hal_host *services;
static int calls;

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count)
{
    (void)instance;
    switch (BROKEN) {
    case NO_DEVICE:
        *count = 0;
        return HAL_OK;
    case NO_DRIVER:
        return services->fail(services, HAL_ERROR_DRIVER_MISSING,
                              "the driver of nothing is not installed");
    case BAD_STATUS:
        return 4711;
    case COUNTS:
        *count = capacity + 1;
        return HAL_OK;
    case MANY:
        *count = UINT32_MAX;
        return HAL_OK;
    case UNWRITTEN:
        *count = 2;
        return HAL_OK;
    case ABSURD:
        memset(infos, 0xff, sizeof *infos);
        infos->size = sizeof *infos;
        infos->kind = HAL_DEVICE_SOFTWARE;
        infos->name[0] = '\n';
        infos->binding_alignment = 256;
        infos->subgroup_width = 0;
        *count = 1;
        return HAL_OK;
    case FEWER: /* one of the devices goes while they are counted */
        if (calls++ == 0) {
            *count = capacity + 1;
            return HAL_OK;
        }
        break;
    default:
        break;
    }
    infos[0] = (hal_device_info){.size = BROKEN == BAD_STRIDE ? 3 : sizeof(hal_device_info),
                                 .kind = HAL_DEVICE_SOFTWARE,
                                 .name = "Broken",
                                 .id = "broken",
                                 .max_allocation = 1024,
                                 .max_binding = 1024,
                                 .binding_alignment = BROKEN == BAD_INFO ? 12 : 16,
                                 .max_group_items = 1,
                                 .max_group_size = {1, 1, 1},
                                 .max_grid = {1, 1, 1}};
    *count = 1;
    if (BROKEN == NO_ID) {
        infos[0].id[0] = 0;
    }
    if (BROKEN == SAME_IDS) {
        infos[1] = infos[0];
        *count = 2;
    }
    return HAL_OK;
}

/* A table of a major that nobody asked for. */
static const void *query_other_major(hal_plugin_instance *instance, const char *name,
                                     uint32_t major)
{
    static const hal_extension_timing timing = {.size = sizeof timing,
                                                .version = HAL_EXTENSION_VERSION(7, 0)};
    (void)instance;
    (void)major;
    return strcmp(name, HAL_EXTENSION_TIMING) == 0 ? &timing : NULL;
}

static void must_not_be_called(void)
{
    abort();
}

/* Never reached: the entries only have to be there. */
static hal_status nothing(void)
{
    return HAL_ERROR_UNSUPPORTED;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static char place;
    static hal_plugin table;
    services = host;
    *instance = BROKEN == NO_INSTANCE ? NULL : (hal_plugin_instance *)(void *)&place;
#if BROKEN == 17 /* NEEDY */
    needed_by_needy();
#endif
    if (BROKEN == NO_TABLE) {
        return NULL;
    }
    if ((BROKEN == NEWER && host_abi >> 16 != 7) ||
        (BROKEN == OLDER && host_abi >> 16 != OLDER_MAJOR)) {
        return NULL;
    }
    table = (hal_plugin){
        .size = sizeof table,
        .abi = HAL_PLUGIN_ABI,
        .name = BROKEN == BAD_NAME     ? "Broken!"
                : BROKEN == OTHER_NAME ? "somebody"
                                       : TEXT(NAME),
        .ir_version = BROKEN == NO_IR_VERSION ? 0 : HAL_IR_VERSION,
        .instance_destroy = (void (*)(hal_plugin_instance *))(void (*)(void))nothing,
        .enumerate = enumerate,
        .device_open = (hal_status(*)(hal_plugin_instance *, const char *, hal_plugin_device **))(
            void (*)(void))nothing,
        .device_close = (void (*)(hal_plugin_device *))(void (*)(void))nothing,
        .memory_allocate = (hal_status(*)(hal_plugin_device *, uint32_t, uint64_t,
                                          hal_plugin_memory **))(void (*)(void))nothing,
        .memory_free = (void (*)(hal_plugin_device *, hal_plugin_memory *))(void (*)(void))nothing,
        .memory_map = (hal_status(*)(hal_plugin_device *, hal_plugin_memory *, void **))(
            void (*)(void))nothing,
        .kernel_create = (hal_status(*)(hal_plugin_device *, const hal_ir_kernel *,
                                        hal_plugin_kernel **))(void (*)(void))nothing,
        .kernel_destroy =
            (void (*)(hal_plugin_device *, hal_plugin_kernel *))(void (*)(void))nothing,
        .queue_create =
            (hal_status(*)(hal_plugin_device *, hal_plugin_queue **))(void (*)(void))nothing,
        .queue_destroy = (void (*)(hal_plugin_device *, hal_plugin_queue *))(void (*)(void))nothing,
        .submit = (hal_status(*)(hal_plugin_queue *, const hal_batch *, const hal_plugin_wait *,
                                 uint32_t, uint64_t))(void (*)(void))nothing,
        .wait = (hal_status(*)(hal_plugin_queue *, uint64_t, uint64_t))(void (*)(void))nothing,
    };
    switch (BROKEN) {
    case NEWER:
        table.abi = 7u << 16 | 3;
        break;
    case OLDER:
        table.abi = OLDER_MAJOR << 16 | 4;
        break;
    case OTHER_MAJOR:
        table.abi = 9u << 16;
        break;
    case SHORT:
        table.size = offsetof(hal_plugin, submit);
        break;
    case CUT: /* through the middle of a pointer */
        table.size = offsetof(hal_plugin, submit) + sizeof(void *) / 2;
        break;
    case MISSING:
        table.kernel_destroy = NULL;
        break;
    case TINY:
        table.size = 4;
        break;
    case EARLY_END: /* nothing after `wait` */
        table.size = offsetof(hal_plugin, query_extension);
        table.query_extension = (const void *(*)(hal_plugin_instance *, const char *, uint32_t))(
            void (*)(void))must_not_be_called;
        break;
    case OTHER_EXTENSION:
        table.query_extension = query_other_major;
        break;
    default:
        break;
    }
    return &table;
}
#endif
