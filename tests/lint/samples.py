"""Bad samples for lint.py: each breaks one rule in an otherwise good tree. Called by --self-test."""
import tempfile
from pathlib import Path

HEADER = "/* A header. */\n"
GOOD = {
    "hal/include/hal/status.h": HEADER + "typedef int hal_status;\n",
    "hal/include/hal/ir.h": HEADER + "#include <hal/status.h>\n",
    "hal/include/hal/plugin.h": HEADER + "#include <hal/ir.h>\n",
    "hal/include/hal/ir_math.h": HEADER + "#include <hal/ir.h>\n",
    "hal/include/hal/device.h": HEADER + "#include <hal/status.h>\n"
    "/* Opens a device.\n * Ownership: the caller's. Threads: any. Errors: NOT_FOUND. */\n"
    "HAL_API hal_status hal_device_open(const char *name,\n"
    "                                   hal_device **device);\n"
    "\n/* Two numbers of a device.\n * Threads: any. Errors: none. */\n"
    "HAL_API int hal_device_units(const hal_device *device);\n"
    "HAL_API int hal_device_lanes(const hal_device *device);\n",
    "hal/src/core/device.c": HEADER + '#include "plugin/loader.h"\n#include <hal/device.h>\n',
    "hal/src/plugin/loader.h": HEADER,
    "ops/include/ops/ops.h": HEADER + "#include <hal/device.h>\n",
    "ops/src/gemm/gemm.c": HEADER + "#include <ops/ops.h>\n#include <stdint.h>\n",
    "plugins/kit/arena.h": HEADER,
    "plugins/cpu/queue.c": HEADER + '#include "kit/arena.h"\n#include <hal/plugin.h>\n'
    "#include <hal/ir_math.h>\n",
    "plugins/cpu/queue.h": HEADER,
    "plugins/template/device.c": HEADER,
    "bench/suites/suites.h": HEADER,
    "conformance/options.h": HEADER,
    "conformance/runner/runner.h": HEADER + '#include "report/report.h"\n',
    "conformance/report/report.h": HEADER,
    "conformance/cases.c": HEADER + "#include <ops/ops.h>\n#include <hal/device.h>\n",
}

BODY = "int f(void)\n{\n" + "    f();\n" * 97 + "}\n"
LONGER_BODY = BODY.replace("{\n", "{\n    f();\n", 1)
DOCUMENTED = "/* Closes.\n * Ownership: none. Threads: any. Errors: none. */\n"

