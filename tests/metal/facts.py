#!/usr/bin/env python3
"""Compares the declarations of framework/Metal/Metal.h with Apple's: names and values of constants,
structures, and the selectors of protocols with their types. Apple's facts are those of the wheel
pyobjc-framework-Metal: its table of metadata, and the protocols in its object file.

facts.py HEADER CLANG FOLDER FLAGS...    FLAGS are what clang needs to build a program with the header
Exit status: 0 equal, 1 something differs, 77 skipped because the wheel cannot be had.
"""
import ast
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

WHEEL = "pyobjc-framework-Metal==12.2.2"


def main(arguments):
    header, clang, folder, *flags = arguments
    wheel = fetch(Path(folder))
    if wheel is None:
        print(f"skipped: {WHEEL} cannot be downloaded here")
        return 77
    apple = apple_facts(wheel)
    ours = our_facts(Path(header), clang, Path(folder), flags)
    faults, unchecked, count = compare(ours, apple)
    for line in unchecked:
        print(f"not checked: {line}")
    for line in faults:
        print(f"differs: {line}")
    print(f"{count} facts equal, {len(faults)} differ, {len(unchecked)} could not be checked")
    if not faults and not notices_changes(ours, apple):
        print("a changed declaration was not noticed")
        return 1
    return 1 if faults or count < 200 else 0


