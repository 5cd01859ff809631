/* Waits of native matrix products, see gemm/tile/wait.h. */
#include "gemm/tile/wait.h"

#include <string.h>

void cuda_gemm_write_wait_header(kit_text *text, uint8_t seconds)
{
    if (seconds > 0) {
        kit_text_add(text, ".extern .func __assertfail(.param .b64 text, .param .b64 file, "
                           ".param .b32 line, .param .b64 function, .param .b64 size);\n");
    }
}

static void write_string(kit_text *t, const char *name, const char *string)
{
    kit_text_add(t, ".global .align 1 .b8 %s[%zu] = {", name, strlen(string) + 1);
    for (const char *at = string; *at != 0; at++) {
        kit_text_add(t, "%u, ", (unsigned)*at);
    }
    kit_text_add(t, "0};\n");
}

void cuda_gemm_write_wait_begin(kit_text *t, uint8_t seconds, const char *name)
{
    if (seconds > 0) {
        kit_text_add(t, "{\n.reg .b64 %%since, %%now;\n.reg .pred %%early;\n"
                        "mov.u64 %%since, %%globaltimer;\n");
        write_string(t, "message", name);
        write_string(t, "of", "gemm");
    }
    kit_text_add(t, "%s:\n", name);
}

void cuda_gemm_write_wait_end(kit_text *t, uint8_t seconds, const char *name)
{
    if (seconds == 0) {
        kit_text_add(t, "@!%%done bra %s;\n", name);
        return;
    }
    kit_text_add(t,
                 "@%%done bra %s_ENDED;\n"
                 "mov.u64 %%now, %%globaltimer;\nsub.u64 %%now, %%now, %%since;\n"
                 "setp.lt.u64 %%early, %%now, %u000000000;\n@%%early bra %s;\n"
                 "mov.u64 %%since, message;\ncvta.global.u64 %%since, %%since;\n"
                 "mov.u64 %%now, of;\ncvta.global.u64 %%now, %%now;\n"
                 "{\n.param .b64 text, file, function, size;\n.param .b32 line;\n"
                 "st.param.b64 [text], %%since;\nst.param.b64 [file], %%now;\n"
                 "st.param.b32 [line], 0;\nst.param.b64 [function], %%now;\n"
                 "st.param.b64 [size], 1;\n"
                 "call.uni __assertfail, (text, file, line, function, size);\n}\ntrap;\n"
                 "%s_ENDED:\n}\n",
                 name, seconds, name, name);
}