# (file, what it holds instead, what the complaint must hold)
BAD = [
    ("hal/src/base/a.c", HEADER + 'const char *t = "%d of %.3f";\n', "prints a float"),
    ("plugins/cpu/queue.c", HEADER + 'const char *t = "0x%a";\n', "prints a float"),
    ("ops/src/gemm/gemm.c", HEADER + "double d = strtod(t, 0);\n", "strtod follows"),
    ("hal/src/base/a.c", HEADER + "int n = scandir(f, &e, 0, alphasort);\n", "alphasort follows"),
    ("hal/src/base/a.c", HEADER + "int e = poll(0, 0, 1);\n", "is a cancellation point"),
    ("hal/src/base/a.c", HEADER + "int is_open;\n", "write bool"),
    ("plugins/cpu/queue.c", HEADER + "static int queue_has_work(void);\n", "write bool"),
    ("ops/src/gemm/gemm.c", HEADER + "void f(void)\n{\n    status = g();\n    if (status != HAL_OK) {\n"
     "        return status;\n    }\n}\n", "write HAL_TRY"),
    ("hal/src/base/long.c", HEADER + "int x;\n" * 800, "file of 801 lines"),
    ("hal/src/base/long.c", HEADER + LONGER_BODY, "f has 101 lines"),
    ("hal/src/base/bare.c", "int x;\n", "begins without a comment"),
    ("hal/src/base/later.c", HEADER + "/* TO" "DO: the rest */\n", "unfinished work"),
    ("docs/later.md", "FIX" "ME\n", "unfinished work"),
    ("hal/src/base/name.c", HEADER + "/* as Vul" "kan does */\n", "names the backend"),
    ("hal/tools/name.c", HEADER + "int P" "TX;\n", "names the backend"),
    ("ops/src/gemm/name.c", HEADER + 'char *s = "SPIR' '-V";\n', "names the backend"),
    ("plugins/cpu/open.c", HEADER + 'char *s = getenv("HAL_CPU_ISA");\n', "use secure_getenv"),
    ("hal/src/base/open.c", HEADER + "char *s = getenv(name);\n", "use secure_getenv"),
    ("hal/include/hal/ir.h", HEADER + "#include <hal/device.h>\n", "may not include"),
    ("hal/include/hal/device.h", HEADER + '#include "../../src/plugin/loader.h"\n', "may not include"),
    ("hal/src/base/up.c", HEADER + "#include <ops/ops.h>\n", "may not include ops/"),
    ("hal/src/base/up.c", HEADER + "#include <ops/absent.h>\n", "may not include ops/"),
    ("hal/src/base/up.c", HEADER + '#include "../../../plugins/kit/arena.h"\n', "may not include plugins/"),
    ("hal/src/ir/up.c", HEADER + '#include "plugin/loader.h"\n', "in a higher folder"),
    ("hal/tools/in.c", HEADER + '#include "plugin/loader.h"\n', "may not include hal/src/"),
    ("ops/src/gemm/in.c", HEADER + '#include "plugin/loader.h"\n', "may not include hal/src/"),
    ("ops/src/gemm/up.c", HEADER + '#include "kit/arena.h"\n', "may not include plugins/"),
    ("plugins/cpu/up.c", HEADER + "#include <hal/device.h>\n", "may not include hal/include/hal/d"),
    ("plugins/cpu/up.c", HEADER + "#include <ops/ops.h>\n", "may not include ops/"),
    ("plugins/template/side.c", HEADER + '#include "../cpu/queue.h"\n', "may not include plugins/"),
    ("conformance/in.c", HEADER + '#include "plugin/loader.h"\n', "may not include hal/src/"),
    ("bench/in.c", HEADER + '#include "plugin/loader.h"\n', "may not include hal/src/"),
    ("bench/harness/up.c", HEADER + '#include "suites/suites.h"\n', "in a higher folder"),
    ("conformance/case/up.c", HEADER + '#include "runner/runner.h"\n', "in a higher folder"),
    ("conformance/report/up.c", HEADER + '#include "../options.h"\n', "in a higher folder"),
    ("examples/a/in.c", HEADER + '#include "kit/arena.h"\n', "may not include plugins/"),
    ("plugins/cpu/queue.h", HEADER + "#ifndef QUEUE_H\n#define QUEUE_H\n#endif\n", "expected the guard PLU"),
    ("plugins/cpu/null.c", HEADER + "int f(char *p)\n{\n    return p == NU" "LL;\n}\n", "write !p"),
    ("plugins/cpu/null.c", HEADER + "int f(char *p)\n{\n    if (p != NU" "LL) {\n    }\n}\n", "write !p"),
    ("plugins/cpu/wide.c", HEADER + "/* " + "x" * 95 + " */\n", "a line of 101 columns"),
    ("ops/include/ops/wide.h", HEADER + "/* " + "x" * 95 + " */\n", "a line of 101 columns"),
    ("ops/include/ops/f.h", HEADER + "\nOPS_API int ops_close(void);\n", "ops_close has no comment"),
    ("ops/include/ops/f.h", DOCUMENTED.replace("Threads:", "") + "HAL_API int ops_close(void);\n",
     "has no 'Threads:'"),
    ("ops/include/ops/f.h", DOCUMENTED.replace("Errors:", "") + "HAL_API int ops_close(void);\n",
     "has no 'Errors:'"),
    ("ops/include/ops/f.h",
     DOCUMENTED.replace("Ownership:", "") + "HAL_API int ops_open(\n    int name, void **thing);\n",
     "has no 'Ownership:'"),
    ("ops/include/ops/f.h",
     DOCUMENTED.replace("Ownership:", "") + "HAL_API ops_array *ops_reduce_sum(const ops_array *x);\n",
     "has no 'Ownership:'"),
    ("ops/include/ops/f.h", HEADER + "\nstatic inline int ops_one(void)\n{\n    return 1;\n}\n",
     "ops_one has no comment"),
]

# Just within the budgets.
ALLOWED = [
    ("hal/src/base/long.c", HEADER + "int x;\n" * 799),
    ("hal/src/base/long.c", HEADER + BODY),
    ("hal/src/base/open.c", HEADER + 'char *s = getenv("HAL_LOG"), *t = secure_getenv("HAL_DUMP");\n'),
    ("bench/peers/cublas.c", HEADER + "/* beside cu" "BLAS and CU" "DA */\n"),
    ("ops/include/ops/f.h", DOCUMENTED + "HAL_API int ops_open(void **thing);\n"),
    ("ops/include/ops/f.h", DOCUMENTED + "static inline int ops_one(void)\n{\n" +
     "    ops_two();\n" * 10 + "}\n"),
]


def self_test(check_tree):
    failures = []
    complaints = check_with(check_tree, None, "")
    if complaints:
        failures.append(f"the good tree is blamed: {complaints}")
    for name, text in ALLOWED:
        complaints = check_with(check_tree, name, text)
        if complaints:
            failures.append(f"{name} is blamed although it is within the rules: {complaints}")
    for name, text, expected in BAD:
        complaints = check_with(check_tree, name, text)
        if not any(line.startswith(name) and expected in line for line in complaints):
            failures.append(f"{name}: expected '{expected}', got {complaints}")
    for failure in failures:
        print(failure)
    print(f"lint: {len(BAD)} bad samples, {len(ALLOWED)} good ones, {len(failures)} surprises")
    return 1 if failures else 0


def check_with(check_tree, name, text):
    """What lint says of the good tree with one file more or changed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for file, content in {**GOOD, **({name: text} if name else {})}.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return check_tree(root)
