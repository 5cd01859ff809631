/* Build ids, see build_id.h: the note among the segments of an ELF file. */
#include "build_id.h"

#if defined __ELF__
#include "fork.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A fork waits for it: the child would find the lock of the dynamic linker taken for ever. */
static pthread_mutex_t iterate_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(iterate_lock, HAL_FORK_LEAF)

typedef struct search {
    uintptr_t address;
    uint8_t *id;
    uint32_t bytes;
} search;

static bool object_has(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

static void notes_read(const uint8_t *at, size_t bytes, search *s)
{
    const uint8_t *end = at + bytes;
    while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr)) && s->bytes == 0) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const uint8_t *content = at + sizeof note + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= HAL_BUILD_ID_BYTES) {
            memcpy(s->id, content, note.n_descsz);
            s->bytes = note.n_descsz;
        }
        at = content + (note.n_descsz + 3) / 4 * 4;
    }
}

static int object_look(struct dl_phdr_info *object, size_t size, void *user)
{
    search *s = user;
    (void)size;
    if (!object_has(object, s->address)) {
        return 0;
    }
    for (int i = 0; i < object->dlpi_phnum && s->bytes == 0; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE) {
            notes_read((const uint8_t *)object->dlpi_addr + segment->p_vaddr, segment->p_memsz, s);
        }
    }
    return 1;
}

uint32_t hal_build_id_get(const void *address, uint8_t id[HAL_BUILD_ID_BYTES])
{
    search s = {.address = (uintptr_t)address, .id = id};
    pthread_mutex_lock(&iterate_lock);
    dl_iterate_phdr(object_look, &s);
    pthread_mutex_unlock(&iterate_lock);
    return s.bytes;
}
#else
uint32_t hal_build_id_get(const void *address, uint8_t id[HAL_BUILD_ID_BYTES])
{
    (void)address;
    (void)id;
    return 0;
}
#endif
