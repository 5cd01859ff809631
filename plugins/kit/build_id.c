/* The build id of a plugin, see build_id.h: the note among the segments of the object that holds
 * this very function. */
#include "build_id.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
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
    if (!holds(info, (uintptr_t)kit_build_id)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_NOTE && read_notes(info, &info->dlpi_phdr[i], text)) {
            break;
        }
    }
    return 1;
}

const char *kit_build_id(void)
{
    static char text[2 * MAX_BYTES + 1];
    if (text[0] == 0) {
        strcpy(text, "unknown");
        dl_iterate_phdr(look, text);
    }
    return text;
}
