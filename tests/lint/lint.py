#!/usr/bin/env python3
"""Keeps the budgets and borders of the design over the sources; the ctests lint and lint_self_test.
Promises 7 and 18: every public function says what threads may do; no source of hal names a backend.

lint.py ROOT          checks the tree below ROOT, one line for each fault
lint.py --self-test   shows every rule a bad sample and sees that it complains
"""
import re
import subprocess
import sys
from pathlib import Path

from architecture import LIBRARIES, level

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 100
MAX_COLUMNS = 100

ROOMS = ("hal", "ops", "blas", "plugins", "conformance", "bench", "examples", "python", "tests")
PUBLIC_HEADERS = ("hal/include", "ops/include")
# The polynomials are source that its includer instantiates, not an interface.
TEMPLATES = re.compile(r"hal/include/hal/ir_math\w*\.h")
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.MULTILINE)
STAND_ALONE = ("plugin.h", "plugin_interop.h", "plugin_entries.h", "types.h", "ir.h", "ir_opcodes.h", "ir_types.h", "status.h")
# Words and names are put together here so that this file does not trip over itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
BACKENDS = re.compile("cuda|opencl|vulkan|metal|ptx|spir-?v", re.IGNORECASE)
# A set-uid process heeds no variable but these; tests/secure looks at the files that read others.
VARIABLE = re.compile(r"\bgetenv\((?!\"HAL_(BACKEND|LOG)\")")
VARIABLES_CHECKED = ("hal/src/plugin/cache.c", "hal/src/plugin/search.c", "plugins/vulkan/quirks.c")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
NULL_TEST = re.compile(r"[!=]= NULL\)* (\{|&&|\|\|)|== NULL\b")
FLAG = re.compile(r"\bint \*?(is|has|was|can|may|needs|does)_\w+( =|[;,)])|"
                  r"\bstatic (inline )?int \w*_(is|has|can|may|needs|was)_\w+\(")
# The interfaces of the module for MPI and of NCCL.
FLAGS_OF_INTERFACES = ("hal/src/comm/mpi_entries.h", "hal/src/comm/mpi_calls.inl",
                       "plugins/cuda/collectives/nccl.h")
LADDER = re.compile(r"\n( *)(const )?(hal_status )?status =[^;{}]*;\n\1if \(status != HAL_OK\) \{\n"
                    r"\1    return status;\n\1\}\n")
ASSIGNED = re.compile(r"\(\*?\w[^=]* = .*\) != NULL")  # if ((p = f()) != NULL)


# Text for machines and from users does not depend on the locale: floats are printed in one place of
# each library, and these functions of libc follow the locale.
FLOAT_TEXT = re.compile(r'%[-+ #0]*(\d+|\*)?(\.(\d+|\*)?)?[lL]?[aAeEfFgG](?![\w])')
FLOAT_PRINTERS = ("hal/src/base/number.c", "ops/src/tensor/number.c")
LOCALIZED = re.compile(r"\b(strto(d|f|ld)|ato(f|i|l)|is(alnum|alpha|blank|digit|lower|print|punct|space|"
                       r"upper|xdigit)|to(lower|upper)|strn?case(cmp|str)|strcoll|strxfrm|alphasort|"
                       r"strftime|wcsto\w+|mbsto\w+)\(|\balphasort\b")
# Cancellation points of POSIX. A file of hal or ops that calls one disables cancellation around it.
CANCELLATION = re.compile(r"(?<![>.\w])(open|openat|read|write|pread|pwrite|fsync|fopen|fclose|fread|fwrite|"
                          r"fprintf|fputs|fflush|fgets|getline|nanosleep|usleep|poll|waitpid|scandir|"
                          r"pthread_cond_wait|pthread_cond_timedwait|pthread_join|opendir|dlopen|"
                          r"shm_open|posix_spawn)\(")


def main(arguments):
    if arguments == ["--self-test"]:
        from samples import self_test
        return self_test(check_tree)
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(arguments[0])
    faults = check_tree(root)
    for fault in faults:
        print(fault)
    print(f"lint: {len(c_files(root))} C files, {len(faults)} faults")
    return 1 if faults else 0


def check_tree(root):
    """All faults below root, as sentences that begin with path:line."""
    files = c_files(root)
    sources = {path: path.read_text(encoding="utf-8").split("\n") for path in files}
    faults = []
    for path, lines in sources.items():
        name = path.relative_to(root).as_posix()
        faults += file_length(name, lines)
        faults += opening_comment(name, lines)
        faults += columns(name, lines)
        faults += include_direction(root, name, lines)
        faults += null_tests(name, lines)
        faults += guard(name, lines)
        if name.startswith(("hal/src/", "ops/src/", "blas/", "plugins/")):
            faults += variables(name, lines)
            faults += flags(name, lines)
            faults += ladders(name, lines)
            faults += locale_free(name, lines)
        if name.startswith(("hal/src/", "ops/src/")):
            faults += cancellation(name, lines)
    for path in all_text_files(root):
        name = path.relative_to(root).as_posix()
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        faults += unfinished(name, lines)
        if name.startswith(("hal/", "ops/include/", "ops/src/", "ops/CMakeLists", "blas/")):
            faults += backend_names(name, lines)
    faults += functions(root, sources)
    return sorted(faults)


