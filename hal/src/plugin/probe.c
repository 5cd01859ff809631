/* Abilities that drivers get wrong, see probe.h. */
#include "probe.h"

#include "search.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_LIMIT_MS 10000u
#define OUTPUT_BYTES 8192u

/* The verdict's key in the compile cache. The second word changes with the kernels of hal-probe. */
static const uint64_t verdict_key[2] = {UINT64_C(0x4c41482d50524f42), 1};

/* What is probed: bits of a field of the device's record. The names are those of hal-probe. */
typedef struct ability {
    const char *name;
    size_t field;
    uint32_t bits;
} ability;

#define ABILITY(name, field, bits)                   \
    {                                                \
        name, offsetof(hal_device_info, field), bits \
    }
static const ability abilities[] = {
    ABILITY("subgroups", subgroup_width, UINT32_MAX),
    ABILITY("matrix_f16", matrix_types, HAL_TYPE_BIT(HAL_TYPE_F16)),
    ABILITY("matrix_bf16", matrix_types, HAL_TYPE_BIT(HAL_TYPE_BF16)),
    ABILITY("matrix_f32", matrix_types, HAL_TYPE_BIT(HAL_TYPE_F32)),
    ABILITY("atomic_64", abilities, HAL_ABILITY_ATOMIC_64),
    ABILITY("storage_f16", storage_types, HAL_TYPE_BIT(HAL_TYPE_F16)),
    ABILITY("timestamps", abilities, HAL_ABILITY_TIMESTAMPS),
};
enum { ABILITIES = sizeof abilities / sizeof abilities[0] };

/* A process of hal-probe. */
typedef struct probe_child {
    pid_t process;
    int output; /* the pipe from its standard output */
    char text[OUTPUT_BYTES];
    size_t length;
    const char *end; /* why it did not come to its end */
} probe_child;

static uint32_t *ability_field(hal_device_info *info, const ability *of)
{
    return (uint32_t *)(void *)((char *)info + of->field);
}

/* Milliseconds; 0: nothing is probed. */
static uint64_t limit_ms(void)
{
    const char *asked = secure_getenv("HAL_PROBE");
    if (hal_process_is_secure() || (asked && strcmp(asked, "off") == 0)) {
        return 0;
    }
    const uint64_t limit = asked ? strtoull(asked, NULL, 10) : 0;
    return limit ? limit : DEFAULT_LIMIT_MS;
}

/* The environment of the child, without what would log, record, fail or probe. Null without
 * memory. */
static char **child_environment(char *plugin_path)
{
    char **environment = hal_environment();
    static char off[] = "HAL_PROBE=off";
    size_t count = 0, kept = 0;
    while (environment[count]) {
        count++;
    }
    char **made = calloc(count + 3, sizeof *made);
    for (size_t i = 0; made && i < count; i++) {
        const int is_own = strncmp(environment[i], "HAL_", 4) == 0;
        if (!is_own || strncmp(environment[i], "HAL_CACHE_DIR=", 14) == 0) {
            made[kept++] = environment[i];
        }
    }
    if (made) {
        made[kept++] = off;
        made[kept] = plugin_path;
    }
    return made;
}

