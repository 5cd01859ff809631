#!/usr/bin/env python3
"""Writes the node tests of the ONNX standard, as the Python package onnx makes them, to one file
for the program onnx-cases.

write_cases.py FILE [NAME]      NAME: only cases whose name contains it

The file, in little-endian order: "ONNXCASE", a count, and the cases. A text is its length and its
bytes. A case is its name, and a text that is empty or says why the case cannot be written: then the
case ends there. Otherwise follow the version of the operator set, the number of values, nodes,
initialisers, inputs and outputs, and the tolerances. Values are numbers from 1 on; 0 is an input or
output that is left out.
"""
import struct
import sys
import warnings

import numpy
import onnx
import onnx.inliner
from onnx import AttributeProto, TensorProto, numpy_helper

warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

# The numbers of hal_type.
TYPES = {TensorProto.BOOL: 1, TensorProto.INT8: 2, TensorProto.UINT8: 3, TensorProto.INT16: 4,
         TensorProto.UINT16: 5, TensorProto.INT32: 6, TensorProto.UINT32: 7, TensorProto.INT64: 8,
         TensorProto.UINT64: 9, TensorProto.FLOAT16: 10, TensorProto.BFLOAT16: 11,
         TensorProto.FLOAT: 12, TensorProto.DOUBLE: 13, TensorProto.FLOAT8E4M3FN: 14}


class Unwritable(Exception):
    """The reason why a case is not written."""


def number(value):
    return struct.pack("<I", value)


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return number(len(data)) + data


def tensor(value):
    """A type, a rank, the lengths, and the elements in row-major order."""
    if value is None or isinstance(value, (list, dict)):
        raise Unwritable("sequences and optional values")
    if not isinstance(value, TensorProto):
        value = numpy.asarray(value)
        if value.dtype == object or value.dtype.kind in "SU":
            raise Unwritable("strings")
        value = numpy_helper.from_array(value)
    if value.data_type not in TYPES:
        kind = TensorProto.DataType.Name(value.data_type).lower()
        raise Unwritable(kind + "s" if kind == "string" else "the type " + kind)
    array = numpy_helper.to_array(value)
    if len(array.shape) > 8:
        raise Unwritable("a rank above 8")
    data = numpy.ascontiguousarray(array).tobytes()
    return (struct.pack("<II", TYPES[value.data_type], len(array.shape)) +
            struct.pack(f"<{len(array.shape)}q", *array.shape) + struct.pack("<Q", len(data)) + data)


def attribute(value):
    """A name, a kind and its value; numbers are int64 and double."""
    kinds = {AttributeProto.INT: ("i", lambda: struct.pack("<q", value.i)),
             AttributeProto.FLOAT: ("f", lambda: struct.pack("<d", value.f)),
             AttributeProto.STRING: ("s", lambda: text(value.s)),
             AttributeProto.TENSOR: ("t", lambda: tensor(value.t)),
             AttributeProto.INTS: ("I", lambda: number(len(value.ints)) +
                                   struct.pack(f"<{len(value.ints)}q", *value.ints)),
             AttributeProto.FLOATS: ("F", lambda: number(len(value.floats)) +
                                     struct.pack(f"<{len(value.floats)}d", *value.floats))}
    if value.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        raise Unwritable("subgraphs")
    if value.type not in kinds:
        raise Unwritable("strings")
    kind, write = kinds[value.type]
    return text(value.name) + kind.encode() + write()


class Case:
    def __init__(self, case):
        self.numbers = {"": 0}
        model = case.model
        if len(model.functions):
            model = onnx.inliner.inline_local_functions(model)
        graph = model.graph
        for item in [*graph.input, *graph.initializer]:
            self.value(item.name)
        nodes = b"".join(self.node(node) for node in graph.node)
        initialisers = b"".join(number(self.value(item.name)) + tensor(item)
                                for item in graph.initializer)
        given, expected = case.data_sets[0]
        inputs = self.tensors([item.name for item in graph.input], given)
        outputs = self.tensors([item.name for item in graph.output], expected)
        versions = [item.version for item in model.opset_import if item.domain in ("", "ai.onnx")]
        self.data = (number(versions[0] if versions else 0) + number(len(self.numbers)) +
                     number(len(graph.node)) + nodes + number(len(graph.initializer)) +
                     initialisers + number(len(given)) + inputs + number(len(expected)) + outputs +
                     struct.pack("<dd", case.rtol, case.atol))

    def value(self, name):
        return self.numbers.setdefault(name, len(self.numbers))

    def node(self, node):
        name = node.domain + "." + node.op_type if node.domain not in ("", "ai.onnx") else node.op_type
        parts = [text(name)]
        for values in (node.input, node.output):
            parts.append(number(len(values)))
            parts += [number(self.value(item)) for item in values]
        parts.append(number(len(node.attribute)))
        parts += [attribute(item) for item in node.attribute]
        return b"".join(parts)

    def tensors(self, names, values):
        if len(names) != len(values):
            raise Unwritable("a number of tensors that differs from the model's")
        return b"".join(number(self.value(name)) + tensor(value)
                        for name, value in zip(names, values))


def record(case):
    try:
        return text(case.name) + text("") + Case(case).data
    except Unwritable as reason:
        return text(case.name) + text(str(reason))


def main(arguments):
    wanted = arguments[1] if len(arguments) > 1 else ""
    cases = [case for case in collect_testcases(None) if wanted in case.name]
    with open(arguments[0], "wb") as file:
        file.write(b"ONNXCASE" + number(len(cases)))
        for case in sorted(cases, key=lambda item: item.name):
            file.write(record(case))
    print(f"{len(cases)} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])
