/* plugin_file.c: the plugin's file by itself: what it needs, what it exports, and how it answers
 * when it is asked for its table. It is loaded once more in another name space, where no
 * library of this program lends it a symbol and its first copy is not disturbed. */
#include <hal/plugin.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "case/cases.h"

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

#ifdef READS_PLUGIN_FILE
static void release_report(void *report)
{
    hal_registry_report_destroy(report);
}

/* The file of the plugin under test. */
static const char *path_of(case_run *run)
{
    hal_registry_report *report = NULL;
    case_ok(run, hal_registry_report_create(&report), "hal_registry_report_create");
    case_own(run, release_report, report);
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        if (plugin->status == HAL_OK &&
            strcmp(plugin->name, hal_device_get_plugin_name(run->device)) == 0) {
            return plugin->path;
        }
    }
    case_fail(run, "the device under test is not in the report");
}
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
    void *library = dlmopen(LM_ID_NEWLM, path_of(run), RTLD_NOW | RTLD_LOCAL);
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
    const int descriptor = open(path_of(run), O_RDONLY | O_CLOEXEC);
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

static void *host_allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    void *memory = NULL;
    const size_t least = alignment < sizeof(void *) ? sizeof(void *) : (size_t)alignment;
    return posix_memalign(&memory, least, bytes + 1) == 0 ? memory : NULL;
}

static void host_release(const hal_host *host, void *memory)
{
    free(memory);
}

static void host_log(const hal_host *host, uint32_t level, const char *message)
{
}

static hal_status host_fail(const hal_host *host, hal_status status, const char *message)
{
    return status;
}

static hal_status host_cache_load(const hal_host *host, const char *device_id,
                                  const uint64_t key[2], void **data, uint64_t *bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static hal_status host_cache_store(const hal_host *host, const char *device_id,
                                   const uint64_t key[2], const void *data, uint64_t bytes)
{
    return HAL_OK;
}

static void host_report(const hal_host *host, const char *message)
{
}

static void host_queue_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
}

static void host_queue_failed(const hal_host *host, hal_plugin_queue *queue, const char *message)
{
}

/* A host of another major version is refused; one of this version gets the same table each time,
 * and an instance of its own. */
static void query(case_run *run, const void *parameters)
{
    static hal_host host = {.size = sizeof host,
                            .abi = HAL_PLUGIN_ABI,
                            .allocate = host_allocate,
                            .release = host_release,
                            .log = host_log,
                            .fail = host_fail,
                            .cache_load = host_cache_load,
                            .cache_store = host_cache_store,
                            .report = host_report,
                            .queue_reached = host_queue_reached,
                            .queue_failed = host_queue_failed};
    static hal_host other;
    void *symbol = dlsym(library_apart(run), HAL_PLUGIN_CREATE_SYMBOL);
    hal_plugin_create_function ask = NULL;
    hal_plugin_instance *instances[2] = {NULL};
    case_check(run, symbol != NULL, "no %s in it", HAL_PLUGIN_CREATE_SYMBOL);
    memcpy(&ask, &symbol, sizeof ask);
    other = host;
    other.abi = (HAL_PLUGIN_ABI_MAJOR + 1000) << 16;
    case_check(run, !ask(other.abi, &other, &instances[0]),
               "a host of major version %u got a table", HAL_PLUGIN_ABI_MAJOR + 1000);
    other.abi = HAL_PLUGIN_ABI;
    const hal_plugin *table = ask(HAL_PLUGIN_ABI, &host, &instances[0]);
    case_check(run, table && ask(HAL_PLUGIN_ABI, &other, &instances[1]) == table,
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
