/* Plugin files, as far as they can be judged without being loaded. Called by the loader. */
#include "plugin_file.h"

#include "status.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hal_status check_length(const char *path, uint64_t bytes);
static uint64_t needed_bytes(int file);

hal_status hal_plugin_file_check(const char *path)
{
    struct stat what;
    if (stat(path, &what) != 0) {
        const char *words = strerror(errno);
        if (errno == ENOENT) {
            words = lstat(path, &what) == 0 ? "a link that leads nowhere" : "no such file";
        }
        return hal_fail(HAL_ERROR_NOT_FOUND, "plugin %s: %s", path, words);
    }
    if (!S_ISREG(what.st_mode)) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN, "plugin %s: %s, no file that could be loaded", path,
                        S_ISDIR(what.st_mode) ? "a folder" : "a pipe, socket or device");
    }
    return check_length(path, (uint64_t)what.st_size);
}

/* The system's loader maps what the headers name; touching a page that the file does not reach ends
 * the process. */
static hal_status check_length(const char *path, uint64_t bytes)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return HAL_OK;
    }
    const uint64_t needed = needed_bytes(file);
    close(file);
    if (needed > bytes) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: the file is cut off: %llu bytes of at least %llu are there; "
                        "copy or install it again",
                        path, (unsigned long long)bytes, (unsigned long long)needed);
    }
    return HAL_OK;
}

/* How far the segments of an ELF file of this machine's kind reach; 0 where that cannot be told. */
static uint64_t needed_bytes(int file)
{
    ElfW(Ehdr) header;
    if (pread(file, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(ElfW(Phdr))) {
        return 0;
    }
    uint64_t needed = header.e_phoff + (uint64_t)header.e_phnum * sizeof(ElfW(Phdr));
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        const uint64_t at = header.e_phoff + i * sizeof segment;
        if (pread(file, &segment, sizeof segment, (off_t)at) != sizeof segment) {
            return needed;
        }
        const uint64_t end = segment.p_offset + segment.p_filesz;
        if (segment.p_type == PT_LOAD && end > needed) {
            needed = end;
        }
    }
    return needed;
}