/* Returns 0 when no process could be made. */
static int child_start(probe_child *child, char *program, const hal_module *module, uint32_t index,
                       const int *wanted)
{
    char *arguments[ABILITIES + 3] = {program};
    int ends[2] = {-1, -1}, count = 2, started = 0;
    hal_text path = {0}, device = {0};
    hal_text_add(&path, "HAL_PLUGIN_PATH=%s", module->path);
    hal_text_add(&device, "%s:%u", module->table.name, index);
    arguments[1] = device.data;
    for (int i = 0; i < ABILITIES; i++) {
        if (wanted[i]) {
            arguments[count++] = (char *)(uintptr_t)abilities[i].name;
        }
    }
    char **environment = child_environment(path.data);
    posix_spawn_file_actions_t actions;
    if (!path.failed && !device.failed && environment && pipe(ends) == 0 &&
        posix_spawn_file_actions_init(&actions) == 0) {
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        started =
            posix_spawn(&child->process, program, &actions, NULL, arguments, environment) == 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    if (!started && ends[0] >= 0) {
        close(ends[0]);
    }
    child->output = ends[0];
    free(environment);
    hal_text_free(&path);
    hal_text_free(&device);
    return started;
}

/* Reads what the child writes until it ends or its time has passed. */
static void child_follow(probe_child *child, uint64_t limit)
{
    const uint64_t deadline = hal_clock_ns() + limit * 1000000u;
    struct pollfd ready = {.fd = child->output, .events = POLLIN};
    int state = 0, is_late = 0;
    for (;;) {
        const uint64_t now = hal_clock_ns();
        if (now >= deadline) {
            is_late = 1;
            kill(child->process, SIGKILL);
            break;
        }
        const int left = (int)((deadline - now) / 1000000u) + 1;
        if (poll(&ready, 1, left) <= 0) {
            continue; /* interrupted, or late */
        }
        const size_t room = sizeof child->text - 1 - child->length;
        const ssize_t got = read(child->output, child->text + child->length, room);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        child->length += got > 0 ? (size_t)got : 0;
    }
    child->text[child->length] = 0;
    close(child->output);
    while (waitpid(child->process, &state, 0) < 0 && errno == EINTR) {
    }
    child->end = is_late              ? "its test did not end within the time limit"
                 : WIFSIGNALED(state) ? "its test crashed"
                                      : "its test ended the process";
}

/* Takes the answers out of `wanted` and adds findings. Returns 0 when the child did not get as far
 * as a test, or could not judge one: there is no verdict. */
static int child_judge(probe_child *child, int *wanted, hal_text *findings)
{
    int begun = -1, answers = 0, is_judged = 1, is_done = 0;
    char *rest = child->text;
    for (char *line; is_judged && (line = strsep(&rest, "\n")) != NULL;) {
        char word[16] = "", name[32] = "";
        int at = 0;
        const int parts = sscanf(line, "%15s %31s %n", word, name, &at);
        is_done |= parts == 1 && strcmp(word, "done") == 0;
        for (int i = 0; parts == 2 && i < ABILITIES; i++) {
            if (strcmp(name, abilities[i].name) != 0) {
                continue;
            }
            if (strcmp(word, "begin") == 0) {
                begun = i;
                continue;
            }
            is_judged &= strcmp(word, "unknown") != 0;
            wanted[i] = 0;
            answers++;
            begun = -1;
            if (strcmp(word, "wrong") == 0) {
                hal_text_add(findings, "%s: %s\n", name, line + at);
            }
        }
    }
    if (begun >= 0) {
        hal_text_add(findings, "%s: %s\n", abilities[begun].name, child->end);
        wanted[begun] = 0;
    }
    return is_judged && (is_done || answers > 0 || begun >= 0);
}

/* Runs hal-probe, again without the ability whose test ended it. Returns 0 where abilities are left
 * that it could not judge. */
static int abilities_judge(char *program, const hal_module *module, uint32_t index,
                           const int *claimed, uint64_t limit, hal_text *findings)
{
    int wanted[ABILITIES], left = 0, is_judged = 1;
    memcpy(wanted, claimed, sizeof wanted);
    do {
        probe_child *child = calloc(1, sizeof *child);
        is_judged = child && child_start(child, program, module, index, wanted);
        if (is_judged) {
            child_follow(child, limit);
            is_judged = child_judge(child, wanted, findings);
        }
        free(child);
        left = 0;
        for (int i = 0; i < ABILITIES; i++) {
            left |= wanted[i];
        }
    } while (is_judged && left);
    return is_judged;
}

static const char *line_next(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/* Clears what the lines of a verdict name. */
static void verdict_apply(const char *verdict, hal_device_info *info)
{
    for (int i = 0; i < ABILITIES; i++) {
        const size_t length = strlen(abilities[i].name);
        for (const char *line = verdict; *line; line = line_next(line)) {
            if (strncmp(line, abilities[i].name, length) == 0 && line[length] == ':') {
                *ability_field(info, &abilities[i]) &= ~abilities[i].bits;
            }
        }
    }
    info->matrix_types = info->subgroup_width ? info->matrix_types : 0;
}

/* The verdict of the cache, or a new one, which goes there, also where a driver could not be judged
 * in another process: each process would try it again. Null without one. */
static char *verdict_get(const hal_module *module, uint32_t index, const hal_cache_scope *scope,
                         const int *claimed, uint64_t limit)
{
    void *data = NULL;
    uint64_t bytes = 0;
    if (hal_cache_load(scope->device_id, verdict_key, &data, &bytes) == HAL_OK) {
        char *kept = strndup(data, bytes);
        free(data);
        return kept;
    }
    char *program = hal_search_own_file("hal-probe");
    if (!program || access(program, X_OK) != 0) {
        free(program);
        return NULL;
    }
    hal_text findings = {0};
    const uint64_t begin = hal_clock_ns();
    const int is_judged = abilities_judge(program, module, index, claimed, limit, &findings);
    hal_log(HAL_LOG_INFO, "%s:%u: %s the driver %s in %.1f ms", module->table.name, index,
            is_judged ? "probed" : "could not probe", scope->identity,
            (double)(hal_clock_ns() - begin) / 1e6);
    char *made = findings.failed ? NULL : strdup(hal_text_get(&findings));
    if (made) {
        hal_cache_store(scope->device_id, verdict_key, made, strlen(made));
    }
    hal_text_free(&findings);
    free(program);
    return made;
}

void hal_probe_device(const hal_module *module, uint32_t index, const hal_cache_scope *scope,
                      hal_device_info *info, char **findings)
{
    int claimed[ABILITIES], is_any = 0;
    *findings = NULL;
    for (int i = 0; i < ABILITIES; i++) {
        claimed[i] = (*ability_field(info, &abilities[i]) & abilities[i].bits) != 0;
        is_any |= claimed[i];
    }
    const uint64_t limit = limit_ms();
    if (info->kind == HAL_DEVICE_CPU || info->kind == HAL_DEVICE_SOFTWARE || !is_any || !limit ||
        !hal_cache_is_on()) {
        return;
    }
    const hal_cache_scope *outer = hal_cache_enter(scope);
    *findings = verdict_get(module, index, scope, claimed, limit);
    hal_cache_enter(outer);
    if (*findings) {
        verdict_apply(*findings, info);
    }
    for (const char *line = *findings; line && *line; line = line_next(line)) {
        hal_log(HAL_LOG_WARN, "%s:%u: not offered, as the driver gets it wrong: %.*s",
                module->table.name, index, (int)strcspn(line, "\n"), line);
    }
}
