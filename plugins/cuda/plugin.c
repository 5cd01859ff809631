/* The cuda plugin's table and its one symbol. Called by hal's loader. */
#include "cuda_plugin.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

__attribute__((visibility("default"))) const hal_plugin *hal_plugin_query(uint32_t host_abi,
                                                                          const hal_host *host);
static const char *build_id(void);

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    static hal_plugin table = {
        .size = sizeof(hal_plugin),
        .abi = HAL_PLUGIN_ABI,
        .name = "cuda",
        .version = "0.1.0",
        .enumerate = cuda_enumerate,
        .device_open = cuda_device_open,
        .device_close = cuda_device_close,
        .memory_info = cuda_memory_info,
        .memory_allocate = cuda_memory_allocate,
        .memory_free = cuda_memory_free,
        .memory_map = cuda_memory_map,
        .kernel_create = cuda_kernel_create,
        .kernel_destroy = cuda_kernel_destroy,
        .queue_create = cuda_queue_create,
        .queue_destroy = cuda_queue_destroy,
        .submit = cuda_queue_submit,
        .wait = cuda_queue_wait,
        .queue_elapsed = cuda_queue_elapsed,
        .formats = "ptx,cubin",
        .kernel_create_native = cuda_kernel_create_native,
    };
    if (host == NULL || host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR) {
        return NULL;
    }
    cuda_set_host(host);
    if (table.build_id == NULL) {
        table.build_id = build_id();
    }
    return &table;
}

/* The linker's own number of this object, in hexadecimal. */
static int find_note(struct dl_phdr_info *info, size_t size, void *text)
{
    const uintptr_t here = (uintptr_t)hal_plugin_query;
    bool mine = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        mine = mine || (header->p_type == PT_LOAD && here - begin < header->p_memsz);
    }
    for (int i = 0; mine && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uint8_t *place = (const uint8_t *)info->dlpi_addr + header->p_vaddr;
        const uint8_t *end = place + header->p_memsz;
        while (header->p_type == PT_NOTE && end - place >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            memcpy(&note, place, sizeof(note));
            const uint8_t *id = place + sizeof(note) + (note.n_namesz + 3) / 4 * 4;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= 20) {
                for (uint32_t k = 0; k < note.n_descsz; k++) {
                    snprintf((char *)text + 2 * k, 3, "%02x", (unsigned)id[k]);
                }
                return 1;
            }
            place = id + (note.n_descsz + 3) / 4 * 4;
        }
    }
    return mine;
}

static const char *build_id(void)
{
    static char text[41] = "unknown";
    dl_iterate_phdr(find_note, text);
    return text;
}
