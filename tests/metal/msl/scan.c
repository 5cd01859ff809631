/* Metal Shading Language to C++ for OpenCL, by rewriting what the two do not share: attributes go,
 * parameters of a kernel become variables that are read from the work-item, and threadgroup arrays
 * become references to memory of the executor. */
#include "msl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scanner {
    const char *source;
    size_t at;
    msl_scanned *out;
    int depth, kernel_depth; /* of braces; of the body of a kernel, 0 outside */
    uint32_t arrays;         /* threadgroup arrays of this kernel */
    char before;             /* last significant character */
    msl_text array_sizes;
} scanner;

void msl_text_add(msl_text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (text->count + (size_t)length + 1 > text->capacity) {
        text->capacity = 2 * (text->count + (size_t)length) + 256;
        text->bytes = realloc(text->bytes, text->capacity);
        if (!text->bytes) {
            abort();
        }
    }
    va_start(list, format);
    vsnprintf(text->bytes + text->count, (size_t)length + 1, format, list);
    va_end(list);
    text->count += (size_t)length;
}

static int is_word(int c)
{
    return isalnum(c) || c == '_';
}

static int fail(scanner *s, const char *what)
{
    uint32_t line = 1;
    for (size_t i = 0; i < s->at && s->source[i] != 0; i++) {
        line += s->source[i] == '\n';
    }
    snprintf(s->out->error, sizeof s->out->error, "line %u: %s", line, what);
    return -1;
}

/* The end of a comment, string or line of the preprocessor that begins here; else at. */
static size_t skip_opaque(const scanner *s, size_t at)
{
    const char *p = s->source + at;
    if (p[0] == '/' && p[1] == '/') {
        return at + strcspn(p, "\n");
    }
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? (size_t)(end + 2 - s->source) : at + strlen(p);
    }
    if (p[0] == '"') {
        size_t i = 1;
        while (p[i] != 0 && p[i] != '"') {
            i += p[i] == '\\' && p[i + 1] != 0 ? 2 : 1;
        }
        return at + i + (p[i] != 0);
    }
    if (p[0] == '#') {
        size_t i = 0;
        while (p[i] != 0 && p[i] != '\n') {
            i += p[i] == '\\' && p[i + 1] == '\n' ? 2 : 1;
        }
        return at + i;
    }
    return at;
}

static size_t skip_blank(const scanner *s, size_t at)
{
    for (;;) {
        while (isspace((unsigned char)s->source[at])) {
            at++;
        }
        const size_t next = s->source[at] == '/' ? skip_opaque(s, at) : at;
        if (next == at) {
            return at;
        }
        at = next;
    }
}

/* The place after the bracket that closes the one at `at`. */
static size_t closing(const scanner *s, size_t at)
{
    const char open = s->source[at], close = open == '(' ? ')' : open == '[' ? ']' : '}';
    int depth = 0;
    while (s->source[at] != 0) {
        const size_t next = skip_opaque(s, at);
        if (next != at) {
            at = next;
            continue;
        }
        depth += s->source[at] == open;
        depth -= s->source[at] == close;
        at++;
        if (depth == 0) {
            break;
        }
    }
    return at;
}

static int starts_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && !is_word((unsigned char)text[length]);
}

/* Value of attribute name in text, such as 3 of "buffer(3)"; -1: it is not there. */
static long attribute(const char *text, const char *name)
{
    for (const char *p = strstr(text, name); p != NULL; p = strstr(p + 1, name)) {
        if ((p == text || !is_word((unsigned char)p[-1])) &&
            !is_word((unsigned char)p[strlen(name)])) {
            const char *open = p + strlen(name) + strspn(p + strlen(name), " ");
            return *open == '(' ? strtol(open + 1, NULL, 0) : 0;
        }
    }
    return -1;
}

