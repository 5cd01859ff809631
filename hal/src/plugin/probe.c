/* Features that drivers get wrong, see probe.h. */
#include "probe.h"

#include "search.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/platform.h"
#include "base/text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_LIMIT_MS 10000u
#define MOST_LIMIT_MS 600000u
#define AFTER_KILL_NS 1000000000u
#define OUTPUT_BYTES 8192u

/* The verdict's key in the compile cache. The second word changes with the kernels of hal-probe. */
static const uint64_t verdict_key[2] = {UINT64_C(0x4c41482d50524f42), 3};

/* What is probed: bits of a field of the device's record, which are cleared if they are wrong; or
 * types, whose bits of wrong_constants are set. The names are those of hal-probe. */
typedef struct feature {
    const char *name;
    size_t field;
    uint32_t bits;
    bool is_constants;
} feature;

#define FEATURE(name, field, bits)                           \
    {                                                        \
        name, offsetof(hal_device_info, field), bits, false, \
    }
#define CONSTANTS(name, types)                                           \
    {                                                                    \
        name, offsetof(hal_device_info, wrong_constants), (types), true, \
    }
static const feature features[] = {
    FEATURE("subgroups", subgroup_width, UINT32_MAX),
    FEATURE("matrix_f16", matrix_types, HAL_TYPE_BIT(HAL_TYPE_F16)),
    FEATURE("matrix_bf16", matrix_types, HAL_TYPE_BIT(HAL_TYPE_BF16)),
    FEATURE("matrix_f32", matrix_types, HAL_TYPE_BIT(HAL_TYPE_F32)),
    FEATURE("matrix_f64", matrix_types, HAL_TYPE_BIT(HAL_TYPE_F64)),
    FEATURE("atomic_64", features, HAL_FEATURE_ATOMIC_64),
    FEATURE("storage_f16", storage_types, HAL_TYPE_BIT(HAL_TYPE_F16)),
    FEATURE("timestamps", features, HAL_FEATURE_TIMESTAMPS),
    CONSTANTS("constants_f32", HAL_TYPE_BIT(HAL_TYPE_F32)),
    CONSTANTS("constants_f64", HAL_TYPE_BIT(HAL_TYPE_F64)),
    CONSTANTS("constants_i32", HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32)),
    CONSTANTS("constants_i64", HAL_TYPE_BIT(HAL_TYPE_I64) | HAL_TYPE_BIT(HAL_TYPE_U64)),
};
enum { FEATURES = sizeof features / sizeof features[0] };

/* A process of hal-probe. */
typedef struct probe_child {
    pid_t process;
    int output; /* the pipe from its standard output */
    char text[OUTPUT_BYTES];
    size_t length;
    uint32_t lines;
    int state;    /* of waitpid; 0 where another thread of the program has waited for it */
    bool is_late; /* a step took longer than the limit */
    bool is_gone;
} probe_child;

/* What a process of hal-probe brought. */
typedef enum child_result {
    CHILD_FAILED,  /* no verdict, for a reason that may pass */
    CHILD_ENDED,   /* hal-probe has nothing more to say about this driver */
    CHILD_ANSWERED /* another process may judge what is left */
} child_result;

/* What all of them brought. */
typedef struct judgement {
    hal_text findings;
    bool is_judged;
    bool is_lasting; /* another process would come to the same */
    char end[64];    /* of the last process */
} judgement;

static uint32_t *feature_field(hal_device_info *info, const feature *of)
{
    return (uint32_t *)(void *)((char *)info + of->field);
}

/* Milliseconds for each step of hal-probe; 0: nothing is probed. */
static uint64_t limit_ms(void)
{
    const char *asked = secure_getenv("HAL_PROBE");
    if (hal_process_is_secure() || (asked && strcmp(asked, "off") == 0)) {
        return 0;
    }
    if (!asked || !*asked) {
        return DEFAULT_LIMIT_MS;
    }
    if (asked[strspn(asked, "0123456789")] != 0) {
        hal_log(HAL_LOG_WARN, "HAL_PROBE: expected off or milliseconds, got \"%s\"; %u are taken",
                asked, DEFAULT_LIMIT_MS);
        return DEFAULT_LIMIT_MS;
    }
    const unsigned long long limit = strtoull(asked, NULL, 10);
    return limit < MOST_LIMIT_MS ? limit : MOST_LIMIT_MS;
}

