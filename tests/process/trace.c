/* Traces and dumps: log lines of a program without standard error do not reach them, processes that
 * share HAL_TRACE write a file each, and a limit on the size of files ends no process.
 * devices: cpu */
#include "process.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL_BYTES = 300 };

static char folder[] = "/tmp/process-trace-XXXXXX";

static void work(int ready, int go)
{
    process_device opened = process_open();
    char byte = 0;
    if (ready >= 0 && (write(ready, &byte, 1) != 1 || read(go, &byte, 1) < 0)) {
        _exit(2);
    }
    process_work(&opened, 0, 1000);
    process_close(&opened);
    exit(0);
}

static int state_of(pid_t child)
{
    int state = -1;
    waitpid(child, &state, 0);
    return state;
}

/* A file that begins as JSON and ends as such, without lines of the log. */
static void file_check(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = 0;
    if (file) {
        fclose(file);
    }
    if (length < 100 || strncmp(text, "[\n{", 3) != 0 || strcmp(text + length - 3, "\n]\n") != 0 ||
        strstr(text, "halyard ") || strstr(text, "}{") || strstr(text, "]\n,")) {
        process_fail("%s: expected a whole trace, got %zu bytes: %.80s", path, length, text);
    }
}

/* Checks and removes the files of the folder. */
static int files_check(bool are_whole)
{
    int count = 0;
    DIR *files = opendir(folder);
    for (const struct dirent *entry; files && (entry = readdir(files));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') {
            count++;
            if (are_whole) {
                file_check(path);
            }
            unlink(path);
        }
    }
    if (files) {
        closedir(files);
    }
    return count;
}

static void without_standard_error(void)
{
    const pid_t child = fork();
    if (child == 0) {
        close(2);
        setenv("HAL_LOG", "debug", 1);
        work(-1, -1);
    }
    const int state = state_of(child);
    if (state != 0 || files_check(true) != 1) {
        process_fail("without standard error: state %d", state);
    }
}

static void two_processes(void)
{
    int ready[2], go[2];
    pid_t children[2];
    if (pipe(ready) != 0 || pipe(go) != 0) {
        exit(PROCESS_SKIP);
    }
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(go[1]);
            work(ready[1], go[0]);
        }
    }
    char bytes[2];
    for (int i = 0; i < 2; i++) {
        if (read(ready[0], bytes, 1) != 1) {
            process_fail("a process did not open the device");
        }
    }
    close(go[1]);
    for (int i = 0; i < 2; i++) {
        const int state = state_of(children[i]);
        if (state != 0) {
            process_fail("process %d: state %d", i, state);
        }
    }
    if (files_check(true) != 2) {
        process_fail("two processes: expected a trace each");
    }
}

static void small_files(const char *variable, const char *value)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {SMALL_BYTES, SMALL_BYTES};
        setrlimit(RLIMIT_FSIZE, &limit);
        setenv(variable, value, 1);
        process_device opened = {0};
        const hal_status status = hal_device_open(NULL, &opened.device);
        if (status == HAL_OK && hal_queue_create(opened.device, &opened.queue) == HAL_OK &&
            ops_context_create(opened.queue, &opened.ops) == HAL_OK) {
            process_work(&opened, 0, 1000);
        }
        _exit(0);
    }
    const int state = state_of(child);
    if (WIFSIGNALED(state)) {
        process_fail("%s=%s: signal %d at a limit of %d bytes", variable, value, WTERMSIG(state),
                     SMALL_BYTES);
    }
    files_check(false);
}

int main(void)
{
    char path[64];
    if (!mkdtemp(folder)) {
        return PROCESS_SKIP;
    }
    snprintf(path, sizeof path, "%s/trace.json", folder);
    setenv("HAL_TRACE", path, 1);
    without_standard_error();
    two_processes();
    small_files("HAL_TRACE", path);
    unsetenv("HAL_TRACE");
    setenv("HAL_DUMP_DIR", folder, 1);
    small_files("HAL_DUMP", "batch");
    rmdir(folder);
    return process_end();
}
