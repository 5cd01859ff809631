/* The answer to hal_plugin_query, see query.h. The build id is the note among the segments of the
 * object that holds the code of this file. */
#include "query.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 20 };

static int holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && address - begin < header->p_memsz) {
            return 1;
        }
    }
    return 0;
}

/* Gives 1 when the text is written. */
static int read_notes(const struct dl_phdr_info *info, const ElfW(Phdr) *header, char *text)
{
    const uint8_t *place = (const uint8_t *)info->dlpi_addr + header->p_vaddr;
    const uint8_t *end = place + header->p_memsz;
    while (end - place >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, place, sizeof note);
        const uint8_t *id = place + sizeof note + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= MAX_BYTES) {
            for (uint32_t k = 0; k < note.n_descsz; k++) {
                snprintf(text + 2 * k, 3, "%02x", (unsigned)id[k]);
            }
            return 1;
        }
        place = id + (note.n_descsz + 3) / 4 * 4;
    }
    return 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *text)
{
    (void)size;
    if (!holds(info, (uintptr_t)kit_plugin_query)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_NOTE && read_notes(info, &info->dlpi_phdr[i], text)) {
            break;
        }
    }
    return 1;
}

static const char *build_id(void)
{
    static char text[2 * MAX_BYTES + 1];
    if (text[0] == 0) {
        strcpy(text, "unknown");
        dl_iterate_phdr(look, text);
    }
    return text;
}

const hal_plugin *kit_plugin_query(hal_plugin *table, uint32_t host_abi, const hal_host *host,
                                   void (*set_host)(const hal_host *host))
{
    if (host == NULL || host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR) {
        return NULL;
    }
    set_host(host);
    table->build_id = build_id();
    return table;
}
