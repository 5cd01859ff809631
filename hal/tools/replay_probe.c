/* Kernels that store their values, see replay_probe.h. */
#include "replay_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool replay_probe_fits(const hal_ir_record *record)
{
    return record->type != HAL_TYPE_NONE && record->width == 1 && record->opcode != HAL_IR_VAR;
}

static bool is_record(const char *line)
{
    return line[0] == ' ';
}

/* The work-item's first word, %qb. */
static void print_item(FILE *to, const hal_ir_kernel *ir, uint32_t words)
{
    static const char axes[] = "xyz";
    for (uint32_t i = 0; i < 3; i++) {
        fprintf(to,
                "%%ql%c = local_id u32 %c\n%%qg%c = group_id u32 %c\n%%qn%c = group_count u32 %c\n"
                "%%qs%c = constant u32 %u\n",
                axes[i], axes[i], axes[i], axes[i], axes[i], axes[i], axes[i], ir->group_size[i]);
    }
    fprintf(to,
            "%%qi = constant u32 %u\n%%qw = constant u32 %u\n"
            "%%q1 = mul u32 %%qgz, %%qny\n%%q2 = add u32 %%q1, %%qgy\n%%q3 = mul u32 %%q2, %%qnx\n"
            "%%q4 = add u32 %%q3, %%qgx\n%%q5 = mul u32 %%q4, %%qi\n"
            "%%q6 = mul u32 %%qlz, %%qsy\n%%q7 = add u32 %%q6, %%qly\n%%q8 = mul u32 %%q7, %%qsx\n"
            "%%q9 = add u32 %%q8, %%qlx\n%%qa = add u32 %%q5, %%q9\n%%qb = mul u32 %%qa, %%qw\n",
            hal_ir_group_items(ir), words);
}

/* Stores the value of a record as the n-th of the work-item. */
static void print_store(FILE *to, const hal_ir_record *record, uint32_t index, uint32_t n)
{
    char word[24];
    snprintf(word, sizeof word, "%%%u", index);
    if (hal_type_size(record->type) == 8) {
        if (record->type != HAL_TYPE_U64) {
            fprintf(to, "%%qu%u = bitcast u64 %%%u\n", index, index);
            snprintf(word, sizeof word, "%%qu%u", index);
        }
        fprintf(to,
                "%%qv%u = cast u32 %s\n%%qk%u = constant u64 32\n%%qt%u = shr u64 %s, %%qk%u\n"
                "%%qh%u = cast u32 %%qt%u\nstore qprobe[%%qb + %u], %%qh%u\n",
                index, word, index, index, word, index, index, index, 2 * n + 1, index);
        snprintf(word, sizeof word, "%%qv%u", index);
    } else if (record->type != HAL_TYPE_U32) {
        fprintf(to, "%%qv%u = %s u32 %%%u\n", index,
                record->type == HAL_TYPE_BOOL ? "cast" : "bitcast", index);
        snprintf(word, sizeof word, "%%qv%u", index);
    }
    fprintf(to, "store qprobe[%%qb + %u], %s\n", 2 * n, word);
}

static void print_probed(FILE *to, const char *text, const hal_ir_kernel *ir,
                         const uint32_t *records, uint32_t count)
{
    uint32_t index = 0;
    bool is_declared = false;
    for (const char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        const bool is_head = !is_record(line);
        if (!is_declared &&
            (!is_head || strncmp(line, "shared", 6) == 0 || strncmp(line, "scalar", 6) == 0)) {
            fprintf(to, "binding qprobe u32 write\n");
            is_declared = true;
        }
        if (!is_head && index == 0) {
            print_item(to, ir, REPLAY_PROBE_WORDS * count);
        }
        fprintf(to, "%.*s\n", (int)(end - line), line);
        for (uint32_t n = 0; !is_head && n < count; n++) {
            if (records[n] == index) {
                print_store(to, &ir->records[index], index, n);
            }
        }
        index += !is_head;
    }
}

hal_status replay_probe_text(const hal_ir_kernel *ir, const uint32_t *records, uint32_t count,
                             char **text)
{
    char *plain = NULL;
    size_t bytes = 0;
    *text = NULL;
    HAL_TRY(hal_ir_print(ir, &plain));
    FILE *to = open_memstream(text, &bytes);
    if (to) {
        print_probed(to, plain, ir, records, count);
    }
    free(plain);
    return to && fclose(to) == 0
               ? HAL_OK
               : hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a probed kernel");
}

char *replay_probe_line(const hal_ir_kernel *ir, uint32_t record)
{
    char *text = NULL;
    uint32_t index = 0;
    if (hal_ir_print(ir, &text) != HAL_OK) {
        return NULL;
    }
    char *found = NULL;
    for (char *line = text, *end; *line && !found; line = end + 1) {
        end = strchr(line, '\n');
        if (is_record(line) && index++ == record) {
            line += strspn(line, " ");
            found = strndup(line, (size_t)(end - line));
        }
    }
    free(text);
    return found;
}
