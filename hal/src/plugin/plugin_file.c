/* Checks of plugin files before dlopen, see plugin_file.h. */
#include "plugin_file.h"

#include "base/cancel.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined __ELF__
#include <elf.h>
#include <link.h>

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;

/* The ELF header of this library, by the linker. */
extern const elf_header __ehdr_start __attribute__((visibility("hidden")));

/* Class and byte order are those of this process. */
static bool is_native_elf(const elf_header *header)
{
    return memcmp(header->e_ident, __ehdr_start.e_ident, EI_VERSION) == 0 &&
           header->e_phentsize == sizeof(elf_segment);
}

/* The end of the program headers and segments. */
static uint64_t least_file_bytes(int file, const elf_header *header)
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

/* dlopen maps the segments of the headers: the process dies when it touches a page beyond the end
 * of the file. For another machine's file its message is "not found". */
static hal_status content_check(const char *path, uint64_t bytes)
{
    HAL_UNCANCELLED;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return HAL_OK;
    }
    elf_header header;
    const bool native =
        pread(file, &header, sizeof header, 0) == sizeof header && is_native_elf(&header);
    const uint64_t needed = native ? least_file_bytes(file, &header) : 0;
    close(file);
    if (native && header.e_machine != __ehdr_start.e_machine) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: expected ELF machine %u, that of this process, got %u", path,
                        __ehdr_start.e_machine, header.e_machine);
    }
    if (needed > bytes) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: expected at least %llu bytes, got %llu; copy or install it "
                        "again",
                        path, (unsigned long long)needed, (unsigned long long)bytes);
    }
    return HAL_OK;
}
#else
/* The loader of macOS checks a file before it maps it. */
static hal_status content_check(const char *path, uint64_t bytes)
{
    (void)path;
    (void)bytes;
    return HAL_OK;
}
#endif

hal_status hal_plugin_file_check(const char *path)
{
    struct stat what;
    if (stat(path, &what) != 0) {
        const char *words = strerror(errno);
        if (errno == ENOENT) {
            words = lstat(path, &what) == 0 ? "a dangling link" : "no such file";
        }
        return hal_fail(HAL_ERROR_NOT_FOUND, "plugin %s: %s", path, words);
    }
    if (!S_ISREG(what.st_mode)) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN, "plugin %s: expected a regular file, got %s", path,
                        S_ISDIR(what.st_mode) ? "a folder" : "a pipe, socket or device");
    }
    return content_check(path, (uint64_t)what.st_size);
}
