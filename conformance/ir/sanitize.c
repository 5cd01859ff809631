/* sanitize.c: HAL_SANITIZE on the device: kernels with a planted fault, each of which has to be
 * found and named, and the same kernels without it, which have no finding. */
#include "case/cases.h"
#include "ir/fixture.h"
#include "ir/sanitize_faults.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS = 4, FINDINGS = 4, LINE_BYTES = 1024 };

/* The findings of one dispatch. The layer logs on the thread that submits. */
typedef struct heard {
    char lines[FINDINGS][LINE_BYTES];
    uint32_t count;
    uint32_t unchecked; /* warnings that a kernel is not checked */
} heard;

static void hear_finding(void *user, hal_log_level level, const char *message)
{
    heard *all = user;
    static const char begin[] = "sanitize: ";
    if (strncmp(message, begin, sizeof begin - 1) != 0) {
        return;
    }
    if (level != HAL_LOG_ERROR) {
        all->unchecked++;
        snprintf(all->lines[0], LINE_BYTES, "%s", message);
    } else if (all->count < FINDINGS) {
        snprintf(all->lines[all->count++], LINE_BYTES, "%s", message);
    }
}

static hal_kernel *planted_kernel(case_run *run, const sanitize_fault *fault, const char *part)
{
    char text[SANITIZE_TEXT_BYTES];
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    sanitize_fault_text(fault, part, text);
    case_ok(run, hal_ir_parse(text, strlen(text), &ir), "hal_ir_parse");
    const hal_status status = hal_kernel_create(run->device, ir, &kernel);
    hal_ir_kernel_destroy(ir);
    case_ok(run, status, "hal_kernel_create");
    case_own_kernel(run, kernel);
    return kernel;
}

/* Runs the kernel with or without its fault. */
static void planted_run(case_run *run, const sanitize_fault *fault, bool is_wrong, heard *all)
{
    static const float one = 1;
    const uint32_t grid[3] = {GROUPS, 1, 1};
    hal_range bindings[SANITIZE_BINDINGS];
    hal_kernel *kernel = planted_kernel(run, fault, is_wrong ? fault->wrong : fault->right);
    for (uint32_t i = 0; i < SANITIZE_BINDINGS; i++) {
        const uint64_t bytes = fault->bytes[i] && is_wrong ? fault->bytes[i] : 1024;
        uint32_t bits = 1;
        hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
        bindings[i] = (hal_range){buffer, 0, bytes};
        if (i < 2) {
            memcpy(&bits, &one, sizeof bits);
        }
        const hal_range filled = {buffer, 0, bytes - (is_wrong ? fault->unwritten[i] : 0)};
        if (filled.length > 0) {
            case_ok(run, hal_queue_fill(run->queue, filled, bits), "hal_queue_fill");
        }
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    hal_log_set_callback(hear_finding, all, HAL_LOG_WARN);
    hal_status status =
        hal_queue_dispatch(run->queue, kernel, grid, bindings, SANITIZE_BINDINGS, NULL, 0);
    status = status == HAL_OK ? hal_queue_wait(run->queue, HAL_WAIT_FOREVER) : status;
    hal_log_set_callback(NULL, NULL, 0);
    case_ok(run, status, "running the kernel");
}

static void check_fault(case_run *run, const void *parameters)
{
    const sanitize_fault *fault = *(const sanitize_fault *const *)parameters;
    heard right = {0}, wrong = {0};
    planted_run(run, fault, false, &right);
    case_check(run, right.count == 0 && right.unchecked == 0,
               "without the fault: expected no finding, got: %s", right.lines[0]);
    planted_run(run, fault, true, &wrong);
    case_check(run, wrong.unchecked == 0, "%s", wrong.lines[0]);
    case_check(run, wrong.count > 0, "expected a finding of \"%s\", got none", fault->words[0]);
    for (uint32_t i = 0; i < SANITIZE_WORDS && fault->words[i]; i++) {
        case_check(run, strstr(wrong.lines[0], fault->words[i]) != NULL,
                   "expected a finding with \"%s\", got: %s", fault->words[i], wrong.lines[0]);
    }
    /* Both accesses of a race may find it. */
    const bool is_race = strcmp(fault->check, "race") == 0;
    case_check(run, wrong.count == 1 || is_race || fault->has_more,
               "expected one finding, got %u; the second: %s", wrong.count, wrong.lines[1]);
}

void cases_ir_sanitize(case_list *list)
{
    for (size_t i = 0; i < sanitize_fault_count; i++) {
        const sanitize_fault *fault = &sanitize_faults[i];
        case_add(list, check_fault, &fault, sizeof fault, "sanitize/%s", fault->name);
    }
}