/* Whether hal-probe gets a variable: not what would log, record, fail or probe. The quirks of a
 * plugin decide what its driver is asked. */
static bool is_for_child(const char *variable)
{
    const size_t length = strcspn(variable, "=");
    return strncmp(variable, "HAL_", 4) != 0 || strncmp(variable, "HAL_CACHE_DIR=", 14) == 0 ||
           (length > 7 && strncmp(variable + length - 7, "_QUIRKS", 7) == 0);
}

/* The environment of the child. Null without memory. */
static char **child_environment(char *plugin_path)
{
    char **environment = hal_environment();
    static char off[] = "HAL_PROBE=off";
    size_t count = 0, kept = 0;
    while (environment[count]) {
        count++;
    }
    char **made = calloc(count + 3, sizeof *made);
    /* Another thread may take variables out meanwhile. */
    for (size_t i = 0; made && i < count && environment[i]; i++) {
        if (is_for_child(environment[i])) {
            made[kept++] = environment[i];
        }
    }
    if (made) {
        made[kept++] = off;
        made[kept] = plugin_path;
    }
    return made;
}

/* The standard streams of the child. Returns 0 or an errno. */
static int child_streams(posix_spawn_file_actions_t *actions, int output)
{
    int error = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (error == 0) {
        error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    }
    return error ? error : posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
}

/* Returns 0 or an errno. */
static int child_spawn(probe_child *child, char *program, char **arguments, char **environment)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    int error = hal_pipe(ends);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = child_streams(&actions, ends[1]);
        if (error == 0) {
            error = posix_spawn(&child->process, program, &actions, NULL, arguments, environment);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
    }
    child->output = ends[0];
    return error;
}

/* Returns 0 or an errno. */
static int child_start(probe_child *child, char *program, const hal_module *module, uint32_t index,
                       const int *wanted)
{
    char *arguments[FEATURES + 3] = {program};
    int count = 2, error = ENOMEM;
    hal_text path = {0}, device = {0};
    hal_text_add(&path, "HAL_PLUGIN_PATH=%s", module->path);
    hal_text_add(&device, "%s:%u", module->table.name, index);
    arguments[1] = device.data;
    for (int i = 0; i < FEATURES; i++) {
        if (wanted[i]) {
            arguments[count++] = (char *)(uintptr_t)features[i].name;
        }
    }
    char **environment = child_environment(path.data);
    if (!path.failed && !device.failed && environment) {
        error = child_spawn(child, program, arguments, environment);
    }
    free(environment);
    hal_text_free(&path);
    hal_text_free(&device);
    return error;
}

/* Keeps what there is room for. Returns 0 when the child has closed its output. */
static bool child_read(probe_child *child)
{
    char part[512];
    const ssize_t got = read(child->output, part, sizeof part);
    if (got <= 0) {
        return got < 0 && errno == EINTR;
    }
    const size_t room = sizeof child->text - 1 - child->length;
    const size_t kept = (size_t)got < room ? (size_t)got : room;
    for (size_t i = 0; i < kept; i++) {
        child->lines += part[i] == '\n';
    }
    memcpy(child->text + child->length, part, kept);
    child->length += kept;
    return true;
}

/* Returns 0 when the child has not ended in time. */
static bool child_wait(probe_child *child, uint64_t deadline)
{
    for (;;) {
        const pid_t ended = waitpid(child->process, &child->state, WNOHANG);
        if (ended > 0 || (ended < 0 && errno != EINTR)) {
            return true;
        }
        if (hal_clock_ns() >= deadline) {
            return false;
        }
        hal_pause_ns(1000000);
    }
}

/* Reads what the child writes until it ends. Each of its lines, "begin" or an answer, restarts
 * the time limit. A child that outlives SIGKILL by AFTER_KILL_NS is left behind. */
static void child_follow(probe_child *child, uint64_t limit)
{
    struct pollfd ready = {.fd = child->output, .events = POLLIN};
    uint64_t now = hal_clock_ns(), deadline = now + limit * 1000000u;
    for (bool is_open = true; is_open && now < deadline; now = hal_clock_ns()) {
        const uint32_t lines = child->lines;
        const int count = poll(&ready, 1, (int)((deadline - now) / 1000000u) + 1);
        is_open = count > 0 ? child_read(child) : count == 0 || errno == EINTR;
        if (child->lines != lines && child->lines <= 2 * FEATURES) {
            deadline = hal_clock_ns() + limit * 1000000u;
        }
    }
    close(child->output);
    child->is_gone = child_wait(child, deadline);
    if (!child->is_gone) {
        child->is_late = 1;
        kill(child->process, SIGKILL);
        child->is_gone = child_wait(child, hal_clock_ns() + AFTER_KILL_NS);
    }
}