/* Copies text without its attributes, which go to attributes. */
static void split_attributes(const scanner *s, size_t from, size_t to, char *text, char *attributes,
                             size_t room)
{
    size_t n = 0, m = 0;
    for (size_t i = from; i < to;) {
        const char *p = s->source + i;
        const size_t next = p[0] == '/' ? skip_opaque(s, i) : i;
        if (next != i) {
            i = next;
        } else if (p[0] == '[' && p[1] == '[') {
            const size_t end = closing(s, i);
            for (size_t k = i + 2; k + 2 < end && m + 2 < room; k++) {
                attributes[m++] = s->source[k];
            }
            attributes[m++] = ' ';
            i = end;
        } else {
            if (n + 1 < room) {
                text[n++] = isspace((unsigned char)p[0]) ? ' ' : p[0];
            }
            i++;
        }
    }
    while (n > 0 && text[n - 1] == ' ') {
        n--;
    }
    text[n] = attributes[m] = 0;
}

/* Built-in values, and the field of the work-item with each. */
static const char *const values[][2] = {
    {"thread_position_in_grid", "position"},
    {"thread_position_in_threadgroup", "local_position"},
    {"threadgroup_position_in_grid", "group"},
    {"threads_per_threadgroup", "group_size"},
    {"dispatch_threads_per_threadgroup", "group_size"},
    {"threadgroups_per_grid", "groups"},
    {"threads_per_grid", "grid"},
    {"thread_index_in_threadgroup", "index"},
    {"thread_index_in_simdgroup", "lane"},
    {"simdgroup_index_in_threadgroup", "simdgroup"},
    {"threads_per_simdgroup", "simdgroup_width"},
    {"thread_execution_width", "simdgroup_width"},
    {"simdgroups_per_threadgroup", "simdgroups"},
};

/* A pointer or reference to memory, whose declaration is text with name at the end. */
static int memory_parameter(scanner *s, msl_function *f, const char *text, long buffer, long local,
                            msl_text *info)
{
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] != '*' && text[end - 1] != '&') {
        end--;
    }
    if (end == 0 || f->parameter_count == 2 * MSL_BUFFERS || buffer >= MSL_BUFFERS ||
        local >= MSL_BUFFERS) {
        return fail(s, "a parameter with a buffer is no pointer or reference, or has a bad index");
    }
    const int size = (int)end - 1, reference = text[end - 1] == '&';
    const char *space = buffer >= 0 ? "buffers" : "threadgroups";
    const int is_constant = strstr(text, "constant") != NULL;
    const msl_parameter parameter = {
        .space = local >= 0 ? MSL_THREADGROUP : is_constant ? MSL_CONSTANT : MSL_DEVICE,
        .index = (uint32_t)(buffer >= 0 ? buffer : local),
        .is_const = is_constant || strstr(text, "const") != NULL,
        .is_reference = reference,
    };
    f->parameters[f->parameter_count++] = parameter;
    msl_text_add(&s->out->text, "%s = %s(%.*s *)(ulong)msl->%s[%u]; (void)%s; ", text,
                 reference ? "*" : "", size, text, space, parameter.index,
                 text + end + strspn(text + end, " "));
    msl_text_add(info, "sizeof(%.*s), alignof(%.*s), ", size, text, size, text);
    return 0;
}

static int parameter(scanner *s, msl_function *f, size_t from, size_t to, msl_text *info)
{
    char text[512], attributes[512];
    split_attributes(s, from, to, text, attributes, sizeof text - 4);
    const char *start = text + strspn(text, " ");
    const long buffer = attribute(attributes, "buffer");
    const long local = attribute(attributes, "threadgroup");
    if (buffer >= 0 || local >= 0) {
        return memory_parameter(s, f, start, buffer, local, info);
    }
    size_t end = strlen(start);
    while (end > 0 && is_word((unsigned char)start[end - 1])) {
        end--;
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (attribute(attributes, values[i][0]) >= 0) {
            const int scalar = strchr("ils", values[i][1][0]) &&
                               strcmp(values[i][1], "local_position") != 0;
            msl_text_add(&s->out->text, "%s = msl_value<%.*s>::of(%smsl->%s); (void)%s; ", start,
                         (int)end, start, scalar ? "&" : "", values[i][1], start + end);
            return 0;
        }
    }
    return fail(s, "a kernel's parameter has an attribute that the stand-in does not know");
}

