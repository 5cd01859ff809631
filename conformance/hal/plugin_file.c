/* plugin_file.c: the plugin's file by itself: what it needs, what it exports, and how it answers
 * when it is asked for its table. It is loaded once more in another name space, where no
 * library of this program lends it a symbol and its first copy is not disturbed. */
#include <hal/plugin.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "case/cases.h"
#include "hal/direct.h"

/* A sanitized program can neither load a library apart nor expect one symbol of its plugins. */
#if defined(__ELF__) && !defined(CASE_SANITIZED)
#define READS_PLUGIN_FILE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#if defined(READS_PLUGIN_FILE) && defined(LM_ID_NEWLM)
#define LOADS_PLUGIN_APART
#endif

#ifdef LOADS_PLUGIN_APART
static void close_library(void *library)
{
    dlclose(library);
}
#endif

/* The plugin's file, loaded apart; closed at the end of the case. */
static void *library_apart(case_run *run)
{
#ifdef LOADS_PLUGIN_APART
    void *library = dlmopen(LM_ID_NEWLM, direct_path(run), RTLD_NOW | RTLD_LOCAL);
    case_check(run, library != NULL,
               "the plugin does not load without the libraries of this program: %s. Link it with "
               "what it uses",
               dlerror());
    case_own(run, close_library, library);
    return library;
#else
    case_unsupported(run, "this system cannot load a library apart from the program's");
#endif
}

static void stands_alone(case_run *run, const void *parameters)
{
    library_apart(run);
}

/* ---- What it exports ---- */

#ifdef READS_PLUGIN_FILE
typedef struct mapped_file {
    const char *data;
    size_t bytes;
} mapped_file;

static void unmap_file(void *mapped)
{
    const mapped_file *file = mapped;
    munmap((void *)(uintptr_t)file->data, file->bytes);
}

/* Null for the sections that the linker makes, else the name of a symbol that others see. */
static const char *exported_name(const ElfW(Sym) * symbol, const char *names)
{
    static const char *const of_linker[] = {"_init", "_fini", "_end", "_edata", "__bss_start"};
    const unsigned binding = symbol->st_info >> 4, visibility = symbol->st_other & 3;
    const char *name = names + symbol->st_name;
    if (symbol->st_shndx == SHN_UNDEF || binding != STB_GLOBAL ||
        (visibility != STV_DEFAULT && visibility != STV_PROTECTED)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof of_linker / sizeof of_linker[0]; i++) {
        if (strcmp(name, of_linker[i]) == 0) {
            return NULL;
        }
    }
    return name;
}
#endif

/* One symbol is exported. Weak ones, which C++ shares between libraries, are allowed. */
static void one_symbol(case_run *run, const void *parameters)
{
#ifdef READS_PLUGIN_FILE
    static mapped_file file;
    struct stat status;
    const int descriptor = open(direct_path(run), O_RDONLY | O_CLOEXEC);
    case_check(run, descriptor >= 0 && fstat(descriptor, &status) == 0, "the file is unreadable");
    file.bytes = (size_t)status.st_size;
    void *data = mmap(NULL, file.bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    case_check(run, data != MAP_FAILED, "the file cannot be mapped");
    file.data = data;
    case_own(run, unmap_file, &file);
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)file.data;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(const void *)(file.data + header->e_shoff);
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM) {
            continue;
        }
        const ElfW(Sym) *symbols =
            (const ElfW(Sym) *)(const void *)(file.data + sections[i].sh_offset);
        const char *names = file.data + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            const char *name = exported_name(&symbols[k], names);
            case_check(run, !name || strcmp(name, HAL_PLUGIN_CREATE_SYMBOL) == 0,
                       "the plugin exports %s. Compile it with hidden visibility", name);
        }
    }
#else
    case_unsupported(run, "symbols are read from ELF files only");
#endif
}

/* ---- How it answers ---- */

/* A host of another major version is refused; one of this version gets the same table each time,
 * and an instance of its own. */
static void query(case_run *run, const void *parameters)
{
    hal_host *host = &direct_host(run)->host, *other = &direct_host(run)->host;
    void *symbol = dlsym(library_apart(run), HAL_PLUGIN_CREATE_SYMBOL);
    hal_plugin_create_function ask = NULL;
    hal_plugin_instance *instances[2] = {NULL};
    case_check(run, symbol != NULL, "no %s in it", HAL_PLUGIN_CREATE_SYMBOL);
    memcpy(&ask, &symbol, sizeof ask);
    other->abi = (HAL_PLUGIN_ABI_MAJOR + 1000) << 16;
    case_check(run, !ask(other->abi, other, &instances[0]),
               "a host of major version %u got a table", HAL_PLUGIN_ABI_MAJOR + 1000);
    other->abi = HAL_PLUGIN_ABI;
    const hal_plugin *table = ask(HAL_PLUGIN_ABI, host, &instances[0]);
    case_check(run, table && ask(HAL_PLUGIN_ABI, other, &instances[1]) == table,
               "two instances gave two tables, or none");
    case_check(run, instances[0] && instances[1] && instances[0] != instances[1],
               "two calls gave one instance, or none");
    table->instance_destroy(instances[0]);
    table->instance_destroy(instances[1]);
}

void cases_hal_plugin_file(case_list *list)
{
    case_add(list, stands_alone, NULL, 0, "device/plugin_stands_alone");
    case_add(list, one_symbol, NULL, 0, "device/plugin_symbols");
    case_add(list, query, NULL, 0, "device/plugin_query");
}