/* Whether someone else has ended the child: a terminal, a supervisor, or the system without
 * memory. */
static bool child_is_killed(const probe_child *child)
{
    const int by = WIFSIGNALED(child->state) ? WTERMSIG(child->state) : 0;
    return !child->is_late &&
           (by == SIGKILL || by == SIGTERM || by == SIGINT || by == SIGQUIT || by == SIGHUP);
}

static const char *line_next(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/* Takes the answers out of `wanted` and adds findings. */
static child_result child_judge(const probe_child *child, int *wanted, hal_text *findings)
{
    int begun = -1, answers = 0, is_short = 0, is_done = 0, at = 0;
    for (const char *line = child->text; *line; line = line_next(line)) {
        char word[16] = "", name[32] = "";
        const int parts = sscanf(line, "%15s %31[a-z0-9_]%n", word, name, &at);
        is_done |= strncmp(line, "done\n", 5) == 0;
        for (int i = 0; parts == 2 && i < FEATURES; i++) {
            if (!wanted[i] || strcmp(name, features[i].name) != 0) {
                continue;
            }
            if (strcmp(word, "begin") == 0) {
                begun = i;
                continue;
            }
            wanted[i] = 0;
            begun = -1;
            answers++;
            is_short |= strcmp(word, "unknown") == 0;
            if (strcmp(word, "wrong") == 0) {
                hal_text_add(findings, "%s:%.*s\n", name, (int)strcspn(line + at, "\n"), line + at);
            }
        }
    }
    if (is_short || child_is_killed(child)) {
        return CHILD_FAILED;
    }
    if (begun >= 0) {
        hal_text_add(findings, "%s: %s\n", features[begun].name,
                     child->is_late              ? "its test did not end within the time limit"
                     : WIFSIGNALED(child->state) ? "its test crashed"
                                                 : "its test ended the process");
        wanted[begun] = 0;
        answers++;
    }
    const bool is_refused = WIFEXITED(child->state) && WEXITSTATUS(child->state) == 1;
    return !child->is_gone         ? CHILD_FAILED
           : answers > 0           ? CHILD_ANSWERED
           : is_done || is_refused ? CHILD_ENDED
                                   : CHILD_FAILED;
}

/* How the process ended, for the log. */
static void child_describe(const probe_child *child, char *text, size_t bytes)
{
    if (!child->is_gone) {
        snprintf(text, bytes, "process %ld could not be killed", (long)child->process);
    } else if (child->is_late) {
        snprintf(text, bytes, "the time limit");
    } else if (WIFSIGNALED(child->state)) {
        snprintf(text, bytes, "signal %d", WTERMSIG(child->state));
    } else {
        snprintf(text, bytes, "exit status %d", WEXITSTATUS(child->state));
    }
}

/* Runs hal-probe, again without the feature whose test ended it. */
static void features_judge(char *program, const hal_module *module, uint32_t index,
                           const int *claimed, uint64_t limit, judgement *made)
{
    HAL_UNCANCELLED;
    int wanted[FEATURES], left = 0;
    child_result result;
    memcpy(wanted, claimed, sizeof wanted);
    made->is_lasting = 1;
    do {
        probe_child *child = calloc(1, sizeof *child);
        const int error = child ? child_start(child, program, module, index, wanted) : ENOMEM;
        result = CHILD_FAILED;
        if (error != 0) {
            snprintf(made->end, sizeof made->end, "hal-probe cannot be started: errno %d", error);
        } else {
            child_follow(child, limit);
            result = child_judge(child, wanted, &made->findings);
            child_describe(child, made->end, sizeof made->end);
            made->is_lasting &= !child->is_late || limit >= DEFAULT_LIMIT_MS;
        }
        free(child);
        left = 0;
        for (int i = 0; i < FEATURES; i++) {
            left |= wanted[i];
        }
    } while (result == CHILD_ANSWERED && left);
    made->is_judged = !left;
    made->is_lasting &= result != CHILD_FAILED;
}

/* Takes what the lines of a verdict name out of the record. */
static void verdict_apply(const char *verdict, hal_device_info *info)
{
    for (int i = 0; i < FEATURES; i++) {
        const size_t length = strlen(features[i].name);
        for (const char *line = verdict; *line; line = line_next(line)) {
            if (strncmp(line, features[i].name, length) == 0 && line[length] == ':') {
                uint32_t *field = feature_field(info, &features[i]);
                *field = features[i].is_constants ? *field | features[i].bits
                                                  : *field & ~features[i].bits;
            }
        }
    }
    info->matrix_types = info->subgroup_width ? info->matrix_types : 0;
}

/* The verdict of the compile cache, or of the installation: its folder `verdicts` is a compile
 * cache that is only read. */
static hal_status verdict_load(const hal_cache_scope *scope, void **data, uint64_t *bytes)
{
    if (hal_cache_load(scope->device_id, verdict_key, data, bytes) == HAL_OK) {
        return HAL_OK;
    }
    char *folder = hal_search_own_file("verdicts");
    const hal_status status =
        folder ? hal_cache_load_from(folder, verdict_key, data, bytes) : HAL_ERROR_NOT_FOUND;
    free(folder);
    return status;
}

/* The verdict that there is, or a new one. That goes to the cache unless another process might come
 * to another one; also where a driver cannot be opened in another process, as each process would
 * try it again. Null without one. */
static char *verdict_get(const hal_module *module, uint32_t index, const hal_cache_scope *scope,
                         const int *claimed, uint64_t limit)
{
    void *data = NULL;
    uint64_t bytes = 0;
    if (verdict_load(scope, &data, &bytes) == HAL_OK) {
        char *kept = strndup(data, bytes);
        free(data);
        return kept;
    }
    char *program = hal_search_own_file("hal-probe");
    if (!program || access(program, X_OK) != 0) {
        free(program);
        return NULL;
    }
    judgement found = {.is_judged = 0};
    const uint64_t begin = hal_clock_ns();
    features_judge(program, module, index, claimed, limit, &found);
    hal_log(HAL_LOG_INFO, "%s:%u: %s the driver %s in %s ms (%s)", module->table.name, index,
            found.is_judged ? "probed" : "could not probe", scope->identity,
            HAL_NUMBER((double)(hal_clock_ns() - begin) / 1e6, 1), found.end);
    char *made = found.findings.failed ? NULL : strdup(hal_text_get(&found.findings));
    if (made && found.is_lasting) {
        hal_cache_store(scope->device_id, verdict_key, made, strlen(made));
    }
    hal_text_free(&found.findings);
    free(program);
    return made;
}

/* Whether the device claims the feature, or what would compute with the constants. Of processors
 * only a driver's compiler is asked. */
static bool is_claimed(hal_device_info *info, const feature *of)
{
    if (info->kind == HAL_DEVICE_CPU &&
        !(of->is_constants && (info->features & HAL_FEATURE_DRIVER_COMPILES))) {
        return false;
    }
    const uint32_t claims = of->is_constants ? info->arithmetic_types & ~info->wrong_constants
                                             : *feature_field(info, of);
    return (claims & of->bits) != 0;
}

void hal_probe_device(const hal_module *module, uint32_t index, const hal_cache_scope *scope,
                      hal_device_info *info, char **findings)
{
    int claimed[FEATURES], is_any = 0;
    *findings = NULL;
    for (int i = 0; i < FEATURES; i++) {
        claimed[i] = is_claimed(info, &features[i]);
        is_any |= claimed[i];
    }
    if (!is_any || !hal_cache_is_on()) {
        return;
    }
    const uint64_t limit = limit_ms();
    if (!limit) {
        return;
    }
    const hal_cache_scope *outer = hal_cache_enter(scope);
    *findings = verdict_get(module, index, scope, claimed, limit);
    hal_cache_enter(outer);
    if (*findings) {
        verdict_apply(*findings, info);
    }
    for (const char *line = *findings; line && *line; line = line_next(line)) {
        hal_log(HAL_LOG_WARN, "%s:%u: done without, as the driver gets it wrong: %.*s",
                module->table.name, index, (int)strcspn(line, "\n"), line);
    }
}