def is_interface(name):
    return name.startswith(PUBLIC_HEADERS) and not TEMPLATES.fullmatch(name)


def c_files(root):
    return [path for path in all_text_files(root) if path.suffix in (".c", ".h", ".inl")]


def all_text_files(root):
    """Hand-written files of the rooms and of the root; data folders are not code."""
    found = [path for path in root.iterdir() if path.is_file()]
    for room in ROOMS + ("cmake", "docs", ".ci"):
        found += (root / room).rglob("*") if (root / room).is_dir() else []
    suffixes = (".c", ".h", ".inl", ".py", ".cmake", ".md", ".txt", ".in", ".sh", ".json", "")
    return sorted(path for path in found
                  if path.is_file() and path.suffix in suffixes and "data" not in path.parts
                  and "corpus" not in path.parts and "__pycache__" not in path.parts)


def file_length(name, lines):
    count = len(lines) - (lines[-1] == "")
    if count > MAX_FILE_LINES:
        yield f"{name}:{count}: file of {count} lines, more than {MAX_FILE_LINES}"


def opening_comment(name, lines):
    if not lines[0].startswith(("/*", "//")):
        yield f"{name}:1: begins without a comment that says what it is for"


def unfinished(name, lines):
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield f"{name}:{number}: unfinished work is marked: {line.strip()}"


def backend_names(name, lines):
    for number, line in enumerate(lines, 1):
        word = BACKENDS.search(line)
        if word:
            yield f"{name}:{number}: names the backend '{word.group()}'"


def guard(name, lines):
    """A header's guard is its path in capitals; of a public header, its path below include."""
    guard = GUARD.search("\n".join(lines)) if name.endswith(".h") else None
    wanted = re.sub(r"\W", "_", re.sub(r"^(hal|ops)/include/", "", name)).upper()
    if guard and guard.group(1) != wanted:
        yield f"{name}:1: expected the guard {wanted}, got {guard.group(1)}"


def null_tests(name, lines):
    for number, line in enumerate(lines, 1):
        if NULL_TEST.search(line) and not ASSIGNED.search(line):
            yield f"{name}:{number}: compares with NULL in a condition: write !p or p"


def flags(name, lines):
    for number, line in enumerate(lines, 1):
        if FLAG.search(line) and name not in FLAGS_OF_INTERFACES:
            yield f"{name}:{number}: a flag of type int: write bool"


def ladders(name, lines):
    text = "\n".join(lines)
    for match in LADDER.finditer(text):
        number = text[:match.start()].count("\n") + 2
        yield f"{name}:{number}: returns a status by hand: write HAL_TRY"


def variables(name, lines):
    for number, line in enumerate(lines, 1):
        if VARIABLE.search(line) and name not in VARIABLES_CHECKED:
            yield f"{name}:{number}: a set-uid process would heed the variable: use secure_getenv"


