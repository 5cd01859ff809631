/* Promise 26: results, text for compilers, the IR's text, messages and the trace do not depend on
 * the locale. */
#include "process.h"

#include "case/comma_locale.h"

#include <dirent.h>
#include <limits.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

static hal_ir_kernel *kernel_build(void)
{
    hal_ir_builder *builder = NULL;
    hal_ir_kernel *kernel = NULL;
    PROCESS_OK(hal_ir_builder_create("scale", &builder));
    hal_ir_group_size(builder, 64, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(builder, "x", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value i = hal_ir_global_id(builder, 0);
    hal_ir_store(builder, x, i,
                 hal_ir_mul(builder, hal_ir_load(builder, x, i), hal_ir_f32(builder, -1.75F)));
    PROCESS_OK(hal_ir_builder_finish(builder, &kernel));
    return kernel;
}

static char *kernel_text(const hal_ir_kernel *kernel)
{
    char *text = NULL;
    PROCESS_OK(hal_ir_print(kernel, &text));
    return text;
}

/* A comma of JSON is followed by a quote, a brace or a newline here, never by a digit. */
static void trace_check(const char *folder)
{
    char path[PATH_MAX] = "";
    DIR *files = opendir(folder);
    for (const struct dirent *entry; files && (entry = readdir(files));) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    }
    if (files) {
        closedir(files);
    }
    FILE *file = fopen(path, "r");
    int c = 0, before = 0;
    long at = 0;
    bool in_string = false;
    while (file && (c = fgetc(file)) != EOF) {
        in_string = c == '"' && before != '\\' ? !in_string : in_string;
        if (!in_string && before == ',' && c >= '0' && c <= '9') {
            process_fail("trace: byte %ld: a decimal comma", at);
            break;
        }
        before = c;
        at++;
    }
    if (at < 100) {
        process_fail("trace: %ld bytes", at);
    }
    if (file) {
        fclose(file);
        unlink(path);
    }
    rmdir(folder);
}

static hal_status uniform_fails(const process_device *opened)
{
    ops_tensor y = {0};
    PROCESS_OK(ops_tensor_create(opened->ops, HAL_TYPE_F32, 1, (int64_t[]){4}, &y));
    const hal_status status = ops_random_uniform(opened->ops, (ops_random_key){1, 2}, 2.5, 1.5, &y);
    ops_tensor_release(&y);
    return status;
}

int main(void)
{
    uint64_t expected[PROCESS_WORKS];
    char folder[] = "/tmp/process-trace-XXXXXX", trace[64];
    if (!mkdtemp(folder)) {
        return PROCESS_SKIP;
    }
    snprintf(trace, sizeof trace, "%s/trace.json", folder);
    setenv("HAL_TRACE", trace, 1);
    setenv("HAL_CACHE_DIR", "off", 1); /* every kernel is compiled in either locale */
    process_device opened = process_open();
    for (int i = 0; i < PROCESS_WORKS; i++) {
        expected[i] = process_has_work(i) ? process_work(&opened, i, 1000) : 0;
    }
    process_close(&opened);
    hal_ir_kernel *kernel = kernel_build();
    char *text = kernel_text(kernel);
    if (!comma_locale_set()) {
        puts("the C library takes no locale of the test");
        return PROCESS_SKIP;
    }
    opened = process_open();
    for (int i = 0; i < PROCESS_WORKS; i++) {
        if (process_has_work(i) && process_work(&opened, i, 1000) != expected[i]) {
            process_fail("%s: other bits under a locale with a decimal comma",
                         process_work_name(i));
        }
    }
    if (uniform_fails(&opened) == HAL_OK || !strstr(hal_status_message(), "low 2.5")) {
        process_fail("a message under the locale: %s", hal_status_message());
    }
    char *again = kernel_text(kernel);
    hal_ir_kernel *parsed = NULL;
    if (strcmp(text, again) != 0) {
        process_fail("other text of a kernel:\n%s", again);
    }
    PROCESS_OK(hal_ir_parse(again, strlen(again), &parsed));
    if (strcmp(localeconv()->decimal_point, ",") != 0) {
        process_fail("the locale was changed");
    }
    hal_ir_kernel_destroy(kernel);
    hal_ir_kernel_destroy(parsed);
    free(text);
    free(again);
    process_close(&opened);
    trace_check(folder);
    return process_end();
}