static int parameters(scanner *s, msl_function *f, size_t from, size_t to, msl_text *info)
{
    int depth = 0;
    size_t start = from;
    for (size_t i = from; i <= to; i++) {
        const char c = i == to ? ',' : s->source[i];
        depth += c == '(' || c == '[' || c == '<';
        depth -= c == ')' || c == ']' || c == '>';
        if (c == ',' && depth == 0) {
            if (skip_blank(s, start) < i && parameter(s, f, start, i, info) != 0) {
                return -1;
            }
            start = i + 1;
        }
    }
    return 0;
}

/* From the word kernel to the brace that opens the body. */
static int head(scanner *s, msl_text *info)
{
    msl_scanned *out = s->out;
    char attributes[512], text[512];
    size_t at = s->at, open = at;
    while (s->source[open] != 0 && s->source[open] != '{' && s->source[open] != ';') {
        open = s->source[open] == '(' || s->source[open] == '[' ? closing(s, open) : open + 1;
    }
    if (s->source[open] != '{') {
        s->at = open + (s->source[open] == ';');
        return 0;
    }
    split_attributes(s, at, open, text, attributes, sizeof text);
    out->functions =
        realloc(out->functions, (out->function_count + 1) * sizeof *out->functions);
    if (!out->functions) {
        abort();
    }
    msl_function *f = &out->functions[out->function_count++];
    memset(f, 0, sizeof *f);
    const long threads = attribute(attributes, "max_total_threads_per_threadgroup");
    f->max_threads = threads > 0 ? (uint32_t)threads : 0;
    size_t parenthesis = at;
    for (; s->source[parenthesis] != '('; parenthesis++) {
        if (s->source[parenthesis] == '[') {
            parenthesis = closing(s, parenthesis) - 1;
        } else if (parenthesis == open) {
            return fail(s, "a kernel without parameters in parentheses");
        }
    }
    size_t end = parenthesis;
    while (end > at && isspace((unsigned char)s->source[end - 1])) {
        end--;
    }
    size_t name = end;
    while (name > at && is_word((unsigned char)s->source[name - 1])) {
        name--;
    }
    snprintf(f->name, sizeof f->name, "%.*s", (int)(end - name), s->source + name);
    for (size_t i = at; i < open; i++) {
        if (s->source[i] == '\n') {
            msl_text_add(&out->text, "\n");
        }
    }
    msl_text_add(&out->text, "kernel void msl_kernel_%s(const __global msl_item *msl) { ", f->name);
    s->at = open + 1;
    s->depth++;
    s->kernel_depth = s->depth;
    s->arrays = 0;
    s->array_sizes.count = 0;
    s->before = '{';
    return parameters(s, f, parenthesis + 1, closing(s, parenthesis) - 1, info);
}

/* threadgroup T a[2], b; in the body of a kernel. Returns 1 when the statement is one. */
static int array(scanner *s)
{
    size_t end = s->at;
    while (s->source[end] != 0 && s->source[end] != ';') {
        if (strchr("*&={}", s->source[end])) {
            return 0;
        }
        end = s->source[end] == '(' || s->source[end] == '[' ? closing(s, end) : end + 1;
    }
    char text[512], unused[512];
    split_attributes(s, s->at, end, text, unused, sizeof text);
    char *alignment = strstr(text, "__attribute__");
    if (alignment) {
        *alignment = 0;
    }
    /* The type is all words but the last before the first [ or comma. */
    size_t name = strcspn(text, "[,");
    while (name > 0 && isspace((unsigned char)text[name - 1])) {
        name--;
    }
    while (name > 0 && is_word((unsigned char)text[name - 1])) {
        name--;
    }
    const int type = (int)name;
    for (char *p = text + name; *p != 0;) {
        p += strspn(p, " ,");
        size_t word = 0, dimensions;
        while (is_word((unsigned char)p[word])) {
            word++;
        }
        dimensions = strcspn(p + word, ",");
        if (word == 0) {
            break;
        }
        const char *d = p + word;
        const int n = (int)dimensions;
        const int skip = (int)strlen("threadgroup ");
        msl_text_add(&s->out->text,
                     "%.*s (&%.*s)%.*s = *(%.*s (*)%.*s)msl_threadgroup_array(%u, "
                     "sizeof(%.*s %.*s)); ",
                     type, text, (int)word, p, n, d, type, text, n, d, s->arrays++, type - skip,
                     text + skip, n, d);
        msl_text_add(&s->array_sizes, "(sizeof(%.*s %.*s) + 15) / 16 * 16 + ", type - skip,
                     text + skip, n, d);
        p += word + dimensions;
    }
    s->at = end + 1;
    s->before = ';';
    return 1;
}

