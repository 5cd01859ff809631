/* second_opinion.c: the op library's kernels in Metal Shading Language twice, as the metal plugin
 * writes them and as spirv-cross makes them of the vulkan plugin's SPIR-V, executed by the compiler
 * of the stand-in (tests/metal) on the same data: their memories are equal, bit by bit.
 *
 * Arguments are small numbers, which are sizes and strides that fit into every buffer. A kernel
 * whose arguments do not fit into 128 bytes of push constants is left out, and one that writes
 * nothing with such numbers. */
#include <msl.h>

#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus.h"
#include "languages.h"

enum { BYTES = 1 << 20, PUSH_BYTES = 128, WANTED = 50, EVERY = 4, FAILED = 1, SKIPPED = 77 };

typedef struct opinion {
    const char *tool; /* spirv-cross */
    char folder[64];
    uint32_t seen, equal, differ, left_out;
} opinion;

/* What both kernels get: memory of each binding, then the scalars. */
typedef struct arguments {
    uint8_t *memories[HAL_IR_MAX_BINDINGS];
    uint8_t scalars[HAL_IR_MAX_SCALAR_BYTES];
} arguments;

/* Numbers near 1 for floats, indices for integers. */
static void fill(hal_type type, uint8_t *memory)
{
    uint32_t state = 12345;
    const uint32_t size = hal_type_size(type);
    for (uint32_t i = 0; i < BYTES / size; i++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t random = state >> 8;
        uint64_t bits = random % 6;
        if (type == HAL_TYPE_F32) {
            bits = 0x3f000000u + (random & 0xffffffu) + (random << 31);
        } else if (type == HAL_TYPE_F16) {
            bits = 0x3800u + (random & 0x7ffu) + (random & 0x8000u);
        } else if (type == HAL_TYPE_BF16) {
            bits = 0x3f00u + (random & 0xffu) + (random & 0x8000u);
        } else if (type == HAL_TYPE_BOOL) {
            bits = random & 1u;
        }
        memcpy(memory + (size_t)size * i, &bits, size);
    }
}

static arguments *arguments_create(const hal_ir_kernel *kernel)
{
    arguments *made = calloc(1, sizeof *made);
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        made->memories[i] = aligned_alloc(256, BYTES);
        fill(kernel->memories[i].type, made->memories[i]);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        const hal_ir_scalar *scalar = &kernel->scalars[i];
        const float one = 1.25f;
        const uint64_t eight = 8; /* keeps vectors aligned */
        memcpy(made->scalars + scalar->offset,
               scalar->type == HAL_TYPE_F32 ? (const void *)&one : &eight,
               hal_type_size(scalar->type));
    }
    return made;
}

static void arguments_destroy(arguments *made)
{
    for (uint32_t i = 0; i < HAL_IR_MAX_BINDINGS; i++) {
        free(made->memories[i]);
    }
    free(made);
}

static char *replaced(char *text, const char *word, const char *by)
{
    char *at = NULL;
    while ((at = strstr(text, word)) != NULL) {
        const size_t before = (size_t)(at - text);
        char *made = malloc(strlen(text) + strlen(by) + 1);
        sprintf(made, "%.*s%s%s", (int)before, text, by, at + strlen(word));
        free(text);
        text = made;
    }
    return text;
}

/* The functions for products of matrices, which no kernel calls, name types that the stand-in
 * lacks, as it does isunordered; a product as fma(l, r, 0) loses the sign of zero; as_type makes
 * pointers of integers. */
static char *adapted(char *text)
{
    char *begin = strstr(text, "template<typename T, int Cols");
    char *end = strstr(text, "template<typename T, int LCols");
    end = end ? strstr(end, "\n}\n") : NULL;
    if (begin && end) {
        memmove(begin, end + 3, strlen(end + 3) + 1);
    }
    text = replaced(text, "return fma(l, r, T(0));", "return l * r;");
    text = replaced(text, "return fma(T(1), l, r);", "return l + r;");
    text = replaced(text, "return fma(T(-1), r, l);", "return l - r;");
    text = replaced(text, "as_type<device ", "to_pointer<device ");
    text = replaced(text, "isunordered(", "not_ordered(");
    return replaced(text, "using namespace metal;\n",
                    "using  namespace metal;\n#pragma METAL fp contract(off)\n"
                    "inline bool not_ordered(float a, float b) { return a != a || b != b; }\n"
                    "template <typename P> inline P to_pointer(ulong place)\n"
                    "{\n    return reinterpret_cast<P>(place);\n}\n");
}

