/* Plugin files, as far as they can be judged without being loaded. Called by the loader. */
#include "plugin_file.h"

#include "base/status.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;

static hal_status check_content(const char *path, uint64_t bytes);
static int is_native_elf(const elf_header *header);
static uint64_t needed_bytes(int file, const elf_header *header);

/* This library's own header, which the linker provides: what plugins have to match. */
extern const elf_header __ehdr_start __attribute__((visibility("hidden")));

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
    return check_content(path, (uint64_t)what.st_size);
}

/* The system's loader maps what the headers name; touching a page that the file does not reach ends
 * the process. Of a file for another machine it says that it is not there. */
static hal_status check_content(const char *path, uint64_t bytes)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return HAL_OK;
    }
    elf_header header;
    const int native =
        pread(file, &header, sizeof header, 0) == sizeof header && is_native_elf(&header);
    const uint64_t needed = native ? needed_bytes(file, &header) : 0;
    close(file);
    if (native && header.e_machine != __ehdr_start.e_machine) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: made for another machine: its ELF header names number %u, this "
                        "process is of number %u",
                        path, header.e_machine, __ehdr_start.e_machine);
    }
    if (needed > bytes) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: the file is cut off: %llu bytes of at least %llu are there; "
                        "copy or install it again",
                        path, (unsigned long long)bytes, (unsigned long long)needed);
    }
    return HAL_OK;
}

/* Whether the fields are as wide, and their bytes in the order, that ElfW has. */
static int is_native_elf(const elf_header *header)
{
    return memcmp(header->e_ident, __ehdr_start.e_ident, EI_VERSION) == 0 &&
           header->e_phentsize == sizeof(elf_segment);
}

/* How far the program headers and the segments reach. */
static uint64_t needed_bytes(int file, const elf_header *header)
{
    uint64_t needed = header->e_phoff + (uint64_t)header->e_phnum * sizeof(elf_segment);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        elf_segment segment;
        const uint64_t at = header->e_phoff + i * sizeof segment;
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