def locale_free(name, lines):
    for number, line in enumerate(lines, 1):
        literals = "".join(re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', line)).replace("%%", "")
        literals = literals.replace(".f32 %f", "")  # PTX
        if FLOAT_TEXT.search(literals) and name not in FLOAT_PRINTERS:
            yield f"{name}:{number}: prints a float in the program's locale: use HAL_NUMBER"
        match = LOCALIZED.search(line)
        if match and not line.lstrip().startswith(("*", "/*")):
            yield f"{name}:{number}: {match.group().rstrip('(')} follows the program's locale"


def cancellation(name, lines):
    if any("HAL_UNCANCELLED" in line for line in lines):
        return
    for number, line in enumerate(lines, 1):
        match = CANCELLATION.search(line)
        if match and not line.lstrip().startswith(("*", "/*")):
            yield f"{name}:{number}: {match.group()}) is a cancellation point: HAL_UNCANCELLED"


def include_direction(root, name, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = resolve(root, name, match.group(2))
        if target and not may_include(name, target):
            yield f"{name}:{number}: may not include {target}"
        elif target and is_upward(name, target):
            yield f"{name}:{number}: includes {target}, which is in a higher folder"


def is_upward(name, target):
    for library, folders in LIBRARIES.items():
        if name.startswith(library + "/") and target.startswith(library + "/"):
            here, there = (level(folders, path[len(library) + 1:]) for path in (name, target))
            return there > here >= 0
    return False


def resolve(root, name, wanted):
    """The file of the tree that an include names, from the root; None for a system header."""
    here = Path(name).parent
    room = Path(*Path(name).parts[:2])
    places = [here, room, Path("hal/include"), Path("ops/include"), Path("hal/src"),
              Path("ops/src"), Path("plugins"), Path("plugins/kit"), Path("conformance"), Path("bench"),
              Path("hal/tools"), Path("tests/unit"), Path("tests"), Path(".")]
    for place in places:
        if (root / place / wanted).is_file():
            parts = []
            for part in (place / wanted).parts:
                parts = parts[:-1] if part == ".." else parts + [part]
            return "/".join(parts)
    return wanted if wanted.startswith(("hal/", "ops/", "kit/", "plugins/")) else None


def may_include(name, target):
    room = name.split("/")[0]
    if name.startswith("hal/tools/") and target in ("hal/src/base/list.h", "hal/src/base/array.h"):
        return True
    if name.startswith(("conformance/", "bench/")) and target in ("hal/tools/command_line.h", "hal/tools/json.h"):
        return True
    if name.startswith("hal/include/") and Path(name).name in STAND_ALONE:
        return target in [f"hal/include/hal/{header}" for header in STAND_ALONE]
    if name.startswith("hal/include/"):
        return target.startswith("hal/include/")
    if name.startswith("hal/tools/"):
        return target.startswith(("hal/include/", "hal/tools/"))
    if room == "hal":
        return target.startswith(("hal/include/", "hal/src/"))
    if room == "ops":
        own = "/".join(name.split("/")[:2]) + "/"
        return target.startswith(("hal/include/", "ops/include/", own))
    if room == "plugins":
        own = "/".join(name.split("/")[:2]) + "/"
        contract = re.fullmatch(r"hal/include/hal/(plugin|types|ir|status|ir_uniform|ir_math\w*)\.h", target)
        return bool(contract) or target.startswith((own, "plugins/kit/"))
    if room in ("blas", "conformance", "bench", "examples"):
        return target.startswith(("hal/include/", "ops/include/", room + "/"))
    return True


def columns(name, lines):
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{name}:{number}: a line of {len(line)} columns, more than {MAX_COLUMNS}"


def functions(root, sources):
    """Length of every function; documentation of every public one."""
    if not sources:
        return
    command = ["ctags", "-f", "-", "--sort=no", "--language-force=C", "--kinds-C=fp",
               "--fields=nek", "-D", "HAL_API=", "-D", "OPS_API=", "-D", "HAL_OUT=", "-D", "HAL_PRINTF(a,b)=",
               *map(str, sources)]
    try:
        tags = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        yield "tests/lint:1: universal-ctags is missing: install it (./dev setup)"
        return
    for tag in tags.splitlines():
        function, file, *fields = tag.split("\t")
        values = dict(field.split(":", 1) for field in fields if ":" in field)
        path, line = Path(file), int(values["line"])
        name = path.relative_to(root).as_posix()
        length = int(values.get("end", line)) - line + 1
        if length > MAX_FUNCTION_LINES:
            yield f"{name}:{line}: {function} has {length} lines, more than {MAX_FUNCTION_LINES}"
        if is_interface(name):
            yield from public_function(name, sources[path], function, line)


def public_function(name, lines, function, line):
    first = line - 1
    while first > 0 and not re.search(r"([;}]|\*/)\s*$|^\s*$|^\s*#", lines[first - 1]):
        first -= 1
    last = line - 1
    while last + 1 < len(lines) and not re.search(r"[;{]\s*$", lines[last]):
        last += 1
    declaration = " ".join(lines[first:last + 1])
    comment = comment_above(lines, first)
    if not comment:
        yield f"{name}:{line}: {function} has no comment"
        return
    exported = re.search(r"\b(HAL_API|OPS_API)\b", declaration)
    if not exported:
        return
    tags = ["Threads", "Errors"]
    gives = declaration.split(function)[0]
    if re.search(r"\*\*", declaration) or ("*" in gives and "const" not in gives):
        tags.append("Ownership")
    for tag in tags:
        if not re.search(rf"\b{tag}\b[\w, ]*:", comment):
            yield f"{name}:{line}: the comment of {function} has no '{tag}:'"


def comment_above(lines, first):
    """The comment that ends above line index first; neighbours without a blank line share one."""
    end = first - 1
    while end >= 0 and lines[end].strip() and not lines[end].rstrip().endswith("*/"):
        if lines[end].lstrip().startswith("#"):
            return ""
        end -= 1
    if end < 0 or not lines[end].rstrip().endswith("*/"):
        return ""
    begin = end
    while begin > 0 and "/*" not in lines[begin]:
        begin -= 1
    if lines[begin].lstrip().startswith("/*"):
        return "\n".join(lines[begin:end + 1])
    return comment_above(lines, begin) if begin < first else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
