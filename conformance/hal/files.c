/* files.c: a set of the files in the folders where programs leave temporary ones. */
#include "hal/files.h"

#include <dirent.h>
#include <stdlib.h>

/* FNV-1a. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    }
    return hash;
}

static void add(files *seen, uint64_t hash)
{
    const uint64_t kept = hash > 0 ? hash : 1;
    uint32_t slot = (uint32_t)(hash % FILES_SLOTS);
    while (seen->slots[slot] != 0 && seen->slots[slot] != kept) {
        slot = (slot + 1) % FILES_SLOTS;
    }
    if (seen->slots[slot] == 0 && seen->count < FILES_MOST) {
        seen->slots[slot] = kept;
        seen->count++;
    }
}

static void add_folder(files *seen, const char *path)
{
    DIR *folder = path ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        add(seen, hash_text(hash_text(0xcbf29ce484222325, path), entry->d_name));
    }
    if (folder) {
        closedir(folder);
    }
}

uint32_t files_seen(files *seen)
{
    add_folder(seen, "/tmp");
    add_folder(seen, "/var/tmp");
    add_folder(seen, "/dev/shm");
    add_folder(seen, getenv("TMPDIR"));
    add_folder(seen, ".");
    return seen->count;
}