def fetch(folder):
    """The wheel, downloaded once."""
    found = sorted(folder.glob("pyobjc_framework_[Mm]etal-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--python-version", "3.11",
                   "--only-binary=:all:", "--platform", "macosx_11_0_universal2", "-d", str(folder), WHEEL]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        found = sorted(folder.glob("pyobjc_framework_[Mm]etal-*.whl"))
    return zipfile.ZipFile(found[0]) if found else None


def plain_type(encoding):
    """An encoding without what differs between compilers: offsets, names of structures, the letters
    that BOOL and long have, and blocks, which are objects."""
    text = re.sub(r"\{[^={}]*=", "{", encoding)
    text = re.sub(r"\d+", "", text).replace("@?", "@")
    return text.translate(str.maketrans("LlCcZ", "QqBBB"))


def apple_facts(wheel):
    tree = ast.parse(wheel.read("Metal/_metadata.py").decode())
    facts = {"constants": {}, "structures": {}, "strings": set(), "classes": {}}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "enums":
            for item in ast.literal_eval(node.value).split("$"):
                name, _, value = item.partition("@")
                facts["constants"][name] = int(value) if re.fullmatch(r"-?\d+", value) else None
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "constants":
            facts["strings"] = {item.partition("@")[0] for item in ast.literal_eval(node.value).split("$")}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "createStructType":
            name, encoding, fields = (ast.literal_eval(argument) for argument in node.args[:3])
            facts["structures"][name.split(".")[1]] = (plain_type(encoding.decode()), fields)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "r":
            owner, selector = (ast.literal_eval(argument).decode() for argument in node.args[:2])
            try:
                values = ast.literal_eval(node.args[2])
            except ValueError:
                continue
            facts["classes"].setdefault(owner, {})[selector] = values
    library = next(name for name in wheel.namelist() if re.match(r"Metal/_Metal\..*\.so", name))
    facts["protocols"] = protocols_of(wheel.read(library))
    return facts


class Image:
    """The x86-64 part of a universal object file, whose pointers are plain addresses."""

    def __init__(self, data):
        count = struct.unpack(">I", data[4:8])[0]
        for i in range(count):
            cpu, _, offset, size, _ = struct.unpack(">5I", data[8 + 20 * i:28 + 20 * i])
            if cpu == 0x01000007:
                self.data = data[offset:offset + size]
        self.sections, at = {}, 32
        for _ in range(struct.unpack("<I", self.data[16:20])[0]):
            command, size = struct.unpack("<II", self.data[at:at + 8])
            if command == 0x19:
                self.add_sections(at)
            at += size

    def add_sections(self, at):
        for i in range(struct.unpack("<I", self.data[at + 64:at + 68])[0]):
            place = at + 72 + 80 * i
            name = self.data[place:place + 16].rstrip(b"\0").decode()
            self.sections[name] = struct.unpack("<QQI", self.data[place + 32:place + 52])

    def place(self, address):
        for start, size, offset in self.sections.values():
            if start <= address < start + size and offset:
                return address - start + offset
        raise ValueError(hex(address))

    def pointers(self, address, count):
        place = self.place(address)
        return struct.unpack(f"<{count}Q", self.data[place:place + 8 * count])

    def text(self, address):
        place = self.place(address)
        return self.data[place:self.data.index(b"\0", place)].decode()


def protocols_of(data):
    """Selectors of each protocol, with their types, from the lists that the compiler left."""
    image, found = Image(data), {}
    start, size, _ = image.sections["__objc_protolist"]
    for address in image.pointers(start, size // 8):
        fields = image.pointers(address, 8)
        methods = found.setdefault(image.text(fields[1]), {})
        for place, required in zip(fields[3:7], (True, True, False, False)):
            count = struct.unpack("<II", image.data[image.place(place):][:8])[1] if place else 0
            for i in range(count):
                name, types, _ = image.pointers(place + 8 + 24 * i, 3)
                methods[image.text(name)] = (plain_type(image.text(types)), required)
    return found


PROGRAM = """
#import <Metal/Metal.h>
#include <objc/runtime.h>
#include <stdio.h>
static void protocol(Protocol *p, const char *name)
{
    for (int required = 0; required < 2; required++) {
        unsigned count = 0;
        struct objc_method_description *list =
            protocol_copyMethodDescriptionList(p, required, YES, &count);
        for (unsigned i = 0; i < count; i++) {
            printf("method %s %s %s\\n", name, sel_getName(list[i].name), list[i].types);
        }
        free(list);
    }
}
static void members(const char *name)
{
    unsigned count = 0;
    Method *list = class_copyMethodList(objc_getClass(name), &count);
    for (unsigned i = 0; i < count; i++) {
        printf("member %s %s %s\\n", name, sel_getName(method_getName(list[i])),
               method_getTypeEncoding(list[i]));
    }
    free(list);
}
int main(void)
{
"""


def our_facts(header, clang, folder, flags):
    text = header.read_text(encoding="utf-8")
    constants = re.findall(r"^ +(MTL\w+) = ", text, re.MULTILINE)
    structures = re.findall(r"^\} (MTL\w+);", text, re.MULTILINE)
    protocols = re.findall(r"^@protocol (\w+) <", text, re.MULTILINE)
    classes = re.findall(r"^@interface (\w+) :", text, re.MULTILINE)
    lines = [f'printf("constant {name} %lld\\n", (long long){name});' for name in constants]
    lines += [f'printf("structure {name} %s\\n", @encode({name}));' for name in structures]
    lines += [f'protocol(objc_getProtocol("{name}"), "{name}");' for name in protocols]
    lines += [f'members("{name}");' for name in classes]
    program = folder / "facts.m"
    program.write_text(PROGRAM + "\n".join(lines) + "\n    return 0;\n}\n", encoding="utf-8")
    subprocess.run([clang, str(program), "-o", str(folder / "facts"), *flags], check=True)
    printed = subprocess.run([str(folder / "facts")], capture_output=True, text=True, check=True).stdout
    facts = {"constant": {}, "structure": {}, "method": {}, "member": {}}
    for line in printed.splitlines():
        kind, name, *rest = line.split(" ")
        if kind == "constant":
            facts[kind][name] = int(rest[0])
        elif kind == "structure":
            facts[kind][name] = plain_type(rest[0])
        else:
            facts[kind][name, rest[0]] = plain_type(rest[1])
    facts["string"] = re.findall(r"FOUNDATION_EXPORT NSString \*const (\w+);", text)
    return facts


def inherited(protocols, name, selector):
    """A protocol's method, which Apple may declare in a protocol that it adopts."""
    for owner in (name, "MTLResource", "MTLCommandEncoder", "MTLEvent", "MTLAllocation"):
        if selector in protocols.get(owner, {}):
            return protocols[owner][selector][0]
    return None


def of_metadata(values):
    """An encoding from the table; None when it says nothing of some argument."""
    if "retval" not in values or "type" not in values["retval"]:
        return None
    arguments = values.get("arguments", {})
    types = [arguments[i].get("type") for i in sorted(arguments)]
    types = [item.encode() if isinstance(item, str) else item for item in types]
    if None in types or sorted(arguments) != list(range(2, 2 + len(arguments))):
        return None
    return plain_type(b"".join([values["retval"]["type"], b"@:", *types]).decode())


def compare(ours, apple):
    faults, unchecked, count = [], [], 0

    def check(what, mine, theirs):
        nonlocal count
        if theirs is None:
            unchecked.append(what)
        elif mine != theirs:
            faults.append(f"{what}: {mine} here, {theirs} of Apple")
        else:
            count += 1

    for name, value in ours["constant"].items():
        if name not in apple["constants"]:
            faults.append(f"{name}: Apple has no such constant")
        else:
            check(name, value, apple["constants"][name])
    for name, encoding in ours["structure"].items():
        check(name, encoding, apple["structures"].get(name, (None,))[0])
    for name in ours["string"]:
        check(name, True, True if name in apple["strings"] else None)
    for (name, selector), types in ours["method"].items():
        theirs = inherited(apple["protocols"], name, selector)
        table = apple["classes"].get("NSObject", {}).get(selector)
        if theirs is None and table is None:
            faults.append(f"{name} {selector}: Apple has no such method")
            continue
        # The table has one entry for all protocols with a selector: it may be that of another one.
        others = {methods[selector][0] for methods in apple["protocols"].values() if selector in methods}
        entry = of_metadata(table) if table else None
        if theirs is None and entry != types and entry in others:
            entry = None
        check(f"{name} {selector}", types, theirs or entry)
    for (name, selector), types in ours["member"].items():
        values = apple["classes"].get(name, {}).get(selector)
        if selector.startswith(("copyWithZone", "init", "dealloc", ".cxx")):
            continue
        if values is None:
            unchecked.append(f"{name} {selector} ({types})")
        elif "retval" in values:
            check(f"{name} {selector}", types[0], plain_type(values["retval"]["type"].decode()))
        else:
            argument = values["arguments"][2]["type"].decode()
            check(f"{name} {selector}", types, f"v@:{plain_type(argument)}")
    return faults, sorted(unchecked), count


def notices_changes(ours, apple):
    """A test that cannot fail is no test: a wrong value, type and selector each have to be a fault."""
    for kind, name, wrong in (("constant", "MTLResourceStorageModePrivate", 16),
                              ("method", ("MTLBuffer", "length"), "v@:"),
                              ("method", ("MTLBuffer", "lengthInBytes"), "Q@:"),
                              ("structure", "MTLSize", "{III}")):
        changed = {**ours, kind: {**ours[kind], name: wrong}}
        if not compare(changed, apple)[0]:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