/* spirv-cross's text, malloc'ed. */
static char *translate(const opinion *o, const hal_ir_kernel *kernel)
{
    char message[256], path[128], command[512];
    size_t length = 0;
    void *words = language_vulkan(kernel, &length, message, sizeof message);
    if (!words) {
        return NULL;
    }
    snprintf(path, sizeof path, "%s/kernel.spv", o->folder);
    FILE *file = fopen(path, "wb");
    fwrite(words, 1, length, file);
    fclose(file);
    free(words);
    snprintf(command, sizeof command, "%s --msl --msl-version 20300 %s", o->tool, path);
    FILE *tool = popen(command, "r");
    char *text = calloc(1, 1 << 22);
    text[fread(text, 1, (1 << 22) - 1, tool)] = '\0';
    if (pclose(tool) != 0) {
        free(text);
        return NULL;
    }
    return adapted(text);
}

/* Runs the only function of the text. False with the reason. */
static bool execute(const char *text, const hal_ir_kernel *kernel, msl_grid *grid, char reason[512])
{
    const msl_options options = {.language = 300};
    msl_text log = {0};
    uint64_t address = 0;
    msl_library *library = msl_compile(text, &options, &log);
    snprintf(reason, 512, "%s", log.bytes ? log.bytes : "");
    free(log.bytes);
    if (!library) {
        return false;
    }
    grid->groups[0] = 2;
    grid->groups[1] = grid->groups[2] = 1;
    memcpy(grid->group_size, kernel->group_size, sizeof grid->group_size);
    const bool well = msl_execute(&library->functions[0], grid, NULL, NULL, reason, &address) == 0;
    msl_library_free(library);
    return well;
}

static bool run_ours(const hal_ir_kernel *kernel, const arguments *given, char reason[512])
{
    msl_grid grid = {0};
    size_t length = 0;
    char *text = language_metal(kernel, &length, reason, 512);
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        grid.buffers[i] = (uint64_t)(uintptr_t)given->memories[i];
    }
    grid.buffers[kernel->binding_count] = (uint64_t)(uintptr_t)given->scalars;
    const bool well = text && execute(text, kernel, &grid, reason);
    free(text);
    return well;
}

static bool run_theirs(const opinion *o, const hal_ir_kernel *kernel, const arguments *given,
                       char reason[512])
{
    uint8_t push[PUSH_BYTES] = {0};
    msl_grid grid = {.buffers = {(uint64_t)(uintptr_t)push}};
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        memcpy(push + (size_t)8 * i, &given->memories[i], 8);
    }
    memcpy(push + (size_t)8 * kernel->binding_count, given->scalars, kernel->scalar_bytes);
    snprintf(reason, 512, "spirv-cross failed");
    char *text = translate(o, kernel);
    const bool well = text && execute(text, kernel, &grid, reason);
    free(text);
    return well;
}

static void compare(void *user, const char *name, const hal_ir_kernel *kernel)
{
    opinion *o = user;
    char reason[512] = "";
    if (o->seen++ % EVERY != 0 || o->equal + o->differ >= WANTED) {
        return;
    }
    if (8 * kernel->binding_count + kernel->scalar_bytes > PUSH_BYTES) {
        o->left_out++;
        return;
    }
    arguments *before = arguments_create(kernel), *ours = arguments_create(kernel),
              *theirs = arguments_create(kernel);
    bool same = run_ours(kernel, ours, reason) && run_theirs(o, kernel, theirs, reason);
    bool changed = false;
    for (uint32_t i = 0; i < kernel->binding_count && same; i++) {
        changed |= memcmp(ours->memories[i], before->memories[i], BYTES) != 0;
        same = memcmp(ours->memories[i], theirs->memories[i], BYTES) == 0;
        if (!same) {
            snprintf(reason, sizeof reason, "binding %u differs", i);
        }
    }
    if (!same) {
        fprintf(stderr, "%s: %s\n", name, reason);
    }
    *(!same ? &o->differ : changed ? &o->equal : &o->left_out) += 1;
    arguments_destroy(before);
    arguments_destroy(ours);
    arguments_destroy(theirs);
}

int main(void)
{
    opinion o = {.tool = "spirv-cross", .folder = "/tmp/second_opinion.XXXXXX"};
    char message[512] = "", path[128];
    if (system("command -v spirv-cross >/dev/null") != 0) {
        puts("skipped: there is no spirv-cross: ./dev setup check");
        return SKIPPED;
    }
    if (!mkdtemp(o.folder) ||
        !corpus_make("single", true, compare, &o, message, sizeof message)) {
        fprintf(stderr, "second_opinion: %s\n", message);
        return FAILED;
    }
    snprintf(path, sizeof path, "%s/kernel.spv", o.folder);
    unlink(path);
    rmdir(o.folder);
    printf("%u kernels equal, %u differ, %u left out\n", o.equal, o.differ, o.left_out);
    return o.differ == 0 && o.equal >= WANTED ? 0 : FAILED;
}