static void end_of_kernel(scanner *s, msl_text *info)
{
    const msl_scanned *out = s->out;
    const char *name = out->functions[out->function_count - 1].name;
    msl_text_add(&s->out->text, "extern \"C\" { extern __constant const uint msl_info_%s[] = {%s",
                 name, info->count > 0 ? info->bytes : "");
    msl_text_add(&s->out->text, "%s0}; }\n", s->array_sizes.count > 0 ? s->array_sizes.bytes : "");
    info->count = 0;
    s->kernel_depth = 0;
}

/* One word: a keyword that is rewritten, or any other. */
static int word(scanner *s, msl_text *info)
{
    const char *p = s->source + s->at;
    if (s->depth == 0 && starts_word(p, "kernel")) {
        s->at += strlen("kernel");
        return head(s, info);
    }
    if (s->kernel_depth > 0 && starts_word(p, "threadgroup") && strchr("{};", s->before) &&
        array(s)) {
        return 0;
    }
    size_t n = 0;
    while (is_word((unsigned char)p[n])) {
        n++;
    }
    msl_text_add(&s->out->text, "%.*s", (int)n, p);
    s->before = p[n - 1];
    s->at += n;
    return 0;
}

static int step(scanner *s, msl_text *info)
{
    const char *p = s->source + s->at;
    const size_t next = skip_opaque(s, s->at);
    if (next != s->at) {
        const int pragma = p[0] == '#' && strstr(p, "METAL fp contract(off)") &&
                           strstr(p, "METAL fp contract(off)") < s->source + next;
        const int other = p[0] == '#' && strstr(p, "#pragma METAL") == p;
        s->out->contract_off |= pragma;
        msl_text_add(&s->out->text, "%.*s", other ? 0 : (int)(next - s->at), p);
        s->at = next;
        return 0;
    }
    if (p[0] == '[' && p[1] == '[') {
        const size_t end = closing(s, s->at);
        const int is_kernel = s->depth == 0 && starts_word(p + 2, "kernel");
        if (strncmp(p + 2, "clang::", strlen("clang::")) == 0) {
            msl_text_add(&s->out->text, "%.*s", (int)(end - s->at), p);
        }
        s->at = end;
        return is_kernel ? head(s, info) : 0;
    }
    if (is_word((unsigned char)p[0])) {
        return word(s, info);
    }
    s->depth += p[0] == '{';
    s->depth -= p[0] == '}';
    s->before = isspace((unsigned char)p[0]) ? s->before : p[0];
    msl_text_add(&s->out->text, "%c", p[0]);
    s->at++;
    if (s->kernel_depth > 0 && s->depth < s->kernel_depth) {
        end_of_kernel(s, info);
    }
    return 0;
}

int msl_scan(const char *source, msl_scanned *scanned)
{
    memset(scanned, 0, sizeof *scanned);
    scanner s = {.source = source, .out = scanned, .before = ';'};
    msl_text info = {0};
    int status = 0;
    msl_text_add(&scanned->text, "%s", "");
    while (status == 0 && source[s.at] != 0) {
        status = step(&s, &info);
    }
    if (status == 0 && s.depth != 0) {
        status = fail(&s, "braces are not balanced");
    }
    free(info.bytes);
    free(s.array_sizes.bytes);
    return status;
}

void msl_scanned_free(msl_scanned *scanned)
{
    free(scanned->text.bytes);
    free(scanned->functions);
    memset(scanned, 0, sizeof *scanned);
}
