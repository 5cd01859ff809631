/* Reads cases. */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A place in the file; `fits` turns false where the file ends too early. */
typedef struct reader {
    onnx_file *file;
    onnx_case *item;
    bool fits;
} reader;

static const uint8_t *take(reader *r, size_t size)
{
    static const uint8_t zeros[8];
    onnx_file *file = r->file;
    if (!r->fits || size > file->size - file->at) {
        r->fits = false;
        return zeros;
    }
    file->at += size;
    return file->bytes + file->at - size;
}

static uint32_t take_u32(reader *r)
{
    uint32_t value;
    memcpy(&value, take(r, sizeof value), sizeof value);
    return value;
}

static int64_t take_i64(reader *r)
{
    int64_t value;
    memcpy(&value, take(r, sizeof value), sizeof value);
    return value;
}

static double take_f64(reader *r)
{
    double value;
    memcpy(&value, take(r, sizeof value), sizeof value);
    return value;
}

/* Zeroed memory that the case owns. */
static void *allocate(reader *r, size_t count, size_t size)
{
    onnx_case *item = r->item;
    if (count > r->file->size) { /* more than the file can describe */
        r->fits = false;
        count = 0;
    }
    void **memory = realloc(item->memory, (item->memory_count + 1) * sizeof *memory);
    void *block = calloc(count + 1, size);
    if (!memory || !block) {
        fputs("onnx-cases: no memory\n", stderr);
        exit(1);
    }
    item->memory = memory;
    item->memory[item->memory_count++] = block;
    return block;
}

static const char *take_text(reader *r)
{
    const uint32_t size = take_u32(r);
    const uint8_t *bytes = take(r, size);
    char *text = allocate(r, r->fits ? size : 0, 1);
    memcpy(text, bytes, r->fits ? size : 0);
    return text;
}

static void take_tensor(reader *r, onnx_tensor *tensor)
{
    tensor->type = (hal_type)take_u32(r);
    tensor->rank = take_u32(r);
    if (tensor->rank > ONNX_MAX_RANK) {
        r->fits = false;
        return;
    }
    for (uint32_t i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = take_i64(r);
    }
    tensor->bytes = (size_t)take_i64(r);
    tensor->elements = take(r, tensor->bytes);
}

static void take_tensors(reader *r, uint32_t *count, onnx_tensor **tensors)
{
    *count = take_u32(r);
    *tensors = allocate(r, *count, sizeof **tensors);
    for (uint32_t i = 0; i < *count && r->fits; i++) {
        (*tensors)[i].value = take_u32(r);
        take_tensor(r, &(*tensors)[i]);
    }
}

static void take_attribute(reader *r, onnx_attribute *attribute)
{
    attribute->name = take_text(r);
    attribute->kind = (char)*take(r, 1);
    switch (attribute->kind) {
    case 'i':
    case 'g':
        attribute->integer = take_i64(r);
        break;
    case 'f':
        attribute->number = take_f64(r);
        break;
    case 's':
        attribute->text = take_text(r);
        break;
    case 't':
        take_tensor(r, &attribute->tensor);
        break;
    default: /* I and F have numbers of one size */
        attribute->count = take_u32(r);
        attribute->numbers = take(r, (size_t)attribute->count * 8);
    }
}

static void take_values(reader *r, uint32_t *count, uint32_t **values)
{
    *count = take_u32(r);
    *values = allocate(r, *count, sizeof **values);
    for (uint32_t i = 0; i < *count && r->fits; i++) {
        (*values)[i] = take_u32(r);
    }
}

static void take_node(reader *r, onnx_node *node)
{
    node->operator_name = take_text(r);
    take_values(r, &node->input_count, &node->inputs);
    take_values(r, &node->output_count, &node->outputs);
    node->attribute_count = take_u32(r);
    node->attributes = allocate(r, node->attribute_count, sizeof *node->attributes);
    for (uint32_t i = 0; i < node->attribute_count && r->fits; i++) {
        take_attribute(r, &node->attributes[i]);
    }
}

static void take_graph(reader *r, onnx_graph *graph)
{
    graph->node_count = take_u32(r);
    graph->nodes = allocate(r, graph->node_count, sizeof *graph->nodes);
    for (uint32_t i = 0; i < graph->node_count && r->fits; i++) {
        take_node(r, &graph->nodes[i]);
    }
    take_tensors(r, &graph->initialiser_count, &graph->initialisers);
    take_values(r, &graph->input_count, &graph->inputs);
    take_values(r, &graph->output_count, &graph->outputs);
}

bool onnx_file_open(const char *path, onnx_file *file)
{
    *file = (onnx_file){0};
    FILE *stream = fopen(path, "rb");
    long size = -1;
    if (stream && fseek(stream, 0, SEEK_END) == 0) {
        size = ftell(stream);
        rewind(stream);
    }
    file->bytes = size > 12 ? malloc((size_t)size) : NULL;
    if (file->bytes) {
        file->size = fread(file->bytes, 1, (size_t)size, stream);
    }
    if (stream) {
        fclose(stream);
    }
    if (file->size <= 12 || memcmp(file->bytes, "ONNXCASE", 8) != 0) {
        fprintf(stderr, "onnx-cases: %s: expected a file of write_cases.py\n", path);
        onnx_file_close(file);
        return false;
    }
    memcpy(&file->case_count, file->bytes + 8, 4);
    file->at = 12;
    return true;
}

bool onnx_case_read(onnx_file *file, onnx_case *item)
{
    *item = (onnx_case){0};
    reader r = {file, item, true};
    item->name = take_text(&r);
    item->unwritten = take_text(&r);
    if (!*item->unwritten) {
        item->version = take_u32(&r);
        item->value_count = take_u32(&r);
        item->graph_count = take_u32(&r);
        item->graphs = allocate(&r, item->graph_count, sizeof *item->graphs);
        for (uint32_t i = 0; i < item->graph_count && r.fits; i++) {
            take_graph(&r, &item->graphs[i]);
        }
        take_tensors(&r, &item->input_count, &item->inputs);
        take_tensors(&r, &item->output_count, &item->outputs);
        item->relative = take_f64(&r);
        item->absolute = take_f64(&r);
    }
    if (!r.fits) {
        fprintf(stderr, "onnx-cases: the file ends within case %s\n", item->name);
    }
    return r.fits;
}

void onnx_case_free(onnx_case *item)
{
    for (uint32_t i = 0; i < item->memory_count; i++) {
        free(item->memory[i]);
    }
    free(item->memory);
    *item = (onnx_case){0};
}

void onnx_file_close(onnx_file *file)
{
    free(file->bytes);
    *file = (onnx_file){0};
}
