/* See build_id.h. The note among the segments of the object that holds the code of this file; on
 * macOS its UUID. */
#include "build_id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined __ELF__
#include <elf.h>
#include <link.h>
#else
#include <dlfcn.h>
#include <mach-o/loader.h>
#endif

enum { MAX_BYTES = 20 };

static void write_bytes(const uint8_t *bytes, uint32_t count, char *text)
{
    for (uint32_t k = 0; k < count; k++) {
        snprintf(text + 2 * k, 3, "%02x", (unsigned)bytes[k]);
    }
}

#if defined __ELF__
static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && address - begin < header->p_memsz) {
            return true;
        }
    }
    return false;
}

/* Gives 1 when the text is written. */
static bool read_notes(const struct dl_phdr_info *info, const ElfW(Phdr) * header, char *text)
{
    const uint8_t *place = (const uint8_t *)info->dlpi_addr + header->p_vaddr;
    const uint8_t *end = place + header->p_memsz;
    while (end - place >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, place, sizeof note);
        const uint8_t *id = place + sizeof note + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= MAX_BYTES) {
            write_bytes(id, note.n_descsz, text);
            return true;
        }
        place = id + (note.n_descsz + 3) / 4 * 4;
    }
    return false;
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

static void find_build_id(char *text)
{
    dl_iterate_phdr(look, text);
}
#else
static void find_build_id(char *text)
{
    Dl_info own;
    if (dladdr((const void *)(uintptr_t)kit_build_id, &own) == 0) {
        return;
    }
    const struct mach_header_64 *header = own.dli_fbase;
    const uint8_t *at = (const uint8_t *)(header + 1);
    for (uint32_t i = 0; i < header->ncmds; i++) {
        const struct load_command *command = (const void *)at;
        if (command->cmd == LC_UUID) {
            const struct uuid_command *id = (const void *)at;
            write_bytes(id->uuid, sizeof id->uuid, text);
            return;
        }
        at += command->cmdsize;
    }
}
#endif

const char *kit_build_id(void)
{
    static char text[2 * MAX_BYTES + 1];
    if (text[0] == 0) {
        strcpy(text, "unknown");
        find_build_id(text);
    }
    return text;
}
