/* The answer to hal_plugin_query, see query.h. The build id is the note among the segments of the
 * object that holds the code of this file; on macOS its UUID. */
#include "query.h"

#include "guard.h"

#include <stdbool.h>
#include <stddef.h>
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

static void find_build_id(char *text)
{
    dl_iterate_phdr(look, text);
}
#else
static void find_build_id(char *text)
{
    Dl_info own;
    if (dladdr((const void *)(uintptr_t)kit_plugin_query, &own) == 0) {
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

static const char *build_id(void)
{
    static char text[2 * MAX_BYTES + 1];
    if (text[0] == 0) {
        strcpy(text, "unknown");
        find_build_id(text);
    }
    return text;
}

/* The name of a function of minor 0 that the host lacks, or null. Plugins call them without asking,
 * some only after a failure and on a thread of their own, where a null pointer would end the
 * process. */
static const char *missing_function(const hal_host *host)
{
    const char *missing = NULL;
#define REQUIRE(name) missing = HAL_PLUGIN_HAS(host, name) ? missing : #name;
    REQUIRE(allocate)
    REQUIRE(release)
    REQUIRE(log)
    REQUIRE(fail)
    REQUIRE(cache_load)
    REQUIRE(cache_store)
    REQUIRE(report)
    REQUIRE(queue_reached)
    REQUIRE(queue_failed)
#undef REQUIRE
    return missing;
}

static bool host_is_complete(const hal_host *host)
{
    char message[128];
    const char *missing = missing_function(host);
    if (missing && HAL_PLUGIN_HAS(host, fail)) {
        snprintf(message, sizeof message,
                 "expected a host with all functions of ABI %u.0, got one without %s",
                 HAL_PLUGIN_ABI_MAJOR, missing);
        host->fail(HAL_ERROR_INVALID_ARGUMENT, message);
    }
    return !missing;
}

const hal_plugin *kit_plugin_query(hal_plugin *table, uint32_t host_abi, const hal_host *host,
                                   void (*set_host)(const hal_host *host))
{
    static const hal_host *known;
    if (!host || host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR || !host_is_complete(host)) {
        return NULL;
    }
    if (known && known != host) {
        host->fail(HAL_ERROR_INVALID_STATE,
                   "another copy of libhalyard in this process uses the plugin; load one copy, or "
                   "give each its own folder of plugins by HAL_PLUGIN_PATH");
        return NULL;
    }
    known = host;
    set_host(host);
    table->build_id = build_id();
    kit_guard_table(table);
    return table;
}
