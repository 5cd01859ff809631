/* onnx-cases FILE DEVICE [NAME]: runs the ONNX standard's node tests on a device and prints a line
 * for each: pass, fail or "not covered", and the reason. Ends with 0 if none failed. With NAME: the
 * cases whose name contains it. */
#include "graph.h"

#include <stdio.h>
#include <string.h>

static int cases_run(ops_context *context, onnx_file *file, const char *wanted)
{
    static const char *const words[ONNX_VERDICT_COUNT] = {"pass", "fail", "not covered"};
    uint32_t counts[ONNX_VERDICT_COUNT] = {0};
    for (uint32_t i = 0; i < file->case_count; i++) {
        onnx_case item;
        if (!onnx_case_read(file, &item)) {
            return 1;
        }
        if (strstr(item.name, wanted)) {
            char reason[512] = "";
            const onnx_verdict verdict = onnx_run(context, &item, reason, sizeof reason);
            counts[verdict]++;
            printf("%s: %s%s%s\n", words[verdict], item.name, *reason ? ": " : "", reason);
            fflush(stdout);
        }
        onnx_case_free(&item);
    }
    printf("%u pass, %u fail, %u not covered\n", counts[ONNX_PASS], counts[ONNX_FAIL],
           counts[ONNX_NOT_COVERED]);
    return counts[ONNX_FAIL] > 0;
}

int main(int argument_count, char **arguments)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    onnx_file file = {0};
    if (argument_count < 3) {
        fputs("usage: onnx-cases FILE DEVICE [NAME]\n", stderr);
        return 2;
    }
    int failed = 1;
    if (hal_device_open(arguments[2], &device) || hal_queue_create(device, &queue) ||
        ops_context_create(queue, &context)) {
        fprintf(stderr, "onnx-cases: %s\n", hal_status_message());
    } else if (onnx_file_open(arguments[1], &file)) {
        printf("%s\n", hal_device_get_info(device)->name);
        failed = cases_run(context, &file, argument_count > 3 ? arguments[3] : "");
    }
    onnx_file_close(&file);
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return failed;
}
