/* Cases of the ONNX standard as write_cases.py writes them: a graph with inputs and what it has to
 * give. */
#ifndef TESTS_ONNX_CASE_H
#define TESTS_ONNX_CASE_H

#include <hal/ir.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ONNX_MAX_RANK = 16 };

/* Elements in row-major order, in the file's memory. */
typedef struct onnx_tensor {
    uint32_t value; /* its number in the graph; 0 in attributes */
    hal_type type;
    uint32_t rank;
    int64_t shape[ONNX_MAX_RANK];
    size_t bytes;
    const void *elements;
} onnx_tensor;

/* `kind` is i, f, s, t, I, F or g, of which `integer` is the place of the graph; numbers of I and F
 * need not be aligned. */
typedef struct onnx_attribute {
    const char *name;
    char kind;
    int64_t integer;
    double number;
    const char *text;
    uint32_t count; /* of I and F */
    const uint8_t *numbers;
    onnx_tensor tensor;
} onnx_attribute;

typedef struct onnx_node {
    const char *operator_name;
    uint32_t input_count, output_count, attribute_count;
    uint32_t *inputs, *outputs; /* numbers of values; 0: left out */
    onnx_attribute *attributes;
} onnx_node;

/* Nodes in order. Inputs and outputs are numbers of values. */
typedef struct onnx_graph {
    uint32_t node_count, initialiser_count, input_count, output_count;
    onnx_node *nodes;
    onnx_tensor *initialisers;
    uint32_t *inputs, *outputs;
} onnx_graph;

typedef struct onnx_case {
    const char *name;
    const char *unwritten; /* why the case has no graph; empty if it has */
    uint32_t version;      /* of the operator set */
    uint32_t value_count, graph_count, input_count, output_count;
    onnx_graph *graphs; /* the first one is the model's; others belong to attributes */
    onnx_tensor *inputs, *outputs;
    double relative, absolute; /* tolerances */
    void **memory;             /* allocations of the case */
    uint32_t memory_count;
} onnx_case;

/* A file of cases in memory. */
typedef struct onnx_file {
    uint8_t *bytes;
    size_t size, at;
    uint32_t case_count;
} onnx_file;

/* Both return false, with a message on stderr, for a file that cannot be read or is cut off. */
bool onnx_file_open(const char *path, onnx_file *file);
bool onnx_case_read(onnx_file *file, onnx_case *item);

void onnx_case_free(onnx_case *item);
void onnx_file_close(onnx_file *file);

#endif
