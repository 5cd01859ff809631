#!/usr/bin/env python3
"""Writes the node tests of the ONNX standard, as the Python package onnx makes them, to one file
for the program onnx-cases.

write_cases.py FILE [NAME]      NAME: only cases whose name contains it

The file, in little-endian order: "ONNXCASE", a count, and the cases. A text is its length and its
bytes. A case is its name, and a text that is empty or says why the case cannot be written: then the
case ends there. Otherwise follow the version of the operator set, the number of values, the graphs,
the tensors of inputs and outputs, and the tolerances. A graph is its nodes, its initialisers, and
the values of its inputs and outputs; the first one is the model's, the others are those that
attributes name by their place. Values are numbers from 1 on, of all graphs of a case; 0 is an input
or output that is left out.
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
    if len(array.shape) > 16:
        raise Unwritable("a rank above 16")
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
    if value.type == AttributeProto.TYPE_PROTO:
        raise Unwritable("sequences and optional values")
    if value.type not in kinds:
        raise Unwritable("strings")
    kind, write = kinds[value.type]
    return text(value.name) + kind.encode() + write()


class Case:
    def __init__(self, case):
        self.count = 1
        self.graphs = [b""]
        model = case.model
        if len(model.functions):
            model = onnx.inliner.inline_local_functions(model)
        graph = model.graph
        names = {"": 0}
        self.graphs[0] = self.graph(graph, names)
        given, expected = case.data_sets[0]
        inputs = self.tensors(graph.input, given, names)
        outputs = self.tensors(graph.output, expected, names)
        versions = [item.version for item in model.opset_import if item.domain in ("", "ai.onnx")]
        self.data = (number(versions[0] if versions else 0) + number(self.count) +
                     number(len(self.graphs)) + b"".join(self.graphs) + number(len(given)) +
                     inputs + number(len(expected)) + outputs +
                     struct.pack("<dd", case.rtol, case.atol))

    def values(self, items, names, is_made):
        """The values of a list of names. What is made is new in its graph."""
        numbers = []
        for item in items:
            if item and (is_made or item not in names):
                names[item] = self.count
                self.count += 1
            numbers.append(names[item])
        return number(len(numbers)) + b"".join(number(item) for item in numbers)

    def graph(self, graph, names):
        inputs = self.values([item.name for item in graph.input], names, True)
        given = {item.name for item in graph.input}
        self.values([item.name for item in graph.initializer if item.name not in given], names,
                    True)
        nodes = b"".join(self.node(node, names) for node in graph.node)
        initialisers = b"".join(number(names[item.name]) + tensor(item)
                                for item in graph.initializer)
        outputs = self.values([item.name for item in graph.output], names, False)
        return (number(len(graph.node)) + nodes + number(len(graph.initializer)) + initialisers +
                inputs + outputs)

    def attribute(self, value, names):
        """A subgraph sees the names that its node sees."""
        if value.type != AttributeProto.GRAPH:
            return attribute(value)
        place = len(self.graphs)
        self.graphs.append(b"")
        self.graphs[place] = self.graph(value.g, dict(names))
        return text(value.name) + b"g" + struct.pack("<q", place)

    def node(self, node, names):
        name = node.domain + "." + node.op_type if node.domain not in ("", "ai.onnx") else node.op_type
        inputs = self.values(node.input, names, False)
        attributes = b"".join(self.attribute(item, names) for item in node.attribute)
        return (text(name) + inputs + self.values(node.output, names, True) +
                number(len(node.attribute)) + attributes)

    def tensors(self, items, values, names):
        if len(items) != len(values):
            raise Unwritable("a number of tensors that differs from the model's")
        return b"".join(number(names[item.name]) + tensor(value)
                        for item, value in zip(items, values))


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
